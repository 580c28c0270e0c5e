package talk

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/agent"
	"github.com/luanette/luanette/internal/fault"
)

// line is where a person's messages wait. It exists while somebody uses it.
type line struct {
	users int // who hold it; guarded by the room

	mu      sync.Mutex // held while a message is stored, so that the order on disk is that of the line
	waiting []*Turn
	current *Turn // being answered
}

// enter takes hold of a person's line; leave lets go of it.
func (r *Room) enter(p Person) *line {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines[p]
	if l == nil {
		l = &line{}
		r.lines[p] = l
	}
	l.users++
	return l
}

func (r *Room) leave(p Person, l *line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(r.lines, p)
	}
}

// Say accepts a message: it is on disk when Say returns, and will be answered
// whatever becomes of whoever asked. A message with the key of an earlier one is
// that one.
func (r *Room) Say(ctx context.Context, m Message) (*Turn, error) {
	if err := m.Person.Check(); err != nil {
		return nil, err
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
	if len(l.waiting) >= r.options.Depth {
		return nil, fault.New(fault.Limit, "%d messages are waiting in line already", r.options.Depth).
			WithHint("wait until an earlier one is answered, then try again")
	}
	t := newTurn("msg_"+rand.Text(), m)
	t.Queued = l.current != nil
	if err := r.insert(ctx, t); err != nil {
		return nil, err
	}
	r.join(l, t)
	return t, nil
}

// earlier finds the turn of a message that was said before, or nil. l.mu is held.
func (r *Room) earlier(ctx context.Context, l *line, m Message) (*Turn, error) {
	for _, t := range append([]*Turn{l.current}, l.waiting...) {
		if t != nil && t.Message.Key == m.Key {
			return t, nil
		}
	}
	return r.finished(ctx, m)
}

// join puts a turn at the end of its line and sees that somebody works on it.
// l.mu is held.
func (r *Room) join(l *line, t *Turn) {
	l.waiting = append(l.waiting, t)
	if l.current != nil {
		return
	}
	l.current = l.take()
	r.enter(t.Message.Person)
	r.work.Go(func() { r.answer(t.Message.Person, l) })
}

// take removes the first of those who wait, or returns nil. l.mu is held.
func (l *line) take() *Turn {
	if len(l.waiting) == 0 {
		return nil
	}
	first := l.waiting[0]
	l.waiting = l.waiting[1:]
	return first
}

// answer works through a line until it is empty.
func (r *Room) answer(p Person, l *line) {
	defer r.leave(p, l)
	for t := l.current; t != nil; {
		r.run(r.background, t)
		l.mu.Lock()
		l.current = l.take()
		t = l.current
		l.mu.Unlock()
	}
}

// run answers one message and stores the outcome before anybody hears of it.
func (r *Room) run(ctx context.Context, t *Turn) {
	select {
	case r.places <- struct{}{}:
		defer func() { <-r.places }()
	case <-ctx.Done():
	}
	reply, err := r.attempt(ctx, t)
	if ctx.Err() != nil { // the house closes; the turn stays as it is on disk
		t.end(agent.Reply{}, fault.New(fault.Unavailable, "the server is shutting down").
			WithHint("the message is kept and will be answered after the restart"))
		return
	}
	ended := r.now()
	if failed := r.finish(context.WithoutCancel(ctx), t, reply, err, ended); failed != nil {
		r.options.Log.ErrorContext(ctx, "the outcome of a turn could not be stored", "request_id", t.Message.RequestID, "error", failed)
		err = failed
	}
	t.end(reply, err)
}

// attempt runs the agent.
func (r *Room) attempt(ctx context.Context, t *Turn) (reply agent.Reply, err error) {
	if ctx.Err() != nil {
		return reply, ctx.Err()
	}
	if t.attempts >= r.options.Attempts {
		return reply, fault.New(fault.Internal, "answering was interrupted %d times", t.attempts).
			WithHint("send the message again")
	}
	if err := r.begin(ctx, t); err != nil {
		return reply, err
	}
	request, err := r.request(ctx, t)
	if err != nil {
		return reply, err
	}
	r.options.Bus.Publish(Started{Turn: t.ID, Person: t.Message.Person.String(), RequestID: t.Message.RequestID})
	began := time.Now()
	reply, err = r.agent.Turn(ctx, request, t.emit)
	r.options.Bus.Publish(finished(t, reply, err, time.Since(began)))
	return reply, err
}
