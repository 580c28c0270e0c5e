package catalog

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/core/principal"
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
			s.state.limiter.set(c.options.Limits(space).filled())
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
func refused(ref tool.Ref, b *breaker) error { return tool.Unsent{Err: refusal(ref, b)} }

func refusal(ref tool.Ref, b *breaker) error {
	if wait := time.Until(b.retryAt()); wait > 0 {
		wait = wait.Round(100 * time.Millisecond)
		return fault.New(fault.Unavailable, "call %s: %s failed too often in a row", ref, ref.Space).
			WithHint("it is tried again in %v; mcp_status tells what is wrong with it", wait)
	}
	return fault.New(fault.Unavailable, "call %s: %s failed too often in a row and is being tried again", ref, ref.Space).
		WithHint("try again in a moment; mcp_status tells what is wrong with it")
}

// limiter bounds how many calls of a namespace run at a time. Waiting principals take
// turns, so that the many calls of one do not delay the single call of another.
type limiter struct {
	turns *queue.FairSemaphore
	rates queue.RateLimiter
	space string
	limit atomic.Int64
	rate  atomic.Int64 // calls a minute; zero means any number
	each  atomic.Bool  // the rate is for each principal
}

// newLimiter makes the limiter of a namespace. Our own tools, which have no namespace,
// are not limited; other limits can be set later.
func newLimiter(space string, l Limits) *limiter {
	g := &limiter{turns: queue.NewFairSemaphore(0, 0), space: space}
	if space != "" {
		g.turns = queue.NewFairSemaphore(math.MaxInt, l.Queue)
		g.set(l)
	}
	return g
}

// set changes the limits.
func (g *limiter) set(l Limits) {
	concurrent := l.Concurrent
	if concurrent < 0 {
		concurrent = math.MaxInt
	}
	g.limit.Store(int64(concurrent))
	g.rate.Store(int64(l.Rate))
	g.each.Store(l.Each)
	g.turns.SetLimit(concurrent)
}

// acquire returns nil when the call may run; release must follow. It fails when ctx is
// done, and at once when too many calls wait.
func (g *limiter) acquire(ctx context.Context) error {
	if rate := int(g.rate.Load()); rate > 0 {
		of := ""
		if g.each.Load() {
			of = principal.Of(ctx).LoginOwner()
		}
		if after, ok := g.rates.Allow(of, rate, time.Now()); !ok {
			return principal.Exceeded{What: "calls", Of: "the upstream " + g.space, Most: rate, Per: "minute", After: after}.Fault()
		}
	}
	err := g.turns.Acquire(ctx, principal.Of(ctx).ID)
	if errors.Is(err, queue.ErrFull) {
		return fault.New(fault.Limit, "%d calls run and %d wait", g.limit.Load(), g.turns.Waiting()).
			WithHint("try again when some have finished, or raise the namespace's limit")
	}
	return err
}

func (g *limiter) release() { g.turns.Release() }

func (g *limiter) waiting() int { return g.turns.Waiting() }

// breaker is a circuit breaker: after a number of failures in a row it opens and
// refuses calls for a while. Then one call is tried, and its outcome closes or reopens
// the breaker. While nothing fails, a call reads two numbers and takes no lock.
type breaker struct {
	failures int // in a row, that open it
	rest     time.Duration

	failing    atomic.Bool   // a call failed since the last one that succeeded
	generation atomic.Uint64 // counts openings and closings; changed under mu

	mu     sync.Mutex
	failed int       // in a row, while it is closed
	until  time.Time // when the open breaker tries a call; zero while it is closed
	trying bool      // a call is being tried
}

func newBreaker(failures int, rest time.Duration) *breaker {
	return &breaker{failures: failures, rest: rest}
}

// resting tells whether calls are refused without trying any.
func (b *breaker) resting() bool {
	if !b.failing.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isOpen()
}

// isOpen tells whether calls are refused; mu is held.
func (b *breaker) isOpen() bool { return !b.until.IsZero() && !time.Now().After(b.until) }

// retryAt is when a call is tried, or was.
func (b *breaker) retryAt() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until
}

// allow tells whether a call may be made. If so, done or cancelled must follow with the
// generation it returns.
func (b *breaker) allow() (generation uint64, ok bool) {
	generation = b.generation.Load() // before failing: what follows from that has another generation
	if !b.failing.Load() {
		return generation, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trying || b.isOpen() {
		return 0, false
	}
	b.trying = !b.until.IsZero()
	return b.generation.Load(), true
}

// done records how a call went. A call of an earlier generation says nothing about the
// present.
func (b *breaker) done(generation uint64, err error) {
	well := reached(err)
	if well && !b.failing.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case generation != b.generation.Load():
	case well:
		b.close()
	default:
		b.fail()
	}
}

// cancelled records a call that says nothing about the upstream. If it was the one
// being tried, another is.
func (b *breaker) cancelled(generation uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if generation == b.generation.Load() {
		b.trying = false
	}
}

// close closes the breaker; mu is held.
func (b *breaker) close() {
	if !b.until.IsZero() {
		b.generation.Add(1)
	}
	b.failed, b.until, b.trying = 0, time.Time{}, false
	b.failing.Store(false)
}

// fail counts a call that did not reach the upstream; mu is held.
func (b *breaker) fail() {
	b.failing.Store(true)
	b.failed++
	if b.until.IsZero() && b.failed < b.failures {
		return
	}
	b.generation.Add(1)
	b.failed, b.until, b.trying = 0, time.Now().Add(b.rest), false
}

// reached tells whether a call reached the upstream, whatever it answered. Only calls
// that did not count as failures.
func reached(err error) bool {
	if err == nil {
		return true
	}
	code := fault.CodeOf(err)
	return code != fault.Unavailable && code != fault.Timeout
}
