// Package pin stands between upstreams and everybody who would use their
// tools. It reads every definition an upstream offers: a scanner flags what does
// not belong into one, names that pass for other tools' are refused, and where the
// owner wants it a definition is pinned: held back until a person has read and
// approved it, and held again when it changes.
//
// A pin covers the whole definition as the upstream wrote it, and which server it
// came from. What is held is not listed, and a call of it says how to approve.
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

//go:embed migrations/*.sql
var migrations embed.FS

// Mode is how far an upstream is trusted.
type Mode string

// The modes.
const (
	Open   Mode = "open" // its definitions are used as they come; odd ones are flagged
	Pinned Mode = "pin"  // each definition is held until somebody has approved it
)

// Modes are all of them.
func Modes() []Mode { return []Mode{Open, Pinned} }

// Settings say whom to trust how far.
type Settings struct {
	Default Mode            // of upstreams that Modes does not name; "" is Open
	Modes   map[string]Mode // by namespace
	Owned   map[string]bool // namespaces the owner configured, which win over others' where names collide
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

// Options are a guard's choices.
type Options struct {
	Settings Settings
	Own      func() []string               // names of our own tools; nil: there are none
	Target   func(namespace string) string // the server behind a namespace; nil: nobody can tell
	Events   *event.Bus                    // may be nil
	Clock    clock.Clock                   // nil is the machine's
	Log      *slog.Logger                  // nil is nobody
}

// Guard is a source of tools that shows only what may be seen. It is safe for
// concurrent use.
type Guard struct {
	inner   tool.Lister
	db      *db.DB
	options Options

	version atomic.Uint64 // grows with settings and decisions
	last    atomic.Pointer[checkedList]

	mu       sync.Mutex // guards what follows; nobody is called while it is held
	settings Settings
	pins     map[key]*Pin
	reported map[string]bool // what was published already
	seen     [3]int64        // the stamp of what Look last read

	checking sync.Mutex // notApproved while a list is judged; taken before mu
}

// New guards the tools of inner and keeps its pins in a database, whose tables it
// brings up to date.
func New(ctx context.Context, database *db.DB, inner tool.Lister, o Options) (*Guard, error) {
	if err := database.Migrate(ctx, "trust", migrations); err != nil {
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

// Topic is where processes tell each other that a pin is another now.
const Topic = "pins"

// Transform reads the pins again if another process changed them, and tells whether it
// did.
func (g *Guard) Poll(ctx context.Context) (changed bool, err error) {
	now, err := g.stamp(ctx)
	if err != nil {
		return false, fault.Wrap(fault.Internal, err, "look at pins")
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

// notApproved is what a caller of something held is told.
func notApproved(p *Pin) error {
	what := fmt.Sprintf("%s %s.%s", p.Kind, p.Upstream, p.Name)
	if p.Kind == Instructions {
		what = "what " + p.Upstream + " says of itself"
	}
	details := map[string]any{"pin": p.ID, "state": p.State(), "flags": p.Flags}
	switch p.State() {
	case Refused:
		return fault.New(fault.Denied, "%s was refused by %s", what, p.By).
			WithHint("`luanette pin show %s` shows its definition; `luanette pin approve %s` allows it after all", p.ID, p.ID).WithDetails(details)
	case Changed:
		return fault.New(fault.Denied, "%s is held: its definition has changed since it was approved", what).
			WithHint("`luanette pin show %s` shows what changed, `luanette pin approve %s` allows it", p.ID, p.ID).WithDetails(details)
	default:
		return fault.New(fault.Denied, "%s is held until somebody has approved its definition", what).
			WithHint("`luanette pin show %s` shows it, `luanette pin approve %s` allows it", p.ID, p.ID).WithDetails(details)
	}
}
