package catalog

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/core/principal"
)

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
