// Package pin checks the definitions that upstreams offer before anything uses them. A
// scanner flags text that does not belong in a definition, tools whose names imitate
// other tools are refused, and definitions of pinned upstreams are hidden until a
// person has reviewed and approved them, and again when they change.
//
// A pin covers the whole definition as the upstream wrote it, and the server it came
// from. Tools that await review are not listed; a call of one says how to approve it.
package pin

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Mode is how far an upstream is trusted.
type Mode string

// The modes.
const (
	Open   Mode = "open" // definitions are used without review; suspicious ones are flagged
	Pinned Mode = "pin"  // each definition awaits review until a person approves it
)

// Modes are all modes.
func Modes() []Mode { return []Mode{Open, Pinned} }

// Settings are the modes of all upstreams.
type Settings struct {
	Default Mode            // of upstreams that Modes does not name; "" is Open
	Modes   map[string]Mode // by namespace
	Owned   map[string]bool // namespaces of the configuration file, which win where names collide
}

func (s *Settings) mode(namespace string) Mode {
	if mode := s.Modes[namespace]; mode != "" {
		return mode
	}
	if s.Default == "" {
		return Open
	}
	return s.Default
}

// Options configure a guard.
type Options struct {
	Settings Settings
	Own      func() []string                // names of our own tools; nil: there are none
	Target   func(namespace string) string  // the server behind a namespace; nil: not known
	Personal func(namespace string) bool    // whether its tools may be others for each person; nil: never
	Decided  func(context.Context, ...*Pin) // is called after decisions; may be nil
	Events   *event.Bus                     // may be nil
	Clock    clock.Clock                    // nil: the system clock
	Log      *slog.Logger                   // nil: discards
}

// Guard lists the tools of a source that callers may see. It is safe for concurrent
// use.
type Guard struct {
	inner   tool.Lister
	db      *db.DB
	options Options

	version atomic.Uint64 // grows with settings and decisions
	last    atomic.Pointer[checkedList]

	mu       sync.Mutex // guards what follows; nothing is called while it is held
	settings Settings
	pins     map[key]*Pin
	reported map[string]bool // what was published already
	seen     [3]int64        // the stamp that Poll last read

	checking sync.Mutex // held while a list is checked; taken before mu
}

// New makes a guard for the tools of inner. Pins are stored in a database, whose tables
// it migrates.
func New(ctx context.Context, database *db.DB, inner tool.Lister, o Options) (*Guard, error) {
	if err := database.Migrate(ctx, "trust", Migrations); err != nil { // the name from before the package was called pin
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Own == nil {
		o.Own = func() []string { return nil }
	}
	if o.Target == nil {
		o.Target = func(string) string { return "" }
	}
	if o.Personal == nil {
		o.Personal = func(string) bool { return false }
	}
	g := &Guard{inner: inner, db: database, options: o, settings: o.Settings, reported: map[string]bool{}}
	return g, g.Reload(ctx)
}

// Set replaces the settings.
func (g *Guard) Set(s Settings) {
	g.mu.Lock()
	g.settings = s
	g.mu.Unlock()
	g.version.Add(1)
}

// ModeOf is how far an upstream is trusted.
func (g *Guard) ModeOf(namespace string) Mode {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settings.mode(namespace)
}

// Reload reads the pins again: another process may have decided.
func (g *Guard) Reload(ctx context.Context) error {
	pins, err := g.load(ctx)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "read pins")
	}
	g.mu.Lock()
	g.pins = pins
	g.mu.Unlock()
	g.version.Add(1)
	return nil
}

// Topic is where nodes notify each other that a pin has changed.
const Topic = "pins"

// Poll reads the pins again if another process changed them, and reports whether it did.
func (g *Guard) Poll(ctx context.Context) (changed bool, err error) {
	now, err := g.stamp(ctx)
	if err != nil {
		return false, fault.Wrap(fault.Internal, err, "poll pins")
	}
	g.mu.Lock()
	changed = now != g.seen
	g.mu.Unlock()
	if !changed {
		return false, nil
	}
	if err := g.Reload(ctx); err != nil {
		return false, err
	}
	g.mu.Lock()
	g.seen = now
	g.mu.Unlock()
	return true, nil
}

// notApproved is the error for the use of a definition that is not approved.
func notApproved(p *Pin) error {
	what := fmt.Sprintf("%s %s.%s", p.Kind, p.Upstream, p.Name)
	if p.Kind == Instructions {
		what = "the instructions of " + p.Upstream
	}
	details := map[string]any{"pin": p.ID, "state": p.State(), "flags": p.Flags}
	switch p.State() {
	case Refused:
		return fault.New(fault.Denied, "%s was refused by %s", what, p.By).
			WithHint("`luanette pin show %s` shows its definition; `luanette pin approve %s` approves it after all", p.ID, p.ID).WithDetails(details)
	case Changed:
		return fault.New(fault.Denied, "%s awaits review: its definition has changed since it was approved", what).
			WithHint("`luanette pin show %s` shows what changed, `luanette pin approve %s` approves it", p.ID, p.ID).WithDetails(details)
	default:
		return fault.New(fault.Denied, "%s awaits review: its definition is not approved yet", what).
			WithHint("`luanette pin show %s` shows it, `luanette pin approve %s` approves it", p.ID, p.ID).WithDetails(details)
	}
}

// pin finds the pin of every tool, and records definitions that are new. checking is
// held.
func (g *Guard) pin(ctx context.Context, tools []*checkedTool) {
	var changed []*Pin
	space, target := "", ""
	for i, j := range tools {
		if i == 0 || space != j.info.Space { // tools of one namespace are adjacent
			space, target = j.info.Space, g.options.Target(j.info.Space)
		}
		p, fresh := g.record(key{space, Tool, j.info.Name}, target, j.content, j.flags)
		j.pin = p
		if fresh {
			changed = append(changed, p)
		}
	}
	g.saveAndPublish(ctx, changed)
}

