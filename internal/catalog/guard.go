package catalog

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/tool"
)

// Limits are the bounds of one namespace.
type Limits struct {
	// Concurrent is how many calls may run at a time; the others wait in the order
	// they came. Zero means 64, below zero any number.
	Concurrent int
	// Queue is how many may wait; more are refused. Zero means 1024.
	Queue int
	// Rate is how many calls a minute there may be; more are refused. Zero means any
	// number.
	Rate int
	// Failures in a row, of the connection and not of tools, after which calls are
	// refused without trying. Zero means 5, below zero never.
	Failures int
	// Rest is how long they are refused before one is tried again. Zero means 5 s.
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
	if l.Rest <= 0 {
		l.Rest = 5 * time.Second
	}
	return l
}

// gear is what a namespace keeps as long as it exists: counters, gate, breaker.
type gear struct {
	space    string
	limits   Limits
	counters counters
	gate     *gate
	breaker  atomic.Pointer[breaker] // nil: never opens
}

func newGear(space string, limits func(string) Limits) *gear {
	g := &gear{space: space, limits: Limits{Concurrent: -1, Failures: -1}}
	if space != "" {
		g.limits = limits(space).filled()
	}
	g.gate = newGate(space, g.limits)
	g.reset()
	return g
}

// reset puts a new, closed breaker in place.
func (g *gear) reset() {
	if g.limits.Failures > 0 {
		g.breaker.Store(newBreaker(g.limits.Failures, g.limits.Rest))
	}
}

func (g *gear) read() Stats {
	s := Stats{
		Namespace: g.space,
		Calls:     g.counters.calls.Load(),
		Errors:    g.counters.errors.Load(),
		InFlight:  int(g.counters.inFlight.Load()),
		Waiting:   g.gate.waiting(),
		Max:       time.Duration(g.counters.took.longest.Load()),
	}
	q := g.counters.took.quantiles(0.5, 0.9, 0.99)
	s.P50, s.P90, s.P99 = q[0], q[1], q[2]
	if last := g.counters.lastTool.Load(); last != nil {
		s.LastTool, s.LastCall = *last, time.Unix(0, g.counters.lastCall.Load())
	}
	if b := g.breaker.Load(); b != nil && b.State() == gobreaker.StateOpen {
		s.Open, s.RetryAt = true, b.retryAt()
	}
	return s
}

// Recovered says that a namespace is well again, so that calls need not wait
// until one is tried: a reconnected upstream is known to work.
func (c *Catalog) Recovered(namespace string) {
	if s := c.view.Load().shelves[namespace]; s != nil {
		s.gear.reset()
	}
}

// Relimit asks for the limits of every namespace again: how many calls may run, and
// how many there may be a minute. Calls under way go on.
func (c *Catalog) Relimit() {
	for space, s := range c.view.Load().shelves {
		if space != "" {
			s.gear.gate.set(c.limits(space).filled())
		}
	}
}

// breaker is a circuit breaker that knows when it opens again.
type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[struct{}]
	until atomic.Int64 // when it was opened plus the rest, in Unix nanoseconds
}

func newBreaker(failures int, rest time.Duration) *breaker {
	b := &breaker{}
	b.TwoStepCircuitBreaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:      rest,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= uint32(failures) },
		IsSuccessful: reached,
		IsExcluded:   func(err error) bool { return errors.Is(err, errUntried) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.until.Store(time.Now().Add(rest).UnixNano())
			}
		},
	})
	return b
}

func (b *breaker) retryAt() time.Time { return time.Unix(0, b.until.Load()) }

// errUntried stands for a call that was called off: it tells nothing about the
// other side.
var errUntried = errors.New("called off")

// reached tells whether a call got through to the other side, whatever was
// answered there. Only what did not counts against the connection.
func reached(err error) bool {
	if err == nil {
		return true
	}
	code := fault.CodeOf(err)
	return code != fault.Unavailable && code != fault.Timeout
}

// guarded keeps the namespace's limits. A breaker that is open refuses at once,
// before the call waits for its turn; one that opens meanwhile refuses after.
func guarded(next handler) handler {
	return func(ctx context.Context, e *entry, call tool.Call) (tool.Result, error) {
		b := e.gear.breaker.Load()
		if b != nil && b.State() == gobreaker.StateOpen {
			return tool.Result{}, refused(call.Ref, b)
		}
		if err := e.gear.gate.enter(ctx); err != nil {
			return tool.Result{}, fault.Wrap(fault.CodeOf(err), err, "call %s", call.Ref)
		}
		defer e.gear.gate.leave()
		if b == nil {
			return next(ctx, e, call)
		}
		done, err := b.Allow()
		if err != nil {
			return tool.Result{}, refused(call.Ref, b)
		}
		result, err := next(ctx, e, call)
		if err != nil && ctx.Err() != nil {
			done(errUntried)
		} else {
			done(err)
		}
		return result, err
	}
}

// Through is where a call goes that somebody else carries out.
type Through func(ctx context.Context, call tool.Call) (tool.Result, error)

// Tools lists nothing: what is called is known already.
func (Through) Tools(context.Context) ([]tool.Info, error) { return nil, nil }

// Call carries the call out.
func (t Through) Call(ctx context.Context, call tool.Call) (tool.Result, error) { return t(ctx, call) }

// Limited lets a call go through that takes another way to its tool, by the same
// limits as all others.
func (c *Catalog) Limited(ctx context.Context, call tool.Call, through Through) (tool.Result, error) {
	s := c.shelf(ctx, call.Ref.Space)
	if s == nil {
		return tool.Result{}, fault.New(fault.NotFound, "no namespace %q", call.Ref.Space)
	}
	return c.limited(ctx, &entry{source: through, gear: s.gear}, call)
}

// shelf is that of a namespace, or nil when there is none of that name.
func (c *Catalog) shelf(ctx context.Context, namespace string) *shelf {
	if s := c.view.Load().shelves[namespace]; s != nil {
		return s
	}
	return c.refresh(ctx).shelves[namespace]
}

// refused says that the namespace rests and until when.
func refused(ref tool.Ref, b *breaker) error {
	if wait := time.Until(b.retryAt()); wait > 0 {
		wait = wait.Round(100 * time.Millisecond)
		return fault.New(fault.Unavailable, "call %s: %s failed too often in a row", ref, ref.Space).
			WithHint("it is tried again in %v; mcp_status tells what is wrong with it", wait)
	}
	return fault.New(fault.Unavailable, "call %s: %s failed too often in a row and is being tried again", ref, ref.Space).
		WithHint("try again in a moment; mcp_status tells what is wrong with it")
}
