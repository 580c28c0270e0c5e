// Package hootclient is the client side of the protocol in docs/backends.md: one
// connection to a backend over ZeroMQ with requests, replies, heartbeats and
// broadcasts. It does not reconnect: callers dial again, so that a message for one
// backend never reaches its successor.
package hootclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// ErrNotSent is matched by errors of requests that the backend did not execute, so that
// retrying them is safe.
var ErrNotSent = errors.New("request not sent")

// NotSent makes err match ErrNotSent. Its text stays the same: it says what went wrong.
func NotSent(err error) error {
	if errors.Is(err, ErrNotSent) {
		return err
	}
	return notSentError{err}
}

type notSentError struct{ error }

func (e notSentError) Unwrap() error { return e.error }

func (notSentError) Is(target error) bool { return target == ErrNotSent }

// ErrLost is matched by the errors of requests whose connection ended before the reply
// came. Unless they match ErrNotSent as well, the outcome is unknown.
var ErrLost = errors.New("connection lost")

// lostError makes an error match ErrLost. Its text stays the same.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

func (lostError) Is(target error) bool { return target == ErrLost }

// ErrTooLarge is wrapped by errors of replies larger than Options.MaxBody.
var ErrTooLarge = errors.New("the reply is too large")

// ErrUnreadable is wrapped by errors of replies that cannot be decoded.
var ErrUnreadable = errors.New("the reply cannot be decoded")

// errClosed is the error of a client after Close.
var errClosed = errors.New("the client was closed")

// DefaultMaxBody is the default of Options.MaxBody.
const DefaultMaxBody = 16 << 20

// Options configure a client. The zero value uses the defaults. None of the
// functions may block.
type Options struct {
	// Control may reject an address before it is dialled; see net.Dialer.Control.
	Control func(network, address string, conn syscall.RawConn) error
	// Curve authenticates and encrypts the connection; nil means no security.
	Curve *zmtp.Curve
	// MaxBody is the largest body of a reply, in bytes; zero means 16 MiB.
	MaxBody int
	// OnToolsChanged is called when the backend announces that its tools changed.
	OnToolsChanged func()
	// OnInvalid is called when the backend sent an invalid message.
	OnInvalid func(err error)
}

// Client is one connection to a backend. Its methods may be called concurrently.
type Client struct {
	opts     Options
	socket   *zmtp.Socket
	up       chan struct{}   // closed when connected
	lost     chan zmtp.Event // holds how the connection ended
	life     context.Context // ends with the connection; requests have their own
	end      context.CancelCauseFunc
	work     sync.WaitGroup
	received atomic.Int64 // time of the last message, in Unix nanoseconds
	// offered is what the backend's last catalog says.
	offered atomic.Pointer[offer]

	mu      sync.Mutex
	waiting map[hootproto.ID]chan reply
	beat    *heartbeat // the unanswered heartbeat, if there is one
	sub     *zmtp.Socket
	leaving bool
	err     error
}

// offer is what a backend can do.
type offer struct {
	protocol string // the version in which messages are sent
	cancels  bool
	content  hootproto.ContentType // of requests
}

// reply is the outcome of a request.
type reply struct {
	frame hootproto.Message
	err   error
}

