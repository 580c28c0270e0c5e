package zmtp

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/fault"
)

// Options configure a socket. The zero value uses the defaults.
type Options struct {
	// MaxMessage limits the bytes of a message from a peer (64 MiB when zero) and
	// MaxFrames its frames (1024). A peer that sends more is disconnected.
	MaxMessage, MaxFrames int
	// Reconnect is how long a dialing socket waits between attempts.
	Reconnect backoff.Policy

	// Curve, if set, authenticates and encrypts all connections; nil means the NULL
	// mechanism, without security.
	Curve *Curve

	// Control, if set, may reject an address before a socket dials it, after name
	// resolution; see net.Dialer.Control.
	Control func(network, address string, conn syscall.RawConn) error

	// OnEvent, if set, is called when something happens to a connection: with
	// Connected before the first message of that peer can be received, with
	// Disconnected after its last. It is called from many goroutines, must return
	// quickly, and must not close the socket.
	OnEvent func(Event)

	limits limits // defaultLimits unless a test sets them
}

// limits are the limits of a socket besides those of a message.
type limits struct {
	// sendQueue and sendBytes limit what waits to be written to one peer. A single
	// message larger than sendBytes is queued alone.
	sendQueue, sendBytes int
	// recvQueue and recvBytes limit what was read from all peers and waits for Recv.
	// Beyond that, nothing more is read.
	recvQueue, recvBytes int
	peers                int           // connections of a listening socket
	topics               int           // subscriptions of one peer of a PUB
	handshake            time.Duration // for connecting and the handshake

	// A PING is sent every interval, unless it is zero, and a peer that is silent for
	// the timeout after it is disconnected. The peer may disconnect in turn when it
	// hears nothing for both together. A peer that uses ZMTP 3.0 and has not sent a
	// heartbeat itself gets none, since it may not know the command.
	interval, timeout time.Duration
}

func defaultLimits() limits {
	return limits{
		sendQueue: 1000, sendBytes: 64 << 20, recvQueue: 1000, recvBytes: 64 << 20,
		peers: 1024, topics: 4096, handshake: 10 * time.Second,
		interval: 30 * time.Second, timeout: time.Minute,
	}
}

// silence is how long a peer may be silent; zero means without limit.
func (l limits) silence() time.Duration {
	if l.interval == 0 {
		return 0
	}
	return l.interval + l.timeout
}

// filled is o with defaults filled in.
func (o Options) filled() Options {
	if o.MaxMessage <= 0 {
		o.MaxMessage = 64 << 20
	}
	if o.MaxFrames <= 0 {
		o.MaxFrames = 1024
	}
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	if o.limits == (limits{}) {
		o.limits = defaultLimits()
	}
	return o
}

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

	done  <-chan struct{} // closed with the socket
	close context.CancelCauseFunc
	work  sync.WaitGroup // all goroutines of the socket
}

// Dial returns a socket that connects to addr, tcp://HOST:PORT or ipc://PATH, and
// reconnects whenever the connection is lost. It does not wait for the first
// connection; use Ready for that. The socket is open until Close or until ctx
// ends.
func Dial(ctx context.Context, kind Kind, addr string, opts Options) (*Socket, error) {
	if kind != Dealer && kind != Sub {
		return nil, fault.New(fault.InvalidParams, "dial %s: a %s listens", addr, kind).WithHint("dial with a Dealer or Sub")
	}
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
	if kind != Router && kind != Pub {
		return nil, fault.New(fault.InvalidParams, "listen on %s: a %s dials", addr, kind).WithHint("listen with a Router or Pub")
	}
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
	if err := opts.Curve.check(greet.listens); err != nil {
		return nil, err
	}
	opts = opts.filled()
	greet.curve = opts.Curve
	ctx, cancel := context.WithCancelCause(ctx)
	s := &Socket{
		kind: kind, opts: opts, greet: greet, addr: addr, peers: newPeers(), topics: newTopics(),
		in: newQueue(opts.limits.recvQueue, opts.limits.recvBytes), done: ctx.Done(), close: cancel,
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

// Ready waits until a peer is connected.
func (s *Socket) Ready(ctx context.Context) error {
	return s.failed("wait for a peer", s.peers.wait(ctx, s.done))
}

// Send queues m for a peer. A DEALER waits for a connection, a ROUTER returns
// ErrNoPeer for an unknown peer, and both wait for space in the peer's queue. A PUB
// never waits: subscribers whose queues are full miss m. Success does not mean that m
// arrived: messages a disconnected peer did not read are lost.
func (s *Socket) Send(ctx context.Context, m Message) error {
	if len(m) == 0 {
		return fault.New(fault.InvalidParams, "send: a message has at least one frame").
			WithHint("send one empty frame for an empty message")
	}
	if s.isClosed() {
		return s.failed("send", ErrClosed)
	}
	return s.failed("send", s.pattern.send(ctx, m))
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

// Event is something that happened to a connection.
type Event struct {
	Type EventType
	// Peer is the other end, as far as the handshake got.
	Peer Peer
	// Err is why a peer was lost or refused. It is io.EOF if the peer closed the
	// connection between two messages.
	Err error
	// Retry is the delay before a dialing socket connects again.
	Retry time.Duration
	// Unsent is the messages that were queued for a lost peer and never written to
	// it, in order. Messages that were written may or may not have arrived.
	Unsent []Message
	// Topic is what a peer of a PUB subscribed to or unsubscribed from.
	Topic string
}

// EventType is the type of an event.
type EventType uint8

// The types of events.
const (
	// Connected: the handshake with a peer succeeded.
	Connected EventType = iota + 1
	// Disconnected: the connection to a peer ended.
	Disconnected
	// Refused: no connection was established because no process listens, the
	// handshake failed, there are too many peers or the identity is in use.
	Refused
	// Subscribed: a peer of a PUB subscribed to a topic.
	Subscribed
	// Unsubscribed: a peer of a PUB unsubscribed from a topic.
	Unsubscribed
)

// String is the name of the type.
func (t EventType) String() string {
	switch t {
	case Connected:
		return "connected"
	case Disconnected:
		return "disconnected"
	case Refused:
		return "refused"
	case Subscribed:
		return "subscribed"
	case Unsubscribed:
		return "unsubscribed"
	default:
		return "unknown event"
	}
}

// Peer is the other end of a connection.
type Peer struct {
	// Identity is the name the peer gave itself. A ROUTER generates one that begins
	// with a zero byte for a peer without.
	Identity string
	// Kind is its socket type as sent on the wire, such as "ROUTER".
	Kind string
	// Addr is its remote address.
	Addr string
	// Minor is the minor version of ZMTP 3 it speaks.
	Minor int
}

// endpoint is where a socket connects to or listens.
type endpoint struct {
	scheme  string // tcp or ipc
	network string // what package net calls it
	address string
}

// parseEndpoint reads tcp://HOST:PORT, where * stands for every address or any
// free port, and ipc://PATH, where @ begins a name without a file (Linux).
func parseEndpoint(addr string) (endpoint, error) {
	scheme, rest, _ := strings.Cut(addr, "://")
	switch {
	case scheme == "ipc" && rest != "":
		return endpoint{scheme, "unix", rest}, nil
	case scheme == "tcp":
		host, port, err := net.SplitHostPort(rest)
		if err != nil || port == "" {
			break
		}
		if host == "*" {
			host = ""
		}
		if port == "*" {
			port = "0"
		}
		return endpoint{scheme, "tcp", net.JoinHostPort(host, port)}, nil
	}
	return endpoint{}, fault.New(fault.InvalidParams, "read endpoint %q", addr).
		WithHint("write tcp://HOST:PORT or ipc://PATH, for example tcp://127.0.0.1:5580")
}

func (e endpoint) dial(ctx context.Context, control func(string, string, syscall.RawConn) error) (net.Conn, error) {
	d := net.Dialer{Control: control}
	return d.DialContext(ctx, e.network, e.address)
}

// listen opens the endpoint. It replaces a Unix socket on which no process
// listens any more.
func (e endpoint) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, e.network, e.address)
	if e.network == "unix" && errors.Is(err, syscall.EADDRINUSE) && e.isStale(ctx) && os.Remove(e.address) == nil {
		l, err = lc.Listen(ctx, e.network, e.address)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "listen on %s", e).
			WithHint("another program may be using it; choose another port or path")
	}
	return l, nil
}

