package queue

import (
	"container/list"
	"context"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// DefaultLaneDepth is how many may wait in one lane.
const DefaultLaneDepth = 50

// LaneOptions are the choices for a set of lanes. The zero value is ready to use.
type LaneOptions struct {
	// Depth is how many may wait per key behind the one that runs. Zero means
	// DefaultLaneDepth; below zero nobody waits: a busy lane refuses.
	Depth int
}

// Lanes is a set of lanes, made as keys are used. It is safe for concurrent use
// and starts no goroutines.
type Lanes struct {
	depth int

	mu   sync.Mutex
	busy map[string]*list.List // keys that have somebody running → waiters, each a chan struct{}
}

// NewLanes makes a set of lanes.
func NewLanes(o LaneOptions) *Lanes {
	if o.Depth == 0 {
		o.Depth = DefaultLaneDepth
	}
	return &Lanes{depth: max(o.Depth, 0), busy: make(map[string]*list.List)}
}

// Do runs f when all that came before it under the same key have finished, and
// returns what f returns. It gives up its place when ctx is done before its
// turn, and refuses with limit_exceeded when Depth are waiting already; f has
// not run then. Calling Do from within f under the same key waits for itself.
func (l *Lanes) Do(ctx context.Context, key string, f func(context.Context) error) error {
	if ctx.Err() != nil {
		return calledOff(ctx)
	}
	if err := l.enter(ctx, key); err != nil {
		return err
	}
	defer l.leave(key)
	return f(ctx)
}

// Len is how many are in key's lane: the one that runs and those who wait.
func (l *Lanes) Len(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiters, ok := l.busy[key]
	if !ok {
		return 0
	}
	return 1 + waiters.Len()
}

// enter returns nil once it is our turn.
func (l *Lanes) enter(ctx context.Context, key string) error {
	place, err := l.queue(key)
	if place == nil {
		return err
	}
	turn := place.Value.(chan struct{})
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !l.withdraw(key, place) {
		l.leave(key) // our turn came at the same moment: hand it on
	}
	return calledOff(ctx)
}

// queue takes a place in key's lane. A nil place without error means that the
// lane was free and is now ours.
func (l *Lanes) queue(key string) (*list.Element, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiters, ok := l.busy[key]
	if !ok {
		l.busy[key] = list.New()
		return nil, nil
	}
	if waiters.Len() >= l.depth {
		return nil, tooDeep(l.depth)
	}
	return waiters.PushBack(make(chan struct{})), nil
}

// withdraw gives up a place; it reports false when the turn had come already.
func (l *Lanes) withdraw(key string, place *list.Element) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-place.Value.(chan struct{}):
		return false
	default:
		l.busy[key].Remove(place)
		return true
	}
}

// leave gives the turn to the first waiter, or the lane back.
func (l *Lanes) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiters := l.busy[key]
	first := waiters.Front()
	if first == nil {
		delete(l.busy, key)
		return
	}
	close(waiters.Remove(first).(chan struct{}))
}

func tooDeep(depth int) error {
	return fault.New(fault.Limit, "%d calls are waiting in line already", depth).
		WithHint("wait until an earlier call has finished, then try again").
		WithDetails(map[string]int{"depth": depth})
}

// calledOff tells why ctx ended the wait. A plain cause keeps the code that
// contexts have: cancelled or timeout.
func calledOff(ctx context.Context) error {
	cause := context.Cause(ctx)
	code := fault.CodeOf(cause)
	if code == fault.Internal {
		code = fault.CodeOf(ctx.Err())
	}
	return fault.Wrap(code, cause, "wait in line")
}