// Dial connects to a backend at tcp://HOST:PORT or ipc://PATH. The caller must
// call Close.
func Dial(ctx context.Context, endpoint string, opts Options) (*Client, error) {
	if opts.MaxBody <= 0 {
		opts.MaxBody = DefaultMaxBody
	}
	if opts.OnToolsChanged == nil {
		opts.OnToolsChanged = func() {}
	}
	if opts.OnInvalid == nil {
		opts.OnInvalid = func(error) {}
	}
	c := &Client{
		opts: opts, up: make(chan struct{}), lost: make(chan zmtp.Event, 1),
		waiting: map[hootproto.ID]chan reply{},
	}
	c.offered.Store(&offer{protocol: hootproto.Hoot01, content: hootproto.JSON})
	c.life, c.end = context.WithCancelCause(context.WithoutCancel(ctx))
	// A reply that is too large fails its call; one that is more than four times too
	// large ends the connection.
	socket, err := zmtp.Dial(context.WithoutCancel(ctx), zmtp.Dealer, endpoint, zmtp.Options{
		MaxMessage: 4*opts.MaxBody + 64<<10, Control: opts.Control, Curve: opts.Curve, OnEvent: c.event,
		Reconnect: backoff.Policy{First: 24 * time.Hour},
	})
	if err != nil {
		c.end(err)
		return nil, NotSent(err)
	}
	c.socket = socket
	c.work.Go(c.receive)
	select {
	case <-c.up:
		return c, nil
	case <-c.life.Done():
		err = c.Err()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.Close() //nolint:contextcheck // ctx may have ended; closing has a timeout of its own
	return nil, NotSent(err)
}

// Done is closed when the connection has ended; Err then returns the reason.
func (c *Client) Done() <-chan struct{} { return c.life.Done() }

// Err is why the connection ended, or nil.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Protocol is the version of the protocol that is spoken with the backend.
func (c *Client) Protocol() string { return c.offered.Load().protocol }

// LastReceived is when the last message of the backend arrived.
func (c *Client) LastReceived() time.Time { return time.Unix(0, c.received.Load()) }

// Close sends Disconnect and closes the connection.
func (c *Client) Close() {
	if c.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		if c.post(ctx, hootproto.New(hootproto.Disconnect, "")) == nil {
			_ = c.socket.Flush(ctx) // the backend notices the end of the connection anyway
		}
		cancel()
	}
	c.fail(errClosed)
	c.mu.Lock()
	sub := c.sub
	c.sub = nil
	c.mu.Unlock()
	c.socket.Close()
	if sub != nil {
		sub.Close()
	}
	c.work.Wait()
}

// Abort fails all pending requests with err and ends the connection without notice. The
// caller must still call Close.
func (c *Client) Abort(err error) { c.fail(err) }

// event handles events of the socket, which connects only once.
func (c *Client) event(e zmtp.Event) {
	switch e.Type {
	case zmtp.Connected:
		c.received.Store(time.Now().UnixNano())
		close(c.up)
	case zmtp.Refused:
		c.fail(e.Err)
	case zmtp.Disconnected:
		c.lost <- e
	case zmtp.Subscribed, zmtp.Unsubscribed:
	}
}

// fail ends the client and fails all pending requests, which the backend may or
// may not have executed.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	err = lostError{err}
	c.err = err
	for id, answer := range c.waiting {
		answer <- reply{err: err}
		delete(c.waiting, id)
	}
	c.end(err)
}

// settle completes the pending request with that id and reports whether there was
// one.
func (c *Client) settle(id hootproto.ID, r reply) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer, ok := c.waiting[id]
	if ok {
		answer <- r
		delete(c.waiting, id)
	}
	return ok
}

// receive handles all messages until the connection ends, then fails the requests
// that are still pending: those never written with ErrNotSent.
func (c *Client) receive() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var ended zmtp.Event
	c.work.Go(func() {
		select {
		case ended = <-c.lost:
		case <-c.life.Done():
		}
		stop()
	})
	for m, err := c.socket.Recv(ctx); err == nil; m, err = c.socket.Recv(ctx) {
		c.receiveMessage(m)
	}
	<-ctx.Done()
	for m, more := c.socket.TryRecv(); more; m, more = c.socket.TryRecv() {
		c.receiveMessage(m)
	}
	for _, m := range ended.Unsent {
		if f, err := hootproto.Parse(m); err == nil {
			c.settle(f.ID, reply{err: NotSent(ended.Err)})
		}
	}
	c.fail(fault.Wrap(fault.Unavailable, ended.Err, "the connection to the backend was lost"))
}

func (c *Client) receiveMessage(m zmtp.Message) {
	c.received.Store(time.Now().UnixNano())
	f, err := hootproto.Parse(m)
	if err != nil {
		c.opts.OnInvalid(err)
		return
	}
	c.handle(f)
}

