// Package upgrade tries other versions of the npm packages that upstreams run: it installs
// one beside the version in effect, starts the upstream with it, and says what would change.
package upgrade

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/mcp/packages"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Installed is the package of an upstream, and which versions there are.
type Installed struct {
	Upstream string    `json:"upstream"`
	Package  string    `json:"package"`
	Version  string    `json:"version"`
	At       time.Time `json:"installed_at"`
	packages.Offer
	Previous string `json:"previous,omitempty"` // the version that a rollback makes the one in effect
	Error    string `json:"error,omitempty"`    // why the registry does not say
}

// Look asks the registry for the versions of the package of an upstream.
func Look(ctx context.Context, store *packages.Store, name string, r packages.Request, now packages.Record) Installed {
	found := Installed{Upstream: name, Package: now.Name, Version: now.Version, At: now.Installed}
	if now.Previous != nil {
		found.Previous = now.Previous.Version
	}
	var err error
	if found.Offer, err = store.Offered(ctx, r); err != nil {
		found.Error = err.Error()
	}
	return found
}

// Trial is another version of a package.
type Trial struct {
	Store   *packages.Store // of this trial alone
	Request packages.Request
	Now     packages.Record // what is in effect
	To      string          // the version; "": the newest that the configuration allows
	Report  func(string)    // is told what is being done to install it
	// Check may refuse the version before it is started; nil: nobody does.
	Check func(ctx context.Context, next packages.Record) error
	// Tools starts the upstream with the version that Store has, and returns its tools.
	Tools func(ctx context.Context) ([]tool.Info, error)
}

// Outcome is what another version changes.
type Outcome struct {
	Now, Next  packages.Record
	Difference packages.Difference
	Broken     error // why the version in effect does not start, so that its tools are not known
	Tools      []ToolChange
	Same       int // how many tools are as they were
	Total      int // how many there are
}

// ToolChange is one tool that another version has otherwise.
type ToolChange struct {
	Kind       string `json:"kind"` // new, changed or gone
	Name       string `json:"name"`
	Difference string `json:"difference,omitempty"` // of what was changed, line by line
}

// Kinds of ToolChange.
const (
	New     = "new"
	Changed = "changed"
	Gone    = "gone"
)

// InEffect reports whether there is no other version than the one in effect.
func (o *Outcome) InEffect() bool { return o.Next.Folder == o.Now.Folder }

// Skipped are the install scripts that the other version has too, and that do not run.
func (o *Outcome) Skipped() []string { return without(o.Next.Skipped, o.Now.Skipped) }

// Scripts are the install scripts that run for the other version too.
func (o *Outcome) Scripts() []string { return without(o.Next.Scripts, o.Now.Scripts) }

func without(list, others []string) (left []string) {
	for _, text := range list {
		if !slices.Contains(others, text) {
			left = append(left, text)
		}
	}
	return left
}

// Run installs the version and tries it. It takes effect when the store is told to use it.
func (t *Trial) Run(ctx context.Context) (o Outcome, err error) {
	o.Now = t.Now
	if o.Next, err = t.Store.Upgrade(ctx, t.Request, t.To, t.Report); err != nil || o.InEffect() {
		return o, err
	}
	if t.Check != nil {
		if err := t.Check(ctx, o.Next); err != nil {
			return o, err
		}
	}
	before, broken := t.Tools(ctx) // the old one may be broken, which is why it is upgraded
	t.Store.Propose(t.Request.Key(), o.Next)
	after, err := t.Tools(ctx)
	if err != nil {
		return o, fault.Wrap(fault.Unavailable, err, "%s %s does not work, and %s stays", o.Next.Name, o.Next.Version, o.Now.Version).WithHint("%s", fault.HintOf(err))
	}
	if o.Broken, o.Total = broken, len(after); broken == nil {
		o.compare(before, after)
	}
	o.Difference, err = t.Store.Compare(o.Now, o.Next)
	return o, err
}

// compare says which tools are new, gone or defined otherwise, and how.
func (o *Outcome) compare(before, after []tool.Info) {
	old := map[string]tool.Info{}
	for _, info := range before {
		old[info.Name] = info
	}
	for _, info := range after {
		was, had := old[info.Name]
		delete(old, info.Name)
		switch {
		case !had:
			o.Tools = append(o.Tools, ToolChange{Kind: New, Name: info.Name})
		case bytes.Equal(was.Raw, info.Raw):
			o.Same++
		default:
			o.Tools = append(o.Tools, ToolChange{Changed, info.Name, pin.FormatChanges(pin.Differences(was.Raw, info.Raw))})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		o.Tools = append(o.Tools, ToolChange{Kind: Gone, Name: name})
	}
}

// Tools starts an upstream once, beside the one that is running, and returns its tools.
func Tools(ctx context.Context, o upstream.Options, spec upstream.Spec, timeout time.Duration) ([]tool.Info, error) {
	bus := event.New(event.BusOptions{})
	defer bus.Close()
	o.Events = bus
	manager := upstream.New(o)
	defer manager.Close()
	spec.Start, spec.StartTimeout = upstream.Eager, duration.Duration(timeout)
	if err := manager.Add(spec); err != nil {
		return nil, err
	}
	manager.Await(ctx, bus, spec.Name, upstream.Status.Attempted)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if s, _ := manager.Status(spec.Name); s.State != upstream.StateConnected && s.State != upstream.StateNeedsAuth {
		return nil, fault.New(fault.Unavailable, "%s", cmp.Or(s.LastError, "it does not answer")).WithHint("%s", s.Hint)
	}
	return manager.Tools(ctx)
}
