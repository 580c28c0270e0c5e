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

	Line     int  // of the script, where that is known
	TempOnly bool // it changes nothing but the run's own folder, which goes with the run
	overlay  bool // it changes only what can be kept aside: a file, a content
}

// subject is what the script's writer would call the effect: behind every
// mcp.<namespace>.<tool> stand functions that were never written down.
func (e Effect) subject() string {
	if strings.HasPrefix(e.Name, "mcp.") {
		return "the use of tools (mcp)"
	}
	return e.Name
}

// Handler decides what becomes of effects. It is called by the goroutine that runs
// the script, or by several at once when the script does things in parallel.
type Handler interface {
	// Handle answers the effect: by calling live, which does it, or otherwise.
	Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error)
}

// Live does everything for real.
func Live() Handler { return liveHandler{} }

type liveHandler struct{}

func (liveHandler) Handle(ctx context.Context, _ Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	return live(ctx)
}

// DenyEffects allows nothing but observations, and the seed every run begins with: it
// is for looking at a script, as when describe() is called.
func DenyEffects(doing string) Handler { return denyHandler{doing} }

type denyHandler struct{ doing string }

func (d denyHandler) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if e.Kind == Observe || e.Name == seedEffect {
		return live(ctx)
	}
	return nil, fault.New(fault.Denied, "%s is not allowed while %s", e.subject(), d.doing).
		WithHint("move it into main(params): the script's top level and describe() must not touch the world")
}

// LimitEffects lets at most limit effects pass that look at the world or change it,
// then refuses. It is how a run's budget of calls is kept.
func LimitEffects(inner Handler, limit int64) Handler {
	return &limitHandler{inner: inner, limit: limit}
}

type limitHandler struct {
	inner Handler
	limit int64
	used  atomic.Int64
}

// Rehearsing is what the door behind does.
func (d *limitHandler) Rehearsing() bool { return Rehearsing(d.inner) }

func (d *limitHandler) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if e.Kind != Observe && e.Kind != Nondeterministic && d.used.Add(1) > d.limit {
		return nil, fault.New(fault.Limit, "%s: the run's budget of %d calls is used up", e.Name, d.limit).
			WithHint("do more per call, or split the work over several runs")
	}
	return d.inner.Handle(ctx, e, live)
}
