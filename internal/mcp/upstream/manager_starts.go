package upstream

import (
	"slices"
	"sync"
	"time"
)

// startQueue bounds how many processes start at once, so that many slow starts do
// not make each other time out. Those that a call waits for come first.
type startQueue struct {
	mu    sync.Mutex
	free  int
	queue []*startTurn
}

// startTurn is the place of one start in the queue, and then its slot.
type startTurn struct {
	ready  chan struct{} // closed when it has a slot
	needed bool          // a call waits for it
	left   bool
}

// maxSlotTime is how long a start keeps its slot. One that takes longer mostly
// waits for something else than the processor, and must not hold up the others.
const maxSlotTime = 30 * time.Second

func newStartQueue(limit int) *startQueue { return &startQueue{free: limit} }

// join takes a slot, or the last place in the queue. The caller calls leave.
func (q *startQueue) join() *startTurn {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &startTurn{ready: make(chan struct{})}
	q.queue = append(q.queue, t)
	q.next()
	return t
}

// prefer moves a turn before those that no call waits for.
func (q *startQueue) prefer(t *startTurn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.needed = true
}

// leave gives up the slot, or the place in the queue.
func (q *startQueue) leave(t *startTurn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.left {
		return
	}
	t.left = true
	if at := slices.Index(q.queue, t); at >= 0 {
		q.queue = slices.Delete(q.queue, at, at+1)
		return
	}
	q.free++
	q.next()
}

// next gives free slots to those who wait; q.mu is held.
func (q *startQueue) next() {
	for q.free > 0 && len(q.queue) > 0 {
		at := max(slices.IndexFunc(q.queue, func(t *startTurn) bool { return t.needed }), 0)
		close(q.queue[at].ready)
		q.queue = slices.Delete(q.queue, at, at+1)
		q.free--
	}
}
