package host

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/luanette/luanette/internal/base/fault"
)

// Effect is one thing a script wants of the world.
type Effect struct {
	Seq  int64  // 1, 2, 3 … in the order the script asked, also for what then ran at once; 0 for observations
	Name string // "mcp.call", "fs.write"
	Kind Kind
	Args []Value

	Line  int  // of the script, where that is known
	Own   bool // it changes nothing but the run's own folder, which goes with the run
	aside bool // it changes only what can be kept aside: a file, a content
}

// subject is what the script's writer would call the effect: behind every
// mcp.<namespace>.<tool> stand functions that were never written down.
func (e Effect) subject() string {
	if strings.HasPrefix(e.Name, "mcp.") {
		return "the use of tools (mcp)"
	}
	return e.Name
}

// Door decides what becomes of effects. It is called by the goroutine that runs
// the script, or by several at once when the script does things in parallel.
type Door interface {
	// Pass answers the effect: by calling live, which does it, or otherwise.
	Pass(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error)
}

// Live does everything for real.
func Live() Door { return liveDoor{} }

type liveDoor struct{}

func (liveDoor) Pass(ctx context.Context, _ Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	return live(ctx)
}

// Closed allows nothing but observations, and the seed every run begins with: it
// is for looking at a script, as when describe() is called.
func Closed(doing string) Door { return closedDoor{doing} }

type closedDoor struct{ doing string }

func (d closedDoor) Pass(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if e.Kind == Observe || e.Name == seedEffect {
		return live(ctx)
	}
	return nil, fault.New(fault.Denied, "%s is not allowed while %s", e.subject(), d.doing).
		WithHint("move it into main(params): the script's top level and describe() must not touch the world")
}

// Counted lets at most limit effects pass that look at the world or change it,
// then refuses. It is how a run's budget of calls is kept.
func Counted(inner Door, limit int64) Door { return &countedDoor{inner: inner, limit: limit} }

type countedDoor struct {
	inner Door
	limit int64
	used  atomic.Int64
}

// Rehearsing is what the door behind does.
func (d *countedDoor) Rehearsing() bool { return Rehearsing(d.inner) }

func (d *countedDoor) Pass(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if e.Kind != Observe && e.Kind != Moment && d.used.Add(1) > d.limit {
		return nil, fault.New(fault.Limit, "%s: the run's budget of %d calls is used up", e.Name, d.limit).
			WithHint("do more per call, or split the work over several runs")
	}
	return d.inner.Pass(ctx, e, live)
}
