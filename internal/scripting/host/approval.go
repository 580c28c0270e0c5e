package host

import (
	"context"
	"errors"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// Approver decides whether an effect may happen. It is safe for concurrent use.
type Approver interface {
	Decide(ctx context.Context, e Effect) (Decision, error)
}

// Decision is an Approver's decision about an effect.
type Decision uint8

// The decisions.
const (
	Allow Decision = iota
	Deny           // the effect is refused with an error
	Ask            // a person must be asked first
)

// Approval is a Handler for runs in which some effects need a person's approval. At the
// first effect that has no decision yet, the run pauses: the script continues as a
// rehearsal, so that the person sees what else it would do, and its outcome is
// discarded. When the decision is known, the script runs again and its journal answers
// what was already done.
type Approval struct {
	then     Handler
	approver Approver
	ahead    *Rehearsal

	mu     sync.Mutex
	paused *Effect
}

// NewApproval passes effects that approver allows to then. ahead handles the effects
// after a pause.
func NewApproval(then Handler, approver Approver, ahead *Rehearsal) *Approval {
	return &Approval{then: then, approver: approver, ahead: ahead}
}

// errPaused is the outcome of a nested run that has paused.
var errPaused = errors.New("the script waits for approval")

// Handle passes the effect on, refuses it, or pauses the run.
func (g *Approval) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	switch {
	case e.Kind == Observe && g.Paused() == nil:
		return live(ctx)
	case e.Kind == Observe:
		return nil, nil // output after the pause is discarded
	case g.Paused() != nil:
		return g.ahead.Handle(ctx, e, live)
	case e.Kind == Nondeterministic || e.TempOnly || e.starts:
		return g.then.Handle(ctx, e, live)
	}
	verdict, err := g.approver.Decide(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case verdict == Allow && e.Kind == Nested:
		return g.nested(ctx, e, live)
	case verdict == Allow:
		return g.then.Handle(ctx, e, live)
	case verdict == Deny:
		return g.then.Handle(ctx, e, func(context.Context) ([]Value, error) { return nil, denied(e) })
	}
	if e.check != nil { // nobody is asked about what would be refused
		if refused := e.check(ctx); refused != nil {
			return g.then.Handle(ctx, e, func(context.Context) ([]Value, error) { return nil, refused })
		}
	}
	g.pause(e)
	return g.ahead.Handle(ctx, e, live)
}

// nested runs a nested script. If it pauses, the call has no outcome yet.
func (g *Approval) nested(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
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

// Paused returns the effect that needs a decision, or nil.
func (g *Approval) Paused() *Effect {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paused
}

// Rehearsing is true after the run has paused.
func (g *Approval) Rehearsing() bool { return g.Paused() != nil }

// Rehearsal returns the rehearsal after the pause. The first entry of its plan is the
// effect that needs a decision.
func (g *Approval) Rehearsal() *Rehearsal { return g.ahead }

func denied(e Effect) error {
	return fault.New(fault.Denied, "%s was not approved", e.DisplayName()).
		WithHint("the request was denied; continue without it, or ask the person who decided")
}

var _ Handler = (*Approval)(nil)