// isStale reports whether no process listens on an existing Unix socket.
func (e endpoint) isStale(ctx context.Context) bool {
	conn, err := e.dial(ctx, nil)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func (e endpoint) String() string { return e.scheme + "://" + e.address }

// dialLoop keeps one connection up until ctx ends. The delay grows with each
// failure; a connection that lasted no longer than the delay before it counts as
// a failure.
func (s *Socket) dialLoop(ctx context.Context, dial func(context.Context) (net.Conn, error)) {
	var wait time.Duration
	for failures := 1; ; failures++ {
		began := time.Now()
		ended := s.dialOnce(ctx, dial)
		if ctx.Err() != nil {
			s.reportEnd(ctx, ended)
			return
		}
		if ended.Type == Disconnected && time.Since(began) > wait {
			failures = 1
		}
		wait = s.opts.Reconnect.Delay(failures)
		ended.Retry = wait
		s.opts.OnEvent(ended)
		pause(ctx, wait)
	}
}

// dialOnce connects and serves the connection until it ends.
func (s *Socket) dialOnce(ctx context.Context, dial func(context.Context) (net.Conn, error)) Event {
	limited, cancel := context.WithTimeout(ctx, s.opts.limits.handshake)
	conn, err := dial(limited)
	cancel()
	if err != nil {
		return Event{Type: Refused, Peer: Peer{Addr: s.addr}, Err: fault.Wrap(fault.Unavailable, err, "connect to %s", s.addr).
			WithHint("check that the program at the other end is running and listening there")}
	}
	return s.serve(ctx, conn)
}

// acceptLoop serves every connection in a goroutine of its own until ctx ends. It
// closes l.
func (s *Socket) acceptLoop(ctx context.Context, l net.Listener) {
	closeListener := func() { _ = l.Close() } // an error changes nothing
	defer closeListener()
	stop := context.AfterFunc(ctx, closeListener)
	defer stop()
	slots := make(chan struct{}, s.opts.limits.peers)
	for failures := 1; ; failures++ {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil { // most likely out of file descriptors, which is temporary
			pause(ctx, backoff.Policy{}.Delay(failures))
			continue
		}
		failures = 0
		select {
		case slots <- struct{}{}:
			s.work.Go(func() {
				s.reportEnd(ctx, s.serve(ctx, conn))
				<-slots
			})
		default:
			conn.Close()
			s.opts.OnEvent(Event{Type: Refused, Peer: Peer{Addr: conn.RemoteAddr().String()}, Err: fault.New(fault.Limit, "accept: %d peers are connected already", s.opts.limits.peers).
				WithHint("connect fewer programs, or raise the limit")})
		}
	}
}

// reportEnd reports how a connection ended, unless it never began because the
// socket was closed.
func (s *Socket) reportEnd(ctx context.Context, ended Event) {
	if ended.Type == Disconnected || ctx.Err() == nil {
		s.opts.OnEvent(ended)
	}
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
