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

// Socket is one ZeroMQ socket. It is safe for concurrent use. The caller of Dial
// or Listen must call Close.
type Socket struct {
	kind    Kind
	opts    Options
	greet   handshake
	addr    string
	peers   *peers
	in      *queue
	topics  *topics // of a SUB: our subscriptions
	pattern pattern
	dropped atomic.Uint64

	done  <-chan struct{} // closed with the socket
	close context.CancelCauseFunc
	work  sync.WaitGroup // all goroutines of the socket
}

// Dial returns a socket that connects to addr, tcp://HOST:PORT or ipc://PATH, and
// reconnects whenever the connection is lost. It does not wait for the first
// connection; use Ready for that. The socket is open until Close or until ctx
// ends.
func Dial(ctx context.Context, kind Kind, addr string, opts Options) (*Socket, error) {
	e, err := parseEndpoint(addr)
	if err != nil {
		return nil, err
	}
	return newSocket(ctx, handshake{kind: kind}, e.String(), opts, func(ctx context.Context, s *Socket) {
		s.dialLoop(ctx, func(ctx context.Context) (net.Conn, error) { return e.dial(ctx, opts.Control) })
	})
}

// Listen returns a socket that peers connect to. For tcp://127.0.0.1:0, Addr
// returns the chosen port. The socket is open until Close or until ctx ends.
func Listen(ctx context.Context, kind Kind, addr string, opts Options) (*Socket, error) {
	e, err := parseEndpoint(addr)
	if err != nil {
		return nil, err
	}
	l, err := e.listen(ctx)
	if err != nil {
		return nil, err
	}
	s, err := newSocket(ctx, handshake{kind: kind, listens: true}, e.scheme+"://"+l.Addr().String(), opts, func(ctx context.Context, s *Socket) {
		s.acceptLoop(ctx, l)
	})
	if err != nil {
		_ = l.Close() // nothing has used it yet
	}
	return s, err
}

// newSocket returns a socket whose connections are made by connect, which returns
// when its context ends.
func newSocket(ctx context.Context, greet handshake, addr string, opts Options, connect func(context.Context, *Socket)) (*Socket, error) {
	kind := greet.kind
	if kind < Dealer || kind > Sub {
		return nil, fault.New(fault.InvalidParams, "open socket: unknown kind %d", kind).
			WithHint("use Dealer, Router, Pub or Sub")
	}
	if id := opts.Identity; len(id) > 255 || id != "" && id[0] == 0 {
		return nil, fault.New(fault.InvalidParams, "open socket: invalid identity %.40q", id).
			WithHint("an identity has 1 to 255 bytes, the first of them not zero")
	}
	if err := opts.Curve.check(greet.listens); err != nil {
		return nil, err
	}
	opts = opts.filled(kind)
	greet.identity, greet.curve = opts.Identity, opts.Curve
	ctx, cancel := context.WithCancelCause(ctx)
	s := &Socket{
		kind: kind, opts: opts, greet: greet, addr: addr, peers: newPeers(), topics: newTopics(),
		in: newQueue(opts.RecvQueue, opts.RecvBytes), done: ctx.Done(), close: cancel,
	}
	s.pattern = newPattern(s)
	s.work.Go(func() { connect(ctx, s) })
	return s, nil
}

// Close closes all connections and drops queued messages. It waits for all
// goroutines of the socket and may be called more than once.
func (s *Socket) Close() {
	s.close(ErrClosed)
	s.work.Wait()
}

// Addr is the endpoint the socket connects to or listens on.
func (s *Socket) Addr() string { return s.addr }

// Peers returns the connected peers.
func (s *Socket) Peers() []Peer {
	links := s.peers.all()
	found := make([]Peer, len(links))
	for i, l := range links {
		found[i] = l.peer
	}
	return found
}

// Dropped counts the messages that were dropped because a queue was full or no
// peer was connected.
func (s *Socket) Dropped() uint64 { return s.dropped.Load() }

// Ready waits until a peer is connected.
func (s *Socket) Ready(ctx context.Context) error {
	return s.failed("wait for a peer", s.peers.wait(ctx, s.done))
}

// Send queues m for a peer. The socket's kind decides for which one, and
// Options.Overflow what happens when m cannot be queued. Success does not mean
// that m arrived: messages a disconnected peer did not read are lost.
func (s *Socket) Send(ctx context.Context, m Message) error {
	if len(m) == 0 {
		return fault.New(fault.InvalidParams, "send: a message has at least one frame").
			WithHint("send one empty frame for an empty message")
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
		return nil, s.failed("receive", contextError(ctx))
	}
}

// TryRecv is Recv without waiting; it reports whether there was a message.
func (s *Socket) TryRecv() (Message, bool) {
	select {
	case m := <-s.in.items:
		s.in.release(m.size())
		return m, true
	default:
		return nil, false
	}
}

// Flush waits until every message sent so far was written to the network or
// dropped because its peer disconnected.
func (s *Socket) Flush(ctx context.Context) error {
	for _, l := range s.peers.all() {
		if err := l.out.waitEmpty(ctx); err != nil {
			return s.failed("flush", err)
		}
	}
	return nil
}

// Subscribe subscribes a SUB to messages whose first frame begins with topic; ""
// matches all messages. Without a subscription the socket receives nothing.
func (s *Socket) Subscribe(topic string) {
	_, _ = s.topics.add(topic, math.MaxInt) // our own are not limited
	s.wakeWriters()
}

// Unsubscribe removes a subscription. Recv still returns messages received before.
func (s *Socket) Unsubscribe(topic string) {
	s.topics.remove(topic)
	s.wakeWriters()
}

func (s *Socket) wakeWriters() {
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

// failed wraps an internal error for the caller.
func (s *Socket) failed(doing string, err error) error {
	var known *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return fault.Wrap(known.Code, err, "%s on %s", doing, s.addr)
	case errors.Is(err, ErrClosed), errors.Is(err, ErrNoPeer):
		return fault.Wrap(fault.Unavailable, err, "%s on %s", doing, s.addr).
			WithHint("check that the program at the other end is running; the connection is retried automatically")
	case errors.Is(err, ErrFull):
		return fault.Wrap(fault.Limit, err, "%s on %s", doing, s.addr).
			WithHint("the other end is too slow or hangs; send fewer messages, or wait")
	default:
		return fault.Wrap(fault.CodeOf(err), err, "%s on %s", doing, s.addr)
	}
}

// serve does the handshake on conn and serves the connection until it or ctx
// ends. The event says how it ended.
func (s *Socket) serve(ctx context.Context, conn net.Conn) Event {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	l, err := newLink(conn, &s.greet, &s.opts)
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
