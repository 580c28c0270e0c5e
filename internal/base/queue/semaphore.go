// Package queue orders work that cannot all run at once. Lanes run one function at a
// time per key, in order of arrival; FairSemaphore shares a number of slots fairly
// between names; RateLimiter limits how often a name may start.
package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrFull is returned when the queue of waiting callers is full.
var ErrFull = errors.New("the queue is full")

// FairSemaphore has a limited number of slots. A free slot goes to the names with
// waiting callers in turn, and within a name to the caller that came first.
type FairSemaphore struct {
	free  bool // no limit, nothing is counted
	queue int  // how many may wait

	mu      sync.Mutex
	limit   int
	inside  int
	waiting int
	lines   map[string][]chan struct{} // closed when the caller gets a slot
	order   []string                   // names with waiting callers, the next one first
}

// NewFairSemaphore makes a semaphore with limit slots and at most queue waiting
// callers. With a limit below 1 it never blocks, and SetLimit has no effect.
func NewFairSemaphore(limit, queue int) *FairSemaphore {
	return &FairSemaphore{free: limit <= 0, limit: limit, queue: queue, lines: map[string][]chan struct{}{}}
}

// SetLimit changes the number of slots. New slots go to waiting callers at once; slots
// in use are not revoked.
func (t *FairSemaphore) SetLimit(limit int) {
	if t.free {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit = max(limit, 1)
	t.admit()
}

// Acquire waits for a slot. After a nil error the caller must call Release. It returns
// the cause of ctx when ctx is done, and ErrFull at once when the queue is full.
func (t *FairSemaphore) Acquire(ctx context.Context, name string) error {
	if t.free {
		return nil
	}
	t.mu.Lock()
	if t.inside < t.limit && t.waiting == 0 {
		t.inside++
		t.mu.Unlock()
		return nil
	}
	if t.waiting >= t.queue {
		t.mu.Unlock()
		return ErrFull
	}
	turn := make(chan struct{})
	if len(t.lines[name]) == 0 {
		t.order = append(t.order, name)
	}
	t.lines[name] = append(t.lines[name], turn)
	t.waiting++
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-turn: // got a slot while giving up: pass it on
		t.inside--
		t.admit()
	default:
		t.drop(name, turn)
	}
	return context.Cause(ctx)
}

// Release returns a slot.
func (t *FairSemaphore) Release() {
	if t.free {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inside--
	t.admit()
}

// admit gives free slots to waiting callers; mu is held.
func (t *FairSemaphore) admit() {
	for t.inside < t.limit && len(t.order) > 0 {
		t.inside++
		t.next()
	}
}

// next gives a slot to the next waiting caller; mu is held.
func (t *FairSemaphore) next() {
	name := t.order[0]
	t.order = t.order[1:]
	turn := t.lines[name][0]
	if rest := t.lines[name][1:]; len(rest) > 0 {
		t.lines[name] = rest
		t.order = append(t.order, name)
	} else {
		delete(t.lines, name)
	}
	t.waiting--
	close(turn)
}

// drop removes a caller that gave up; mu is held.
func (t *FairSemaphore) drop(name string, turn chan struct{}) {
	line := slices.DeleteFunc(t.lines[name], func(c chan struct{}) bool { return c == turn })
	t.waiting--
	if len(line) > 0 {
		t.lines[name] = line
		return
	}
	delete(t.lines, name)
	t.order = slices.DeleteFunc(t.order, func(n string) bool { return n == name })
}

// Waiting is the number of waiting callers.
func (t *FairSemaphore) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting
}

// Idle reports whether no slot is in use and no caller waits.
func (t *FairSemaphore) Idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inside == 0 && t.waiting == 0
}
