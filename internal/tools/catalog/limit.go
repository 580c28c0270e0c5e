package catalog

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// Limits of one namespace.
type Limits struct {
	// Concurrent is how many calls may run at a time; others wait in turn. Zero means
	// 64, below zero any number.
	Concurrent int
	// Queue is how many may wait; more are refused. Zero means 1024.
	Queue int
	// Rate is how many calls a minute are allowed; more are refused. Zero means any
	// number.
	Rate int
	// Each says that each principal has a connection of its own: Rate is for each, and there
	// is no circuit breaker, because what fails for one may work for others.
	Each bool
	// Failures is how many failures in a row, of the connection and not of tools, open
	// the circuit breaker. Zero means 5, below zero never.
	Failures int
	// Rest is how long the open breaker refuses calls before one is tried. Zero means 5
	// s.
	Rest time.Duration
}

func (l Limits) filled() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{{&l.Concurrent, 64}, {&l.Queue, 1024}, {&l.Failures, 5}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if l.Each {
		l.Failures = -1
	}
	if l.Rest <= 0 {
		l.Rest = 5 * time.Second
	}
	return l
}

// namespaceState is what lives as long as the namespace: counters, limiter, breaker.
type namespaceState struct {
	space    string
	limits   Limits
	counters counters
	limiter  *limiter
	breaker  atomic.Pointer[breaker] // nil: never opens
}

func newNamespaceState(space string, limits func(string) Limits) *namespaceState {
	g := &namespaceState{space: space, limits: Limits{Concurrent: -1, Failures: -1}}
	if space != "" {
		g.limits = limits(space).filled()
	}
	g.limiter = newLimiter(space, g.limits)
	g.resetBreaker()
	return g
}

// resetBreaker installs a new, closed breaker.
func (g *namespaceState) resetBreaker() {
	if g.limits.Failures > 0 {
		g.breaker.Store(newBreaker(g.limits.Failures, g.limits.Rest))
	}
}

func (g *namespaceState) stats() Stats {
	s := Stats{
		Namespace: g.space,
		Calls:     g.counters.calls.Load(),
		Errors:    g.counters.errors.Load(),
		InFlight:  int(g.counters.inFlight.Load()),
		Waiting:   g.limiter.waiting(),
		Max:       time.Duration(g.counters.took.longest.Load()),
	}
	q := g.counters.took.quantiles(0.5, 0.9, 0.99)
	s.P50, s.P90, s.P99 = q[0], q[1], q[2]
	if last := g.counters.lastTool.Load(); last != nil {
		s.LastTool, s.LastCall = *last, time.Unix(0, g.counters.lastCall.Load())
	}
	if b := g.breaker.Load(); b != nil && b.resting() {
		s.Open, s.RetryAt = true, b.retryAt()
	}
	return s
}

// ResetBreaker closes the circuit breaker of a namespace whose upstream is known to
// work again.
func (c *Catalog) ResetBreaker(namespace string) {
	if s := c.view.Load().namespaces[namespace]; s != nil {
		s.state.resetBreaker()
	}
}

// ReloadLimits reads the limits of every namespace again. Running calls go on.
func (c *Catalog) ReloadLimits() {
	for space, s := range c.view.Load().namespaces {
		if space != "" {
			s.state.limiter.set(c.limits(space).filled())
		}
	}
}

// permit is a call's place within the limits of its namespace.
type permit struct {
	state      *namespaceState
	breaker    *breaker // nil: none
	generation uint64   // of the breaker
}

// acquire waits until the limits allow the call. An open breaker refuses it at once;
// one that opens meanwhile refuses it after the wait. release must follow.
func (g *namespaceState) acquire(ctx context.Context, ref tool.Ref) (p permit, err error) {
	p = permit{state: g, breaker: g.breaker.Load()}
	if p.breaker != nil && p.breaker.resting() {
		return p, refused(ref, p.breaker)
	}
	if err := g.limiter.acquire(ctx); err != nil {
		return p, fault.Wrap(fault.CodeOf(err), err, "call %s", ref)
	}
	if p.breaker != nil {
		var allowed bool
		if p.generation, allowed = p.breaker.allow(); !allowed {
			g.limiter.release()
			return p, refused(ref, p.breaker)
		}
	}
	return p, nil
}

// release reports to the breaker how the call went, and frees the place.
func (p *permit) release(ctx context.Context, err error) {
	defer p.state.limiter.release()
	switch {
	case p.breaker == nil:
	case err != nil && ctx.Err() != nil:
		p.breaker.cancelled(p.generation)
	default:
		p.breaker.done(p.generation, err)
	}
}

// LimitNamespace makes a call wait for its turn within the namespace's limits, and
// refuses it while the namespace's circuit breaker is open.
func LimitNamespace() tool.Step {
	return tool.Step{
		Name: "limits",
		Before: func(ctx context.Context, i *tool.Invocation) (_ context.Context, err error) {
			r := i.State.(*run)
			r.permit, err = r.state.acquire(ctx, i.Call.Ref)
			return ctx, err
		},
		After: func(ctx context.Context, i *tool.Invocation) { i.State.(*run).permit.release(ctx, i.Err) },
	}
}

// refused is the error while the breaker is open.
func refused(ref tool.Ref, b *breaker) error {
	if wait := time.Until(b.retryAt()); wait > 0 {
		wait = wait.Round(100 * time.Millisecond)
		return fault.New(fault.Unavailable, "call %s: %s failed too often in a row", ref, ref.Space).
			WithHint("it is tried again in %v; mcp_status tells what is wrong with it", wait)
	}
	return fault.New(fault.Unavailable, "call %s: %s failed too often in a row and is being tried again", ref, ref.Space).
		WithHint("try again in a moment; mcp_status tells what is wrong with it")
}
