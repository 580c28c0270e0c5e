package catalog

import (
	"container/list"
	"context"
	"sync"

	"github.com/luanette/luanette/internal/fault"
)

// gate lets so many through at a time, the others in the order they came.
type gate struct {
	limit int // zero lets everybody through
	queue int // how many may wait

	mu      sync.Mutex
	inside  int
	waiters list.List // of chan struct{}, closed to let one in
}

// enter returns nil once there is room; leave must follow. It gives up when ctx
// is done, and at once when too many wait.
func (g *gate) enter(ctx context.Context) error {
	if g.limit <= 0 {
		return nil
	}
	g.mu.Lock()
	if g.inside < g.limit && g.waiters.Len() == 0 {
		g.inside++
		g.mu.Unlock()
		return nil
	}
	if g.waiters.Len() >= g.queue {
		g.mu.Unlock()
		return fault.New(fault.Limit, "%d calls run and %d wait", g.limit, g.queue).
			WithHint("try again when some have finished, or raise the namespace's limit")
	}
	turn := make(chan struct{})
	place := g.waiters.PushBack(turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-turn: // let in while giving up: the room goes to the next
		g.pass()
	default:
		g.waiters.Remove(place)
	}
	return context.Cause(ctx)
}

func (g *gate) leave() {
	if g.limit <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass()
}

// pass gives the room of one who leaves to the first who waits; mu is held.
func (g *gate) pass() {
	first := g.waiters.Front()
	if first == nil {
		g.inside--
		return
	}
	close(g.waiters.Remove(first).(chan struct{}))
}

func (g *gate) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiters.Len()
}
