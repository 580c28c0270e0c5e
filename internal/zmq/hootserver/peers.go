package hootserver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// Why a call is cancelled.
var (
	errCancelled    = errors.New("the client cancelled the call")
	errDisconnected = errors.New("the client disconnected")
	errStopping     = errors.New("the backend is shutting down")
)

// Why a call is refused.
var (
	errBusy      = errors.New("too many calls are running")
	errDuplicate = errors.New("a call with that id is already running")
)

// peers are the connected clients and their running calls.
type peers struct {
	limit int

	mu      sync.Mutex
	changed sync.Cond // signalled when no call is running any more and when a client disconnects
	byName  map[string]*peer
	running int
	closed  bool
}

// peer is one client. The mutex of all guards its fields.
type peer struct {
	all     *peers
	calls   map[hootproto.ID]context.CancelCauseFunc
	address *address       // nil if it sent no Ready
	beats   []hootproto.ID // the heartbeats in HOOT01 that were answered last
}

// address is where and in which version of the protocol a client is reached.
type address struct {
	identity [][]byte
	protocol string
}

func newPeers(limit int) *peers {
	p := &peers{limit: limit, byName: map[string]*peer{}}
	p.changed.L = &p.mu
	return p
}

func (p *peers) add(identity string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.byName[identity]; old != nil {
		old.cancel(errDisconnected)
	}
	p.byName[identity] = &peer{all: p, calls: map[hootproto.ID]context.CancelCauseFunc{}}
}

func (p *peers) remove(identity string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.byName[identity]; old != nil {
		old.cancel(errDisconnected)
		delete(p.byName, identity)
		p.changed.Broadcast()
	}
}

// find returns the client that sent a message, or nil if it has disconnected. For
// messages through a proxy that is the proxy.
func (p *peers) find(identity [][]byte) *peer {
	if len(identity) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[string(identity[0])]
}

// addresses returns the addresses of all clients that sent Ready.
func (p *peers) addresses() []*address {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*address
	for _, one := range p.byName {
		if one.address != nil {
			list = append(list, one.address)
		}
	}
	return list
}

// waitIdle waits until no call is running.
func (p *peers) waitIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.running > 0 {
		p.changed.Wait()
	}
}

// waitDisconnected waits until all clients that sent Ready have disconnected.
func (p *peers) waitDisconnected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for slices.ContainsFunc(slices.Collect(maps.Values(p.byName)), func(o *peer) bool { return o.address != nil }) {
		p.changed.Wait()
	}
}

// close cancels all calls and refuses new ones.
func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, one := range p.byName {
		one.cancel(errStopping)
	}
}

// setAddress stores the address of a client that sent Ready.
func (o *peer) setAddress(ready hootproto.Message) {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.address = &address{slices.Clone(ready.Identity), ready.Protocol}
}

// maxBeats is how many heartbeats of a client are remembered: more than one sends
// before it disconnects from a server that does not answer.
const maxBeats = 64

// mayAnswer reports whether a heartbeat is to be answered. In HOOT01 one that was
// answered before is the answer to that answer: the client no longer waited for it and
// took it for a question. Answering it would go on for ever.
func (o *peer) mayAnswer(f hootproto.Message) bool {
	if f.Protocol != hootproto.Hoot01 {
		return true
	}
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	if slices.Contains(o.beats, f.ID) {
		return false
	}
	if len(o.beats) == maxBeats {
		o.beats = append(o.beats[:0], o.beats[1:]...)
	}
	o.beats = append(o.beats, f.ID)
	return true
}

// begin registers a call with that id and returns its context. The function it
// returns ends the call.
func (o *peer) begin(ctx context.Context, id hootproto.ID) (context.Context, func(), error) {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	switch {
	case o.all.closed:
		return nil, nil, errStopping
	case o.calls[id] != nil:
		return nil, nil, errDuplicate
	case o.all.running >= o.all.limit:
		return nil, nil, errBusy
	}
	ctx, cancel := context.WithCancelCause(ctx)
	o.calls[id] = cancel
	o.all.running++
	return ctx, func() {
		cancel(nil)
		o.all.mu.Lock()
		defer o.all.mu.Unlock()
		delete(o.calls, id)
		if o.all.running--; o.all.running == 0 {
			o.all.changed.Broadcast()
		}
	}, nil
}

// cancelCall cancels the call with that id, if it is running.
func (o *peer) cancelCall(id hootproto.ID) bool {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	cancel := o.calls[id]
	if cancel != nil {
		cancel(errCancelled)
	}
	return cancel != nil
}

func (o *peer) cancelAll() {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.cancel(errDisconnected)
}

// cancel cancels all calls of this client; the caller holds the lock.
func (o *peer) cancel(why error) {
	for _, cancel := range o.calls {
		cancel(why)
	}
}
