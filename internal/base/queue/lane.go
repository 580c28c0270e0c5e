package queue

import (
	"container/list"
	"context"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// DefaultLaneDepth is how many callers may wait in one lane.
const DefaultLaneDepth = 50

// LaneOptions are the options of a set of lanes. The zero value is ready to use.
type LaneOptions struct {
	// Depth is how many callers may wait per key while one runs. Zero means
	// DefaultLaneDepth; below zero a busy lane refuses at once.
	Depth int
}

// Lanes is a set of lanes, created as keys are used. It is safe for concurrent use
// and starts no goroutines.
type Lanes struct {
	depth int

	mu   sync.Mutex
	busy map[string]*list.List // keys with a running function → waiting callers, each a chan struct{}
}

// NewLanes makes a set of lanes.
func NewLanes(o LaneOptions) *Lanes {
	if o.Depth == 0 {
		o.Depth = DefaultLaneDepth
	}
	return &Lanes{depth: max(o.Depth, 0), busy: make(map[string]*list.List)}
}

// Do runs f after all earlier calls with the same key, and returns what f returns. If
// ctx is done before, or if Depth calls wait already (limit_exceeded), f is not run.
// Calling Do from within f with the same key deadlocks.
func (l *Lanes) Do(ctx context.Context, key string, f func(context.Context) error) error {
	if ctx.Err() != nil {
		return waitError(ctx)
	}
	if err := l.enter(ctx, key); err != nil {
		return err
	}
	defer l.leave(key)
	return f(ctx)
}

// Len is the number of running and waiting calls of a key.
func (l *Lanes) Len(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiters, ok := l.busy[key]
	if !ok {
		return 0
	}
	return 1 + waiters.Len()
}

// enter waits until the lane is free.
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
		l.leave(key) // the lane became free at the same moment: pass it on
	}
	return waitError(ctx)
}

// queue appends the caller to key's lane. A nil place without error means that the lane
// was free and the caller has it now.
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

// withdraw removes a waiting caller; false means that it has the lane already.
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

// leave passes the lane to the first waiting caller, or frees it.
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
	return fault.New(fault.Limit, "%d calls are already waiting in the queue", depth).
		WithHint("wait until an earlier call has finished, then try again").
		WithDetails(map[string]int{"depth": depth})
}

// waitError is the error of a wait that ctx ended. A cause without a code gets that of
// the context: cancelled or timeout.
func waitError(ctx context.Context) error {
	cause := context.Cause(ctx)
	code := fault.CodeOf(cause)
	if code == fault.Internal {
		code = fault.CodeOf(ctx.Err())
	}
	return fault.Wrap(code, cause, "wait in the queue")
}
