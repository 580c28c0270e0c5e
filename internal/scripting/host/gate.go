package host

import (
	"context"
	"errors"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// Decide decides whether an effect may happen. It is safe for concurrent use.
type Approver interface {
	Decide(ctx context.Context, e Effect) (Decision, error)
}

// Decision is what becomes of an effect.
type Decision uint8

// The verdicts.
const (
	Allow Decision = iota
	Deny           // the script is told that it may not
	Ask            // somebody must be asked first
)

// Approval is a door at which some effects need somebody's word. At the first one
// that nobody has spoken about the run is over as far as the world goes: the
// script goes on, but as a rehearsal, so that whoever is asked sees what else it
// wants. Its outcome counts for nothing then; it is run again when the answer is
// known, with what was done answered from its journal.
type Approval struct {
	then  Handler
	judge Approver
	ahead *Rehearsal

	mu     sync.Mutex
	paused *Effect
}

// NewApproval lets pass to then what judge allows. ahead takes what comes after.
func NewApproval(then Handler, judge Approver, ahead *Rehearsal) *Approval {
	return &Approval{then: then, judge: judge, ahead: ahead}
}

// errPaused is what a call within answers a journal when its script has paused.
var errPaused = errors.New("the script waits for approval")

// Handle lets the effect happen, refuses it, or pauses.
func (g *Approval) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	switch {
	case e.Kind == Observe && g.Paused() == nil:
		return live(ctx)
	case e.Kind == Observe:
		return nil, nil // what it says from here on was never said
	case g.Paused() != nil:
		return g.ahead.Handle(ctx, e, live)
	case e.Kind == Nested:
		return g.within(ctx, e, live)
	case e.Kind == Nondeterministic || e.TempOnly:
		return g.then.Handle(ctx, e, live)
	}
	verdict, err := g.judge.Decide(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case verdict == Allow:
		return g.then.Handle(ctx, e, live)
	case verdict == Deny:
		return g.then.Handle(ctx, e, func(context.Context) ([]Value, error) { return nil, denied(e) })
	}
	g.pause(e)
	return g.ahead.Handle(ctx, e, live)
}

// within runs another script. When that pauses, the call has no outcome yet.
func (g *Approval) within(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	var values []Value
	var problem error
	recorded, err := g.then.Handle(ctx, e, func(ctx context.Context) ([]Value, error) {
		values, problem = live(ctx)
		if g.Paused() != nil {
			return nil, errPaused
		}
		return values, problem
	})
	if errors.Is(err, errPaused) {
		return values, problem
	}
	return recorded, err
}

func (g *Approval) pause(e Effect) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused == nil {
		g.paused = &e
	}
}

// Paused is the effect that somebody must be asked about, or nil.
func (g *Approval) Paused() *Effect {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paused
}

// Rehearsing is true from the first such effect on.
func (g *Approval) Rehearsing() bool { return g.Paused() != nil }

// Rehearsal is the rehearsal that began with the effect the run paused at: its plan
// has that as the first entry.
func (g *Approval) Rehearsal() *Rehearsal { return g.ahead }

func denied(e Effect) error {
	return fault.New(fault.Denied, "%s was not approved", e.DisplayName()).
		WithHint("somebody was asked and said no; do without it, or ask them why")
}

var _ Handler = (*Approval)(nil)
