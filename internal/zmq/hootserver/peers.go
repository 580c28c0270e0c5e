package hootserver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// Why a call is called off.
var (
	errCalledOff = errors.New("the front end called it off")
	errPeerGone  = errors.New("the front end is gone")
	errLeaving   = errors.New("the backend is leaving")
)

// Why a call is not begun.
var (
	errBusy      = errors.New("too many calls are under way")
	errDuplicate = errors.New("a call of that id is under way already")
)

// peers are the front ends that are connected, with their calls under way.
type peers struct {
	limit int

	mu      sync.Mutex
	quiet   sync.Cond // told when no call is under way any more, and when somebody leaves
	byName  map[string]*peer
	running int
	closed  bool
}

// peer is one front end. Its fields belong to the lock of all.
type peer struct {
	all     *peers
	calls   map[hootproto.ID]context.CancelCauseFunc
	address [][]byte // where it asked for our tools from; nil when it never did
}

func newPeers(limit int) *peers {
	p := &peers{limit: limit, byName: map[string]*peer{}}
	p.quiet.L = &p.mu
	return p
}

func (p *peers) join(identity string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.byName[identity]; old != nil {
		old.cancel(errPeerGone)
	}
	p.byName[identity] = &peer{all: p, calls: map[hootproto.ID]context.CancelCauseFunc{}}
}

func (p *peers) part(identity string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.byName[identity]; old != nil {
		old.cancel(errPeerGone)
		delete(p.byName, identity)
		p.quiet.Broadcast()
	}
}

// find is the front end a message came from, or nil when it is gone. A message
// that came through a proxy counts as the proxy's.
func (p *peers) find(identity [][]byte) *peer {
	if len(identity) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[string(identity[0])]
}

// greeted are the addresses of all who asked for our tools.
func (p *peers) greeted() [][][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	var addresses [][][]byte
	for _, one := range p.byName {
		if one.address != nil {
			addresses = append(addresses, one.address)
		}
	}
	return addresses
}

// idle waits until no call is under way.
func (p *peers) idle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.running > 0 {
		p.quiet.Wait()
	}
}

// alone waits until all who asked for our tools have left, and who only
// connected does not count.
func (p *peers) alone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for slices.ContainsFunc(slices.Collect(maps.Values(p.byName)), func(o *peer) bool { return o.address != nil }) {
		p.quiet.Wait()
	}
}

// close calls everything off and lets nothing new begin.
func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, one := range p.byName {
		one.cancel(errLeaving)
	}
}

// greet remembers where the front end asked for our tools from.
func (o *peer) greet(address [][]byte) {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.address = slices.Clone(address)
}

// begin starts a call of that id. What it returns ends it.
func (o *peer) begin(ctx context.Context, id hootproto.ID) (context.Context, func(), error) {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	switch {
	case o.all.closed:
		return nil, nil, errLeaving
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
			o.all.quiet.Broadcast()
		}
	}, nil
}

// callOff cancels the call of that id, if it is under way.
func (o *peer) callOff(id hootproto.ID) bool {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	cancel := o.calls[id]
	if cancel != nil {
		cancel(errCalledOff)
	}
	return cancel != nil
}

func (o *peer) cancelAll() {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.cancel(errPeerGone)
}

// cancel calls off everything of this front end; the lock is held.
func (o *peer) cancel(why error) {
	for _, cancel := range o.calls {
		cancel(why)
	}
}
