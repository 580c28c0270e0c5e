package zmtp

import (
	"context"
	"errors"
	"sync"
)

// errGone is a queue nobody empties any more.
var errGone = errors.New("the queue is closed")

// queue holds messages between two goroutines, bounded in number and in bytes.
// A message counts until it is released, which may be later than it is taken.
type queue struct {
	items chan Message  // sent to under mu; received from by whoever takes
	gone  chan struct{} // closed with the queue
	room  chan struct{} // holds a token when there may be room again
	empty chan struct{} // holds a token when there may be nothing left

	mu     sync.Mutex
	closed bool
	bytes  int
	limit  int
}

func newQueue(messages, bytes int) *queue {
	return &queue{
		items: make(chan Message, messages),
		gone:  make(chan struct{}),
		room:  make(chan struct{}, 1),
		empty: make(chan struct{}, 1),
		limit: bytes,
	}
}

// offer adds m, or says ErrFull. A message larger than the bound fits when it is
// alone.
func (q *queue) offer(m Message) error {
	size := m.size()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return errGone
	}
	if q.bytes > 0 && q.bytes+size > q.limit {
		return ErrFull
	}
	select {
	case q.items <- m:
		q.bytes += size
		return nil
	default:
		return ErrFull
	}
}

// put adds m, waiting for room until ctx or the queue ends.
func (q *queue) put(ctx context.Context, m Message) error {
	for {
		err := q.offer(m)
		if !errors.Is(err, ErrFull) {
			signal(q.room) // there may be room for the next in line
			return err
		}
		select {
		case <-q.room:
		case <-q.gone:
			return errGone
		case <-ctx.Done():
			return expired(ctx)
		}
	}
}

// release says that messages of so many bytes, taken before, are dealt with.
func (q *queue) release(bytes int) {
	q.mu.Lock()
	q.bytes -= bytes
	left := q.bytes
	q.mu.Unlock()
	signal(q.room)
	if left == 0 {
		signal(q.empty)
	}
}

// drained waits until everything is released or the queue ends.
func (q *queue) drained(ctx context.Context) error {
	for {
		q.mu.Lock()
		left := q.bytes
		q.mu.Unlock()
		if left == 0 {
			signal(q.empty) // for others who wait
			return nil
		}
		select {
		case <-q.empty:
		case <-q.gone:
			return nil
		case <-ctx.Done():
			return expired(ctx)
		}
	}
}

// close ends the queue and returns what was not taken.
func (q *queue) close() (left []Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	close(q.gone)
	for {
		select {
		case m := <-q.items:
			left = append(left, m)
		default:
			return left
		}
	}
}

// signal leaves a token unless one is there.
func signal(tokens chan struct{}) {
	select {
	case tokens <- struct{}{}:
	default:
	}
}
