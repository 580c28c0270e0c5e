// Package hootclient is the front end's side of a conversation by docs/backends.md:
// one connection to a backend over ZeroMQ, with questions, answers, heartbeats and
// broadcasts on it. It does not connect again: whoever keeps it dials anew, so that
// nothing meant for one backend ever reaches the next.
package hootclient

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// ErrNotSent is in the chain of errors of requests that the backend did not act
// upon, so that making them again is safe.
var ErrNotSent = errors.New("request was not delivered")

// ErrTooLarge is in the chain of errors of answers larger than Options allow.
var ErrTooLarge = errors.New("the answer is too large")

// ErrUnreadable is in the chain of errors of answers that make no sense.
var ErrUnreadable = errors.New("the answer cannot be read")

// errClosed is why a client ends that we closed.
var errClosed = errors.New("closed by us")

// DefaultMaxBody bounds an answer when Options do not.
const DefaultMaxBody = 16 << 20

// Options say how to talk to a backend. The zero value is a good one. None of the
// functions may block.
type Options struct {
	// Control may refuse an address when it is dialled; see net.Dialer.Control.
	Control func(network, address string, conn syscall.RawConn) error
	// MaxBody bounds the body of one answer, in bytes; zero: 16 MiB.
	MaxBody int
	// ToolsChanged is told when the backend says that its tools are others.
	OnToolsChanged func()
	// OnInvalid is told of what the backend sent that is no message.
	OnInvalid func(err error)
}

// Client is one connection to a backend. Its methods may be called concurrently.
type Client struct {
	opts   Options
	socket *zmtp.Socket
	up     chan struct{}   // closed when connected
	lost   chan zmtp.Event // holds how the connection ended
	life   context.Context // ends when of no more use; requests bring their own
	end    context.CancelCauseFunc
	work   sync.WaitGroup
	heard  atomic.Int64 // when the backend last said something, in Unix nanoseconds
	// cancels says that the backend understands being called off.
	cancels atomic.Bool

	mu      sync.Mutex
	waiting map[hootproto.ID]chan reply
	sub     *zmtp.Socket
	leaving bool
	err     error
}

// reply is how a question ended.
type reply struct {
	frame hootproto.Message
	err   error
}

// Dial connects to a backend at tcp://HOST:PORT or ipc://PATH. Whoever dials
// closes.
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
	c.life, c.end = context.WithCancelCause(context.WithoutCancel(ctx))
	// An answer that is too large is one call's misfortune; one that is larger by
	// far is no answer, and ends the connection.
	socket, err := zmtp.Dial(context.WithoutCancel(ctx), zmtp.Dealer, endpoint, zmtp.Options{
		MaxMessage: 4*opts.MaxBody + 64<<10, Control: opts.Control, OnEvent: c.event,
		Reconnect: backoff.Policy{First: 24 * time.Hour},
	})
	if err != nil {
		c.end(err)
		return nil, notSent(err)
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
	c.Close() //nolint:contextcheck // ctx may have ended; closing has little time of its own
	return nil, notSent(err)
}

func notSent(err error) error {
	if errors.Is(err, ErrNotSent) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotSent, err)
}

// Done is closed when the client is of no more use; Err then says why.
func (c *Client) Done() <-chan struct{} { return c.life.Done() }

// Err is why the client ended, or nil.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// LastReceived is when the backend last said something.
func (c *Client) LastReceived() time.Time { return time.Unix(0, c.heard.Load()) }

// Close says goodbye and ends the connection.
func (c *Client) Close() {
	if c.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		if c.post(ctx, hootproto.New(hootproto.Disconnect, "")) == nil {
			_ = c.socket.Flush(ctx) // it notices anyway
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

// event follows the connection: the first one is the only one.
func (c *Client) event(e zmtp.Event) {
	switch e.Type {
	case zmtp.Connected:
		c.heard.Store(time.Now().UnixNano())
		close(c.up)
	case zmtp.Refused:
		c.fail(e.Err)
	case zmtp.Disconnected:
		c.lost <- e
	case zmtp.Subscribed, zmtp.Unsubscribed:
	}
}

// fail ends the client, and what still waits for an answer with it: nobody knows
// whether the backend acted on that.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	for id, answer := range c.waiting {
		answer <- reply{err: err}
		delete(c.waiting, id)
	}
	c.end(err)
}

// settle ends the question of that id, and tells whether there was one.
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

// receive takes messages until the connection ends, and all that came before its
// end; then it tells what became of the rest.
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
		c.hear(m)
	}
	<-ctx.Done()
	for m, more := c.socket.TryRecv(); more; m, more = c.socket.TryRecv() {
		c.hear(m)
	}
	for _, m := range ended.Unsent {
		if f, err := hootproto.Parse(m); err == nil {
			c.settle(f.ID, reply{err: notSent(ended.Err)})
		}
	}
	c.fail(fault.Wrap(fault.Unavailable, ended.Err, "the connection to the backend was lost"))
}

func (c *Client) hear(m zmtp.Message) {
	c.heard.Store(time.Now().UnixNano())
	f, err := hootproto.Parse(m)
	if err != nil {
		c.opts.OnInvalid(err)
		return
	}
	c.take(f)
}

// take deals with one message. It does not wait.
func (c *Client) take(f hootproto.Message) {
	r := reply{frame: f}
	if len(f.Body) > c.opts.MaxBody {
		r = reply{err: fmt.Errorf("%w: %d bytes, where %d are allowed", ErrTooLarge, len(f.Body), c.opts.MaxBody)}
	}
	switch f.Command {
	case hootproto.Reply:
		c.settle(f.ID, r) // one nobody waits for any more is dropped
		c.leave(false)
	case hootproto.Ready:
		if !c.settle(f.ID, r) {
			c.opts.OnToolsChanged()
		}
	case hootproto.Heartbeat:
		if !c.settle(f.ID, r) {
			c.run(func(ctx context.Context) { // it asks whether we are there
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_ = c.post(ctx, f.Answer(hootproto.Heartbeat)) // it asks again
			})
		}
	case hootproto.Disconnect:
		c.leave(true)
	case hootproto.Request: // we have no tools
	}
}

// errLeft is why a client ends whose backend said goodbye.
var errLeft = fault.New(fault.Unavailable, "the backend said goodbye")

// leave notes that the backend is about to end, and ends with it once nothing
// more is under way.
func (c *Client) leave(goodbye bool) {
	c.mu.Lock()
	c.leaving = c.leaving || goodbye
	over := c.leaving && len(c.waiting) == 0
	c.mu.Unlock()
	if over {
		c.fail(errLeft)
	}
}

// post hands a message to the connection, which must not be lost meanwhile.
func (c *Client) post(ctx context.Context, f hootproto.Message) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })() //nolint:contextcheck // joins both
	return c.socket.Send(ctx, f.Frames())
}

// run does f in a goroutine that Close waits for, unless the client has ended.
func (c *Client) run(f func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.work.Go(func() { f(c.life) })
	}
}
