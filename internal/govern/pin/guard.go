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
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
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
