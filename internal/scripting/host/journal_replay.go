package host

import (
	"context"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Replay is a Handler that answers from a journal. Past the journal's end, effects pass
// to another Handler, which resumes the run, or are refused. The first effect that does
// not match the journal ends the replay: every later effect gets the same error, so that
// the script cannot catch it and continue.
type Replay struct {
	past map[int64]Step
	then Handler

	mu   sync.Mutex
	used int
	err  error
}

// NewReplay answers from past. then handles the effects that past does not have; nil
// refuses them.
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
	case step.InDoubt():
		return nil, r.end(inDoubt(step))
	case !step.Done:
		return r.beyond(context.WithValue(ctx, beganKey{}, step.At), e, live)
	}
	if !step.Nested() {
		r.mu.Lock()
		r.used++
		r.mu.Unlock()
	}
	if e.Name == advanceEffect {
		_, _ = live(ctx) // advances the run's own clock, which starts anew in every run
	}
	if step.Err != nil {
		return nil, step.Err
	}
	return step.Values, nil
}

// advanceEffect changes only the run itself.
const advanceEffect = "clock.advance"

func (r *Replay) beyond(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if r.then != nil {
		return r.then.Handle(ctx, e, live)
	}
	if e.Kind == Nested { // its own effects are in the journal, or are refused
		return live(ctx)
	}
	return nil, r.end(fault.New(fault.Conflict, "step %d: the journal ends before %s", e.Seq, written(e.Name, e.Args)).
		WithHint("the recorded run ended here; the script now does more than it did then"))
}

// Rehearsing reports whether the Handler past the journal's end rehearses.
func (r *Replay) Rehearsing() bool { return r.then != nil && Rehearsing(r.then) }

// Err returns the error that ended the replay, or nil.
func (r *Replay) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Left returns how many recorded steps the script did not ask for. Steps of nested runs
// count as part of the call that ran them.
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
	return fault.New(fault.Conflict, "step %d: the script does not match its journal: recorded %s, now %s",
		e.Seq, step.Call(), written(e.Name, e.Args)).
		WithHint("a script must have the same effects when it gets the same answers; start a changed script as a new job").
		WithDetails(map[string]any{"step": e.Seq, "recorded": step.Call(), "now": written(e.Name, e.Args)})
}

func inDoubt(step Step) error {
	return fault.New(fault.Conflict, "step %d: it is unknown whether %s happened: the server stopped before the outcome was recorded", step.Seq, step.Call()).
		WithHint("check what the call changed, then `luanette job resume` (job_resume) continues the job; " +
			"calls of tools marked read-only or idempotent are retried automatically").
		WithDetails(map[string]any{"step": step.Seq, "call": step.Call(), "began": step.At, "process": step.Boot})
}

var _ Handler = (*Replay)(nil)

// Recording is a Handler that passes effects to another one and stores their outcomes in
// memory, as a journal from which a Replay can answer. It is safe for concurrent use.
type Recording struct {
	then Handler

	mu      sync.Mutex
	journal []byte
}

// NewRecording records the effects that then handles.
func NewRecording(then Handler) *Recording { return &Recording{then: then} }

// Handle passes the effect on. Observations are not recorded.
func (r *Recording) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	values, err := r.then.Handle(ctx, e, live)
	if e.Kind == Observe || ended(ctx) {
		return values, err
	}
	step := Step{Seq: e.Seq, Name: e.Name, Kind: e.Kind, Args: e.Args, At: time.Now(), Values: values}
	if err != nil {
		step.Values, step.Err = nil, fault.From(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal = appendStep(r.journal, formOutcome, step)
	return values, err
}

// Rehearsing reports whether the other Handler rehearses.
func (r *Recording) Rehearsing() bool { return Rehearsing(r.then) }

// Journal returns what was recorded.
func (r *Recording) Journal() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.journal
}

var _ Handler = (*Recording)(nil)
