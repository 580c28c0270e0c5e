package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/access"
	"github.com/luanette/luanette/internal/fair"
	"github.com/luanette/luanette/internal/fault"
)

// gate lets so many of a namespace's calls through at a time, the others in turn:
// one of each who waits, so that nobody's thousand calls stand before another's one.
type gate struct {
	turns *fair.Turns
	rates fair.Rates
	space string
	limit int
	rate  int // calls a minute; zero lets any number through
}

func newGate(space string, l Limits) *gate {
	return &gate{turns: fair.NewTurns(max(l.Concurrent, 0), l.Queue), space: space, limit: l.Concurrent, rate: l.Rate}
}

// enter returns nil once there is room; leave must follow. It gives up when ctx
// is done, and at once when too many wait.
func (g *gate) enter(ctx context.Context) error {
	if after, ok := g.rates.Take("", g.rate, time.Now()); !ok {
		return access.Exceeded{What: "calls", Of: "the upstream " + g.space, Most: g.rate, Per: "minute", After: after}.Fault()
	}
	err := g.turns.Enter(ctx, access.Of(ctx).ID)
	if errors.Is(err, fair.ErrFull) {
		return fault.New(fault.Limit, "%d calls run and %d wait", g.limit, g.turns.Waiting()).
			WithHint("try again when some have finished, or raise the namespace's limit")
	}
	return err
}

func (g *gate) leave() { g.turns.Leave() }

func (g *gate) waiting() int { return g.turns.Waiting() }
