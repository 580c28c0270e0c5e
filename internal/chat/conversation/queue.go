package conversation

import (
	"context"
	"crypto/rand"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// personQueue is the queue of a person's messages that this node answers. It exists while it is
// in use. Whether messages on other nodes come first is decided by the database: see
// begin.
type personQueue struct {
	users int // number of users; guarded by the Service

	mu      sync.Mutex // held while a message is stored, so that the stored order is that of the queue
	waiting []*Turn
	current *Turn // being answered

	signal  sync.Mutex
	changed chan struct{} // closed and replaced when another node changed the person's messages
}

// enter returns a person's queue and counts a user; leave releases it.
func (r *Service) enter(p Person) *personQueue {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines[p]
	if l == nil {
		l = &personQueue{changed: make(chan struct{})}
		r.lines[p] = l
	}
	l.users++
	return l
}

func (r *Service) leave(p Person, l *personQueue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(r.lines, p)
	}
}

// later returns a channel that is closed at the next change on another node.
func (l *personQueue) later() <-chan struct{} {
	l.signal.Lock()
	defer l.signal.Unlock()
	return l.changed
}

func (l *personQueue) broadcast() {
	l.signal.Lock()
	defer l.signal.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

// Send accepts a message: it is stored when Send returns, and will be answered even if
// the client disconnects or this node stops. A message with the key of an earlier one
// returns the turn of that one.
func (r *Service) Send(ctx context.Context, m Message) (*Turn, error) {
	if err := m.Person.Check(); err != nil {
		return nil, err
	}
	if r.isDraining() {
		return nil, errLeaving
	}
	l := r.enter(m.Person)
	defer r.leave(m.Person, l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Key != "" {
		if t, err := r.earlier(ctx, l, m); t != nil || err != nil {
			return t, err
		}
	}
	t := newTurn("msg_"+rand.Text(), m)
	twin, err := r.insert(ctx, t)
	if twin || err != nil {
		if twin { // sent to another node at the same time
			return r.elsewhere(ctx, m)
		}
		return nil, err
	}
	r.join(l, t)
	return t, nil
}

// earlier returns the turn of a message with the same key, or nil. l.mu is held.
func (r *Service) earlier(ctx context.Context, l *personQueue, m Message) (*Turn, error) {
	for _, t := range append([]*Turn{l.current}, l.waiting...) {
		if t != nil && t.Message.Key == m.Key {
			return t, nil
		}
	}
	return r.elsewhere(ctx, m)
}

// join appends a turn to its queue and makes sure that a goroutine works on it. l.mu is
// held.
func (r *Service) join(l *personQueue, t *Turn) {
	l.waiting = append(l.waiting, t)
	if l.current != nil {
		return
	}
	l.current = l.take()
	r.enter(t.Message.Person)
	r.work.Go(func() { r.answer(t.Message.Person, l) })
}

// take removes the first waiting turn, or returns nil. l.mu is held.
func (l *personQueue) take() *Turn {
	if len(l.waiting) == 0 {
		return nil
	}
	first := l.waiting[0]
	l.waiting = l.waiting[1:]
	return first
}

// answer works through a queue until it is empty.
func (r *Service) answer(p Person, l *personQueue) {
	defer r.leave(p, l)
	for t := l.current; t != nil; {
		r.run(r.background, l, t)
		l.mu.Lock()
		l.current = l.take()
		t = l.current
		l.mu.Unlock()
	}
}

func tooMany(depth int) error {
	return fault.New(fault.Limit, "%d messages are waiting already", depth).
		WithHint("wait until an earlier one is answered, then try again")
}

var errLeaving = fault.New(fault.Unavailable, "the server is shutting down").
	WithHint("try again: another node answers, or this one after its restart")
