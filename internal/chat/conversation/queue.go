package conversation

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// personQueue is the queue of a person's messages that this node answers. It exists while it is
// in use. Whether messages on other nodes come first is decided by the database: see
// begin.
type personQueue struct {
	users  int      // number of users; guarded by the Service
	places []*Place // of messages that are not stored yet; guarded by the Service

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
	return r.enterLocked(p)
}

func (r *Service) enterLocked(p Person) *personQueue {
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
// returns the turn of that one, or tries it again if it failed.
func (r *Service) Send(ctx context.Context, m Message) (*Turn, error) {
	place := m.Place
	if place == nil {
		place = r.Reserve(m.Person, time.Now())
	}
	defer place.Release()
	if err := m.Person.Check(); err != nil {
		return nil, err
	}
	if r.isDraining() {
		return nil, errLeaving
	}
	place.wait()
	l := place.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Key != "" {
		if t, err := r.earlier(ctx, l, m); t != nil || err != nil {
			return t, err
		}
	}
	if err := r.startConversation(ctx, m); err != nil {
		return nil, err
	}
	t := newTurn("msg_"+rand.Text(), m)
	if r.options.CarryTrace != nil {
		t.trace = r.options.CarryTrace(ctx)
	}
	twin, err := r.insert(ctx, t)
	if twin || err != nil {
		if twin { // sent to another node at the same time
			return r.again(ctx, l, m)
		}
		return nil, err
	}
	r.join(l, t)
	return t, nil
}

// earlier returns the turn of a message with the same key, or nil. l.mu is held.
func (r *Service) earlier(ctx context.Context, l *personQueue, m Message) (*Turn, error) {
	for _, t := range append([]*Turn{l.current}, l.waiting...) {
		if t != nil && (t.Message.Key == m.Key || t.ID == m.Key) {
			return t, sameMessage(t.Message, m)
		}
	}
	return r.again(ctx, l, m)
}

// again returns the turn of a message that was sent before, to this node or another, or
// nil. One that failed is tried again, as the person's last message. l.mu is held.
func (r *Service) again(ctx context.Context, l *personQueue, m Message) (*Turn, error) {
	t, status, err := r.lookUp(ctx, m)
	if t == nil || err != nil {
		return nil, err
	}
	if err := sameMessage(t.Message, m); err != nil {
		return nil, err
	}
	if status == failed {
		retried, err := r.retry(ctx, t, m)
		if err != nil {
			return nil, err
		}
		if retried {
			r.join(l, t)
			return t, nil
		}
	}
	r.follow(t)
	return t, nil
}

// sameMessage refuses a key that belongs to another message.
func sameMessage(before, now Message) error {
	sameText := before.Text == now.Text || before.Audio != "" && before.Audio == now.Audio
	if sameText && before.Conversation == now.Conversation && sameAttachments(before.Attachments, now.Attachments) {
		return nil
	}
	return fault.New(fault.Conflict, "the message_key %q belongs to another message", now.Key).
		WithHint("use a new key for each message, and the same key only to send the same message again")
}

// join appends a turn to its queue and makes sure that a goroutine works on it. l.mu is
// held.
func (r *Service) join(l *personQueue, t *Turn) {
	r.register(t)
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
