package host

import (
	"context"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

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
