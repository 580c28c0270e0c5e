package upstream

import (
	"sync"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// dispatcher matches responses to requests for transports on which all responses
// come over one stream. Its owner passes every message to receive, and calls fail
// when the stream ends.
type dispatcher struct {
	hooks Hooks
	done  chan struct{}

	mu      sync.Mutex
	waiting map[wire.ID]chan response
	err     error
}

// response is how a call ended.
type response struct {
	message wire.Message
	err     error
}

func newDispatcher(hooks Hooks) *dispatcher {
	return &dispatcher{hooks: hooks, done: make(chan struct{}), waiting: map[wire.ID]chan response{}}
}

// expect registers a request before it is sent. The caller calls forget.
func (d *dispatcher) expect(id wire.ID) (<-chan response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return nil, notSent(d.err)
	}
	answer := make(chan response, 1)
	d.waiting[id] = answer
	return answer, nil
}

func (d *dispatcher) forget(id wire.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, id)
}

// receive takes one message of the stream.
func (d *dispatcher) receive(data []byte) {
	m, err := parse(data)
	switch {
	case err != nil:
		d.hooks.Garbage(excerpt(data))
	case m.IsResponse() && m.ID == wire.NullID:
		d.hooks.Garbage(excerpt(data)) // the server could not parse one of our messages, and does not say which
	case m.IsResponse():
		d.resolve(m.ID, response{message: m})
	default:
		d.hooks.Received("", m)
	}
}

// resolve ends the call of that id, if it is still waiting.
func (d *dispatcher) resolve(id wire.ID, r response) {
	d.mu.Lock()
	answer := d.waiting[id]
	delete(d.waiting, id)
	d.mu.Unlock()
	if answer != nil {
		answer <- r
	}
}

// fail ends the transport; the first reason stays.
func (d *dispatcher) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
		close(d.done)
	}
}

// Done implements Transport.
func (d *dispatcher) Done() <-chan struct{} { return d.done }

// Err implements Transport.
func (d *dispatcher) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// SetRevision implements Transport: there is no header that carries it.
func (d *dispatcher) SetRevision(string) {}
