package zmtp

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"

	"github.com/luanette/luanette/internal/base/fault"
)

// Socket is one ZeroMQ socket. Its methods may be called by many goroutines at
// once. Who opens it closes it.
type Socket struct {
	kind    Kind
	opts    Options
	addr    string
	peers   *peers
	in      *queue
	topics  *topics // our subscriptions, at a SUB
	pattern pattern
	dropped atomic.Uint64

	done  <-chan struct{} // closed when the socket is
	close context.CancelCauseFunc
	work  sync.WaitGroup // everything the socket started
}

// Dial makes a socket that connects to addr, tcp://HOST:PORT or ipc://PATH, and
// connects again whenever the connection is lost. It does not wait for the first
// one: Ready does. The socket lives until Close, or until ctx ends.
func Dial(ctx context.Context, kind Kind, addr string, opts Options) (*Socket, error) {
	e, err := parseEndpoint(addr)
	if err != nil {
		return nil, err
	}
	return newSocket(ctx, kind, e.String(), opts, func(ctx context.Context, s *Socket) {
		s.keepDialing(ctx, func(ctx context.Context) (net.Conn, error) { return e.dial(ctx, opts.Control) })
	})
}

// Subscribe makes a socket that others connect to. Of tcp://127.0.0.1:0 Addr tells
// the port. The socket lives until Close, or until ctx ends.
func Listen(ctx context.Context, kind Kind, addr string, opts Options) (*Socket, error) {
	e, err := parseEndpoint(addr)
	if err != nil {
		return nil, err
	}
	l, err := e.listen(ctx)
	if err != nil {
		return nil, err
	}
	s, err := newSocket(ctx, kind, e.scheme+"://"+l.Addr().String(), opts, func(ctx context.Context, s *Socket) {
		s.keepAccepting(ctx, l)
	})
	if err != nil {
		_ = l.Close() // it was not used yet
	}
	return s, err
}

// newSocket makes a socket whose connections come from connect, which returns
// once its context ends.
func newSocket(ctx context.Context, kind Kind, addr string, opts Options, connect func(context.Context, *Socket)) (*Socket, error) {
	if kind < Dealer || kind > Sub {
		return nil, fault.New(fault.InvalidParams, "open socket: there is no kind %d", kind).
			WithHint("use Dealer, Router, Pub or Sub")
	}
	if id := opts.Identity; len(id) > 255 || id != "" && id[0] == 0 {
		return nil, fault.New(fault.InvalidParams, "open socket: the identity %.40q cannot be used", id).
			WithHint("an identity has 1 to 255 bytes, the first of them not zero")
	}
	opts = opts.filled(kind)
	ctx, cancel := context.WithCancelCause(ctx)
	s := &Socket{
		kind: kind, opts: opts, addr: addr, peers: newPeers(), topics: newTopics(),
		in: newQueue(opts.RecvQueue, opts.RecvBytes), done: ctx.Done(), close: cancel,
	}
	s.pattern = newPattern(s)
	s.work.Go(func() { connect(ctx, s) })
	return s, nil
}

// Close ends all connections and drops what is queued. It returns once nothing
// of the socket runs any more, and may be called again.
func (s *Socket) Close() {
	s.close(ErrClosed)
	s.work.Wait()
}

// Addr is the endpoint the socket connects to or listens on.
func (s *Socket) Addr() string { return s.addr }

// Peers are those connected at this moment.
func (s *Socket) Peers() []Peer {
	links := s.peers.all()
	found := make([]Peer, len(links))
	for i, l := range links {
		found[i] = l.peer
	}
	return found
}

// Dropped counts the messages that were dropped because a queue was full or
// nobody was there to receive them.
func (s *Socket) Dropped() uint64 { return s.dropped.Load() }

// Ready waits until a peer is connected.
func (s *Socket) Ready(ctx context.Context) error {
	return s.failed("wait for a peer", s.peers.wait(ctx, s.done))
}

// Send queues m for a peer; the socket's kind says for which, Options.Overflow
// what happens when that cannot be. That it was sent does not mean it arrived:
// what a peer that vanishes did not read is lost.
func (s *Socket) Send(ctx context.Context, m Message) error {
	if len(m) == 0 {
		return fault.New(fault.InvalidParams, "send: a message has at least one frame").
			WithHint("send an empty frame to say nothing")
	}
	if s.isClosed() {
		return s.failed("send", ErrClosed)
	}
	err := s.pattern.send(ctx, m)
	if s.opts.Overflow == Drop && (errors.Is(err, ErrFull) || errors.Is(err, ErrNoPeer)) {
		s.dropped.Add(1)
		return nil
	}
	return s.failed("send", err)
}

// Recv waits for the next message.
func (s *Socket) Recv(ctx context.Context) (Message, error) {
	select {
	case m := <-s.in.items:
		s.in.release(m.size())
		return m, nil
	case <-s.done:
		return nil, s.failed("receive", ErrClosed)
	case <-ctx.Done():
		return nil, s.failed("receive", expired(ctx))
	}
}

// TryRecv is Recv without waiting: it tells whether a message was there.
func (s *Socket) TryRecv() (Message, bool) {
	select {
	case m := <-s.in.items:
		s.in.release(m.size())
		return m, true
	default:
		return nil, false
	}
}

// Flush waits until everything sent so far was handed to the network, or given
// up with its peer.
func (s *Socket) Flush(ctx context.Context) error {
	for _, l := range s.peers.all() {
		if err := l.out.drained(ctx); err != nil {
			return s.failed("flush", err)
		}
	}
	return nil
}

// Subscribe asks the peers of a SUB for messages whose first frame begins with
// topic; all messages begin with "". Without any the socket receives nothing.
func (s *Socket) Subscribe(topic string) {
	_, _ = s.topics.add(topic, math.MaxInt) // our own are not bounded
	s.tellPeers()
}

// Unsubscribe takes a subscription back. Messages received before still come.
func (s *Socket) Unsubscribe(topic string) {
	s.topics.remove(topic)
	s.tellPeers()
}

func (s *Socket) tellPeers() {
	for _, l := range s.peers.all() {
		signal(l.wake)
	}
}

func (s *Socket) isClosed() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// failed gives an error of ours the shape in which it leaves.
func (s *Socket) failed(doing string, err error) error {
	var known *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return fault.Wrap(known.Code, err, "%s on %s", doing, s.addr)
	case errors.Is(err, ErrClosed), errors.Is(err, ErrNoPeer):
		return fault.Wrap(fault.Unavailable, err, "%s on %s", doing, s.addr).
			WithHint("see that the program at the other end runs; it is connected again by itself")
	case errors.Is(err, ErrFull):
		return fault.Wrap(fault.Limit, err, "%s on %s", doing, s.addr).
			WithHint("the other end is too slow or hangs; send less, or wait")
	default:
		return fault.Wrap(fault.CodeOf(err), err, "%s on %s", doing, s.addr)
	}
}

// serve talks to whoever is at the other end of conn until the connection or
// ctx ends. The event says how it ended.
func (s *Socket) serve(ctx context.Context, conn net.Conn) Event {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	l, err := newLink(conn, s.kind, &s.opts)
	if err == nil {
		err = s.pattern.join(l)
	}
	if err != nil {
		return Event{Type: Refused, Peer: l.peer, Err: err}
	}
	s.opts.OnEvent(Event{Type: Connected, Peer: l.peer})
	err = l.run(ctx, s.pattern)
	s.peers.remove(l)
	return Event{Type: Disconnected, Peer: l.peer, Err: err, Unsent: l.out.close()}
}
