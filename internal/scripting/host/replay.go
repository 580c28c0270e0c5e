package host

import (
	"context"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// Replay is a door that answers from a journal. Past the journal's end effects go
// on to another door, which resumes the run, or to none, which keeps the replay
// offline. The first thing that does not fit ends it for good: a script cannot
// catch that and go on.
type Replay struct {
	past map[int64]Step
	then Handler

	mu   sync.Mutex
	used int
	err  error
}

// NewReplay answers from past. then takes what past does not know; nil refuses
// it.
func NewReplay(past []Step, then Handler) *Replay {
	r := &Replay{past: make(map[int64]Step, len(past)), then: then}
	for _, step := range past {
		r.past[step.Seq] = step
	}
	return r
}

// Handle answers the effect.
func (r *Replay) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	switch {
	case e.Kind == Observe && r.Rehearsing():
		return r.then.Handle(ctx, e, live)
	case e.Kind == Observe:
		return live(ctx)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	step, known := r.past[e.Seq]
	switch {
	case !known:
		return r.beyond(ctx, e, live)
	case !step.matches(e):
		return nil, r.end(diverged(step, e))
	case !step.Done && (e.Kind == Write || r.then == nil):
		return nil, r.end(inDoubt(step))
	case !step.Done:
		return r.then.Handle(ctx, e, live)
	}
	if !step.Nested() {
		r.mu.Lock()
		r.used++
		r.mu.Unlock()
	}
	if e.Name == advanceEffect {
		_, _ = live(ctx) // it moves the run's own clock, which begins anew with every run
	}
	if step.Err != nil {
		return nil, step.Err
	}
	return step.Values, nil
}

// advanceEffect changes nothing but the run itself.
const advanceEffect = "clock.advance"

func (r *Replay) beyond(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if r.then != nil {
		return r.then.Handle(ctx, e, live)
	}
	if e.Kind == Nested { // what it does is in the journal, or is refused
		return live(ctx)
	}
	return nil, r.end(fault.New(fault.Conflict, "step %d: the journal ends before %s", e.Seq, written(e.Name, e.Args)).
		WithHint("the recorded run did not come this far, or the script does more than it did then"))
}

// Rehearsing is what the door beyond the journal does.
func (r *Replay) Rehearsing() bool { return r.then != nil && Rehearsing(r.then) }

// Err is what ended the replay, or nil.
func (r *Replay) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Left is how many recorded steps were not asked for. Those of scripts within
// count with the call that ran them.
func (r *Replay) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := -r.used
	for _, step := range r.past {
		if !step.Nested() {
			left++
		}
	}
	return left
}

func (r *Replay) end(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	return r.err
}

func diverged(step Step, e Effect) error {
	return fault.New(fault.Conflict, "step %d: the script went another way than its journal: recorded %s, now %s",
		e.Seq, step.Call(), written(e.Name, e.Args)).
		WithHint("the script must do the same when it is given the same answers; a changed script starts as a new job").
		WithDetails(map[string]any{"step": e.Seq, "recorded": step.Call(), "now": written(e.Name, e.Args)})
}

func inDoubt(step Step) error {
	return fault.New(fault.Conflict, "step %d: nobody can tell whether %s happened: the server stopped in the middle of it", step.Seq, step.Call()).
		WithHint("look at what it changes, then start a new job for what remains; tools that say they are read-only or idempotent are tried again by themselves").
		WithDetails(map[string]any{"step": step.Seq, "call": step.Call(), "began": step.At, "process": step.Boot})
}

var _ Handler = (*Replay)(nil)