// handle handles one message. It does not block.
func (c *Client) handle(f hootproto.Message) {
	r := reply{frame: f}
	if len(f.Body) > c.opts.MaxBody {
		r = reply{err: fmt.Errorf("%w: %d bytes (at most %d)", ErrTooLarge, len(f.Body), c.opts.MaxBody)}
	}
	switch f.Command {
	case hootproto.Reply:
		c.settle(f.ID, r) // dropped if the request is no longer pending
		c.leave(false)
	case hootproto.Ready:
		if !c.settle(f.ID, r) {
			c.opts.OnToolsChanged()
		}
	case hootproto.Heartbeat, hootproto.HeartbeatReply:
		c.handleHeartbeat(f)
	case hootproto.Disconnect:
		c.leave(true)
	case hootproto.Request: // a client has no tools
	}
}

// errLeft is why a client ends whose backend disconnected.
var errLeft = fault.New(fault.Unavailable, "the backend disconnected")

// leave ends the client when the backend has announced its end and no request is
// pending.
func (c *Client) leave(announced bool) {
	c.mu.Lock()
	c.leaving = c.leaving || announced
	over := c.leaving && len(c.waiting) == 0
	c.mu.Unlock()
	if over {
		c.fail(errLeft)
	}
}

// post sends a message. It fails when the connection ends meanwhile.
func (c *Client) post(ctx context.Context, f hootproto.Message) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })() //nolint:contextcheck // joins both contexts
	if f.Protocol == "" {
		f.Protocol = c.Protocol()
	}
	return c.socket.Send(ctx, f.Frames())
}

// run calls f in a goroutine that Close waits for, unless the client has ended.
func (c *Client) run(f func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.work.Go(func() { f(c.life) })
	}
}

// Subscribe receives the backend's broadcasts from the endpoint in its catalog and
// calls handle for each; handle must not block. It returns when it is connected;
// when ctx ends before, it returns too and connects in the background.
func (c *Client) Subscribe(ctx context.Context, endpoint string, handle func(hootproto.RawBroadcast)) error {
	address, err := broadcastAddress(c.socket.Addr(), endpoint)
	if err != nil {
		return err
	}
	sub, err := zmtp.Dial(context.WithoutCancel(ctx), zmtp.Sub, address, zmtp.Options{
		MaxMessage: c.opts.MaxBody, MaxFrames: 8, Control: c.opts.Control, Curve: c.opts.Curve,
	})
	if err != nil {
		return err
	}
	sub.Subscribe("")
	c.mu.Lock()
	old, ended := c.sub, c.err
	if ended == nil {
		c.sub = sub
		c.work.Go(func() { c.receiveBroadcasts(sub, handle) }) //nolint:contextcheck // it receives until the client is closed
	}
	c.mu.Unlock()
	if ended != nil {
		sub.Close()
		return ended
	}
	if old != nil {
		old.Close()
	}
	_ = sub.Ready(ctx) // otherwise it goes on connecting in the background
	return nil
}

// receiveBroadcasts hands on broadcasts until the socket is closed.
func (c *Client) receiveBroadcasts(sub *zmtp.Socket, handle func(hootproto.RawBroadcast)) {
	for {
		m, err := sub.Recv(context.Background())
		if err != nil {
			return
		}
		broadcast, err := hootproto.ParseBroadcast(m[0])
		if err != nil {
			c.opts.OnInvalid(err)
			continue
		}
		handle(broadcast)
	}
}

// broadcastAddress is where to receive the broadcasts of the backend at addr. Of an
// announced TCP endpoint only the port is used: a backend cannot direct clients to
// another host, and one that listens on every address need not know its own.
func broadcastAddress(addr, announced string) (string, error) {
	scheme, host, _ := strings.Cut(addr, "://")
	theirs, rest, _ := strings.Cut(announced, "://")
	if scheme != theirs {
		return "", fault.New(fault.Upstream, "broadcast endpoint %.80q of a backend at %s", announced, addr).
			WithHint("both must be tcp or both ipc")
	}
	if scheme != "tcp" {
		return announced, nil
	}
	host, _, err := net.SplitHostPort(host)
	if err != nil {
		return "", fault.Wrap(fault.Upstream, err, "read %s", addr)
	}
	_, port, err := net.SplitHostPort(rest)
	if err != nil {
		return "", fault.Wrap(fault.Upstream, err, "broadcast endpoint %.80q", announced)
	}
	return "tcp://" + net.JoinHostPort(host, port), nil
}
