package zmtp

import (
	"context"
	"errors"
	"sync"
)

// What a queue does not take.
var (
	errQueueClosed = errors.New("the queue is closed")
	errQueueFull   = errors.New("the queue is full")
)

// queue holds messages between two goroutines, limited in number and in bytes. A
// message counts until it is released, which may be later than it is received.
type queue struct {
	items chan Message  // sent to under mu
	done  chan struct{} // closed with the queue
	space chan struct{} // holds a token when there may be space again
	empty chan struct{} // holds a token when the queue may be empty

	mu     sync.Mutex
	closed bool
	bytes  int
	limit  int
}

func newQueue(messages, bytes int) *queue {
	return &queue{
		items: make(chan Message, messages),
		done:  make(chan struct{}),
		space: make(chan struct{}, 1),
		empty: make(chan struct{}, 1),
		limit: bytes,
	}
}

// offer adds m, or returns errQueueFull. A message larger than the limit fits into an
// empty queue.
func (q *queue) offer(m Message) error {
	size := m.size()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return errQueueClosed
	}
	if q.bytes > 0 && q.bytes+size > q.limit {
		return errQueueFull
	}
	select {
	case q.items <- m:
		q.bytes += size
		return nil
	default:
		return errQueueFull
	}
}

// put adds m, waiting for space until ctx ends or the queue is closed.
func (q *queue) put(ctx context.Context, m Message) error {
	for {
		err := q.offer(m)
		if !errors.Is(err, errQueueFull) {
			signal(q.space) // there may be space for the next waiter
			return err
		}
		select {
		case <-q.space:
		case <-q.done:
			return errQueueClosed
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

// release removes the size of messages that were received and handled.
func (q *queue) release(bytes int) {
	q.mu.Lock()
	q.bytes -= bytes
	left := q.bytes
	q.mu.Unlock()
	signal(q.space)
	if left == 0 {
		signal(q.empty)
	}
}

// waitEmpty waits until everything is released or the queue is closed.
func (q *queue) waitEmpty(ctx context.Context) error {
	for {
		q.mu.Lock()
		left := q.bytes
		q.mu.Unlock()
		if left == 0 {
			signal(q.empty) // for other waiters
			return nil
		}
		select {
		case <-q.empty:
		case <-q.done:
			return nil
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

// close closes the queue and returns the messages left in it.
func (q *queue) close() (left []Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	close(q.done)
	for {
		select {
		case m := <-q.items:
			left = append(left, m)
		default:
			return left
		}
	}
}

// signal leaves a token unless there is one.
func signal(tokens chan struct{}) {
	select {
	case tokens <- struct{}{}:
	default:
	}
}