// record is the pin of a definition as the server at target offers it now; fresh means
// that it is not stored yet.
func (g *Guard) record(k key, target string, c *content, flags []Finding) (p *Pin, fresh bool) {
	now := g.options.Clock.Now().UTC().Truncate(time.Microsecond)
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.pins[k]
	if old != nil && old.Digest == c.digest && old.Target == target {
		return old, false
	}
	next := Pin{ID: k.id(), Upstream: k.upstream, Kind: k.kind, Name: k.name, Seen: now}
	if old != nil {
		next = *old
	}
	next.Target, next.Digest, next.Definition, next.Flags, next.Changed = target, c.digest, c.definition, flags, now
	g.pins[k] = &next
	return &next, true
}

// saveAndPublish stores pins and publishes those that are not approved. A pin that
// cannot be stored is not approved either.
func (g *Guard) saveAndPublish(ctx context.Context, pins []*Pin) {
	if len(pins) == 0 {
		return
	}
	if err := g.save(context.WithoutCancel(ctx), pins); err != nil {
		g.options.Log.ErrorContext(ctx, "cannot store pins", "error", err)
	}
	for _, p := range pins {
		about := ToolAwaitingReview{Pin: p.ID, Upstream: p.Upstream, Kind: p.Kind, Name: p.Name, Digest: p.Digest, Flags: p.Flags}
		switch p.State() {
		case AwaitingReview:
			g.options.Events.PublishAbout(p.Upstream, about)
		case Changed:
			g.options.Events.PublishAbout(p.Upstream, ToolChanged{about, p.Diff()})
			g.options.Log.WarnContext(ctx, "an approved definition has changed and awaits review", "upstream", p.Upstream, "kind", p.Kind, "name", p.Name, "pin", p.ID)
		}
	}
}

// reportFlags publishes, once, what is suspicious about a tool that needs no approval.
func (g *Guard) reportFlags(j *checkedTool) {
	if len(j.flags) == 0 || !g.firstTime(j.info.Ref.String()+"\x00"+j.digest) {
		return
	}
	if j.shadow.refused {
		g.options.Events.PublishAbout(j.info.Space, ToolShadowed{Upstream: j.info.Space, Name: j.info.Name, Shadows: j.shadow.of})
		g.options.Log.Warn("a tool whose name imitates another is refused", "upstream", j.info.Space, "name", Visible(j.info.Name), "shadows", j.shadow.of)
		return
	}
	g.options.Events.PublishAbout(j.info.Space, ToolFlagged{Upstream: j.info.Space, Name: j.info.Name, Flags: j.flags})
}

// firstTime reports whether it is called with this text for the first time.
func (g *Guard) firstTime(what string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reported[what] {
		return false
	}
	const most = 100_000
	if len(g.reported) > most {
		clear(g.reported)
	}
	g.reported[what] = true
	return true
}

// CheckDefinition checks a tool, a prompt or a skill as it is listed, or the instructions of an
// upstream. The error says that it awaits review.
func (g *Guard) CheckDefinition(ctx context.Context, namespace string, kind Kind, raw json.RawMessage) error {
	if g.ModeOf(namespace) != Pinned {
		return nil
	}
	name := ""
	switch kind {
	case Tool, Prompt:
		name, _ = rawjson.GetText(raw, "name")
	case Skill:
		name, _ = rawjson.GetText(raw, "uri")
	}
	if kind == Tool && g.options.Personal(namespace) {
		if seen, err := g.checkPersonal(namespace, raw, name); seen {
			return err
		}
	}
	c := contentOf(raw)
	var m *mentions
	if r := g.last.Load(); r != nil {
		m = &mentions{namespace, r.naming, ownNames(g.options.Own())}
	}
	g.checking.Lock()
	defer g.checking.Unlock()
	p, fresh := g.record(key{namespace, kind, name}, g.options.Target(namespace), c, c.allFindings(m))
	if fresh {
		g.saveAndPublish(ctx, []*Pin{p})
	}
	if p.State() != Approved {
		return notApproved(p)
	}
	return nil
}

// CheckKnown says whether a definition may be used that was checked before; seen is
// false when it was not.
func (g *Guard) CheckKnown(namespace string, kind Kind, name string) (seen bool, err error) {
	if g.ModeOf(namespace) != Pinned {
		return true, nil
	}
	g.mu.Lock()
	p := g.pins[key{namespace, kind, name}]
	g.mu.Unlock()
	switch {
	case p == nil:
		return false, nil
	case p.State() != Approved:
		return true, notApproved(p)
	default:
		return true, nil
	}
}

// CheckCalls refuses calls of upstream tools whose definition is not approved. original
// is the upstream's name of a tool that was not listed yet, which may be called by an
// alias.
func (g *Guard) CheckCalls(original func(context.Context, tool.Ref) (string, error)) tool.Step {
	return tool.Step{Name: "pins", ChecksOnly: true, Before: func(ctx context.Context, i *tool.Invocation) (context.Context, error) {
		ref := i.Call.Ref
		switch {
		case ref.Space == "", i.Call.Kind != "": // whoever relays it has checked prompts
			return ctx, nil
		case i.Relayed: // it has the upstream's name
		case i.Info.Original != "":
			ref.Name = i.Info.Original
		case i.Info.Input == nil:
			name, err := original(ctx, ref)
			if err != nil {
				return ctx, err
			}
			ref.Name = name
		}
		if err := g.CheckCall(ctx, ref); err != nil {
			return ctx, i.Deny("trust", err)
		}
		return ctx, nil
	}}
}
