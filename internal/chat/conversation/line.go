package conversation

import (
	"context"
	"crypto/rand"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// line is where a person's messages wait that this node answers. It exists while
// somebody uses it. Whether others, on other nodes, are before them is for the
// database to say: see begin.
type line struct {
	users int // who hold it; guarded by the room

	mu      sync.Mutex // held while a message is stored, so that the order on disk is that of the line
	waiting []*Turn
	current *Turn // being answered

	signal sync.Mutex
	news   chan struct{} // closed and replaced when something happened to the person's messages elsewhere
}

// enter takes hold of a person's line; leave lets go of it.
func (r *Service) enter(p Person) *line {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines[p]
	if l == nil {
		l = &line{news: make(chan struct{})}
		r.lines[p] = l
	}
	l.users++
	return l
}

func (r *Service) leave(p Person, l *line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(r.lines, p)
	}
}

// later is closed when there is news.
func (l *line) later() <-chan struct{} {
	l.signal.Lock()
	defer l.signal.Unlock()
	return l.news
}

func (l *line) tell() {
	l.signal.Lock()
	defer l.signal.Unlock()
	close(l.news)
	l.news = make(chan struct{})
}

// Send accepts a message: it is on disk when Say returns, and will be answered
// whatever becomes of whoever asked, or of this node. A message with the key of an
// earlier one is that one.
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
		if twin { // said to another node at the same moment
			return r.elsewhere(ctx, m)
		}
		return nil, err
	}
	r.join(l, t)
	return t, nil
}

// earlier finds the turn of a message that was said before, or nil. l.mu is held.
func (r *Service) earlier(ctx context.Context, l *line, m Message) (*Turn, error) {
	for _, t := range append([]*Turn{l.current}, l.waiting...) {
		if t != nil && t.Message.Key == m.Key {
			return t, nil
		}
	}
	return r.elsewhere(ctx, m)
}

// join puts a turn at the end of its line and sees that somebody works on it.
// l.mu is held.
func (r *Service) join(l *line, t *Turn) {
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
func (r *Service) answer(p Person, l *line) {
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
	return fault.New(fault.Limit, "%d messages are waiting in line already", depth).
		WithHint("wait until an earlier one is answered, then try again")
}

var errLeaving = fault.New(fault.Unavailable, "the server is shutting down").
	WithHint("try again: another node answers, or this one after its restart")
