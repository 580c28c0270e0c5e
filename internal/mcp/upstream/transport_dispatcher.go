package upstream

import (
	"sync"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// dispatcher matches responses to requests for links on which all responses
// come by one stream. Its owner feeds it what arrives and ends it.
type dispatcher struct {
	hooks Hooks
	done  chan struct{}

	mu      sync.Mutex
	waiting map[wire.ID]chan reply
	err     error
}

// reply is how a call ended.
type reply struct {
	message wire.Message
	err     error
}

func newDispatcher(hooks Hooks) *dispatcher {
	return &dispatcher{hooks: hooks, done: make(chan struct{}), waiting: map[wire.ID]chan reply{}}
}

// expect announces a request. The caller forgets it in the end.
func (b *dispatcher) expect(id wire.ID) (<-chan reply, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return nil, notSent(b.err)
	}
	answer := make(chan reply, 1)
	b.waiting[id] = answer
	return answer, nil
}

func (b *dispatcher) forget(id wire.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, id)
}

// receive takes one message off the stream.
func (b *dispatcher) receive(data []byte) {
	m, err := parse(data)
	switch {
	case err != nil:
		b.hooks.Garbage(excerpt(data))
	case m.IsResponse() && m.ID == wire.NullID:
		b.hooks.Garbage(excerpt(data)) // it could not read something, and cannot say what
	case m.IsResponse():
		b.resolve(m.ID, reply{message: m})
	default:
		b.hooks.Received("", m)
	}
}

// resolve ends the call of that id; one nobody waits for any more is dropped.
func (b *dispatcher) resolve(id wire.ID, r reply) {
	b.mu.Lock()
	answer := b.waiting[id]
	delete(b.waiting, id)
	b.mu.Unlock()
	if answer != nil {
		answer <- r
	}
}

// failSession ends the link; the first reason stays.
func (b *dispatcher) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
		close(b.done)
	}
}

// Done implements Link.
func (b *dispatcher) Done() <-chan struct{} { return b.done }

// Err implements Link.
func (b *dispatcher) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// SetRevision implements Link: such links have no header to say it in.
func (b *dispatcher) SetRevision(string) {}
