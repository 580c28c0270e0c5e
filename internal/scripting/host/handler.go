package host

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/luanette/luanette/internal/base/fault"
)

// Effect is one read or change outside the script that the script asks for.
type Effect struct {
	Seq  int64  // 1, 2, 3 … in the order the script asked, also for effects that then run in parallel; 0 for observations
	Name string // "mcp.call", "fs.write"
	Kind Kind
	Args []Value

	Line     int                                  // of the script; 0 if unknown
	TempOnly bool                                 // changes only the run's temp folder, which is removed with the run
	file     func() (path string, content []byte) // in a rehearsal: the file it changes, as it is now; may be nil
	check    func(context.Context) error          // returns why it would be refused, without carrying it out; may be nil
	starts   bool                                 // starts a job, whose own effects are approved one by one
	overlay  bool                                 // changes only a file or a stored content, which a rehearsal can overlay
}

// subject names the effect in error messages. Tools are called through functions of the
// mcp module whose names the script's author never wrote.
func (e Effect) subject() string {
	if strings.HasPrefix(e.Name, "mcp.") {
		return "calling tools (mcp)"
	}
	return e.Name
}

// Handler decides how effects are carried out. It is called by the goroutine that runs
// the script, or by several at once when the script runs effects in parallel.
type Handler interface {
	// Handle answers the effect, by calling live, which carries it out, or in another
	// way.
	Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error)
}

// Live carries out every effect.
func Live() Handler { return liveHandler{} }

type liveHandler struct{}

func (liveHandler) Handle(ctx context.Context, _ Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	return live(ctx)
}

// DenyEffects refuses everything but observations and the random seed. It is for
// inspecting a script, as when describe() is called.
func DenyEffects(doing string) Handler { return denyHandler{doing} }

type denyHandler struct{ doing string }

func (d denyHandler) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if e.Kind == Observe || e.Name == seedEffect {
		return live(ctx)
	}
	return nil, fault.New(fault.Denied, "%s is not allowed while %s", e.subject(), d.doing).
		WithHint("move it into main(params): the script's top level and describe() must have no effects")
}

// LimitEffects refuses effects after limit of them; observations and nondeterministic
// effects do not count.
func LimitEffects(inner Handler, limit int64) Handler {
	return &limitHandler{inner: inner, limit: limit}
}

type limitHandler struct {
	inner Handler
	limit int64
	used  atomic.Int64
}

// Rehearsing implements the check of the function Rehearsing.
func (d *limitHandler) Rehearsing() bool { return Rehearsing(d.inner) }

func (d *limitHandler) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if e.Kind != Observe && e.Kind != Nondeterministic && d.used.Add(1) > d.limit {
		return nil, fault.New(fault.Limit, "%s: the run's budget of %d calls is used up", e.Name, d.limit).
			WithHint("do more per call, or split the work over several runs")
	}
	return d.inner.Handle(ctx, e, live)
}
