// Package queue orders work that cannot all run at once. Lanes run one thing at a
// time per key, first come first served; Turns shares a number of places fairly
// between keys; Rates limits how often a key may begin.
package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrFull is what those hear for whom there is no room to wait.
var ErrFull = errors.New("too many wait")

// FairSemaphore lets so many in at a time. Of those who wait, a free place goes to each
// name in turn, and of one name to who came first.
type FairSemaphore struct {
	free  bool // everybody is let in, and nobody counted
	queue int  // how many may wait

	mu      sync.Mutex
	limit   int
	inside  int
	waiting int
	lines   map[string][]chan struct{} // closed to let one in
	order   []string                   // names with a line, the next to be served first
}

// NewFairSemaphore makes turns for limit places and queue who wait. A limit below 1 lets
// everybody in, for good.
func NewFairSemaphore(limit, queue int) *FairSemaphore {
	return &FairSemaphore{free: limit <= 0, limit: limit, queue: queue, lines: map[string][]chan struct{}{}}
}

// SetLimit changes how many are let in at a time. Who waits and has room now is let
// in at once; nobody who is inside is put out.
func (t *FairSemaphore) SetLimit(limit int) {
	if t.free {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit = max(limit, 1)
	t.admit()
}

// Acquire returns nil once there is room; Leave must follow. It gives up when ctx is
// done, and at once with ErrFull when too many wait.
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
	case <-turn: // let in while giving up: the room goes to the next
		t.inside--
		t.admit()
	default:
		t.drop(name, turn)
	}
	return context.Cause(ctx)
}

// Release gives the place back.
func (t *FairSemaphore) Release() {
	if t.free {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inside--
	t.admit()
}

// admit lets in those next in turn for whom there is room; mu is held.
func (t *FairSemaphore) admit() {
	for t.inside < t.limit && len(t.order) > 0 {
		t.inside++
		t.next()
	}
}

// next takes the next out of its line and lets it in; mu is held.
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

// drop takes one who gave up out of its line; mu is held.
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

// Waiting is how many wait.
func (t *FairSemaphore) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting
}

// Idle tells whether nobody is inside or waits.
func (t *FairSemaphore) Idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inside == 0 && t.waiting == 0
}
