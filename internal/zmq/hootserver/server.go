// Package hootserver is the door for front ends over ZeroMQ: it serves any source of
// tools as a backend, by the book of docs/backends.md. Calls come in on a ROUTER;
// what happens meanwhile goes out on a PUB. It knows nothing of MCP, which is the
// front end's business.
package hootserver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// EventType zero options mean.
const (
	DefaultMaxCalls       = 1024
	DefaultMaxMessage     = 16 << 20
	DefaultGrace          = 2 * time.Second
	DefaultDisconnectWait = 500 * time.Millisecond
)

// Options say what is served and where.
type Options struct {
	// Name is the service's name, which answers carry.
	Name string
	// Subscribe is where front ends connect to, such as tcp://127.0.0.1:5580.
	Listen string
	// Broadcast is where they hear what happens, such as tcp://127.0.0.1:5581;
	// empty: nowhere.
	Broadcast string
	// Source has the tools.
	Source tool.Source
	// ToolsChanged tells that the source lists other tools than before; nil: never.
	ToolsChanged <-chan struct{}
	// Events is what happens in the house; nil: nothing.
	Events *event.Bus

	// MaxCalls bounds the calls under way at once, of all front ends together.
	MaxCalls int
	// MaxMessage bounds one message of a front end, in bytes. Who sends more is
	// disconnected.
	MaxMessage int
	// Grace is how long calls under way may take to finish when we leave.
	Grace time.Duration
	// DisconnectWait is how long front ends may take to hang up once we said goodbye. What
	// they sent before is answered meanwhile, so that none of it is in doubt.
	DisconnectWait time.Duration

	Log        *slog.Logger                  // nil: no log
	Tracer     trace.Tracer                  // makes a span per call; nil: none
	Propagator propagation.TextMapPropagator // reads the front end's trace; nil: it is not read
}

func (o Options) filled() Options {
	if o.MaxCalls <= 0 {
		o.MaxCalls = DefaultMaxCalls
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.DisconnectWait <= 0 {
		o.DisconnectWait = DefaultDisconnectWait
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider().Tracer("")
	}
	if o.Propagator == nil {
		o.Propagator = propagation.NewCompositeTextMapPropagator()
	}
	return o
}

// Server is a backend that listens.
type Server struct {
	opts    Options
	router  *zmtp.Socket
	pub     *zmtp.Socket // nil when nothing is broadcast
	peers   *peers
	index   index
	calls   sync.WaitGroup
	leaving atomic.Bool
	// answers has a place for each small answer that waits to be sent. Who does
	// not read what they asked for is not answered without end.
	answers chan struct{}
}

// Subscribe listens. Serve answers, and closes it in the end; whoever does not come
// that far calls Close.
func Listen(ctx context.Context, opts Options) (*Server, error) {
	opts = opts.filled()
	if opts.Source == nil {
		return nil, fault.New(fault.Internal, "open bridge: there is no source of tools")
	}
	b := &Server{opts: opts, peers: newPeers(opts.MaxCalls), answers: make(chan struct{}, 256)}
	life := context.WithoutCancel(ctx) // calls may finish after ctx has ended
	if opts.Broadcast != "" {
		pub, err := zmtp.Listen(life, zmtp.Pub, opts.Broadcast, zmtp.Options{})
		if err != nil {
			return nil, err
		}
		b.pub = pub
	}
	router, err := zmtp.Listen(life, zmtp.Router, opts.Listen, zmtp.Options{
		MaxMessage: opts.MaxMessage, MaxFrames: 32, Overflow: zmtp.Wait, OnEvent: b.heard,
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	b.router = router
	return b, nil
}

// Addr is where front ends connect to.
func (b *Server) Addr() string { return b.router.Addr() }

// Broadcasts is where they hear what happens, or empty.
func (b *Server) Broadcasts() string {
	if b.pub == nil {
		return ""
	}
	return b.pub.Addr()
}

// Close ends all connections at once.
func (b *Server) Close() {
	b.peers.close()
	for _, socket := range []*zmtp.Socket{b.router, b.pub} {
		if socket != nil {
			socket.Close()
		}
	}
	b.calls.Wait()
}

// Serve answers until ctx ends. Then it says goodbye, takes no more calls, lets
// those under way finish and closes.
func (b *Server) Serve(ctx context.Context) error {
	defer b.Close()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	work.Go(func() { b.tell(life) })
	work.Go(func() { b.watch(life) })
	done := make(chan struct{})
	work.Go(func() { defer close(done); b.receive(life) })
	select {
	case <-ctx.Done():
		b.leave(life)
		return nil
	case <-done: // nobody closed us
		return errors.New("serve backend: the socket was closed")
	}
}

// receive takes messages until ctx ends.
func (b *Server) receive(ctx context.Context) {
	for {
		m, err := b.router.Recv(ctx)
		if err != nil {
			return
		}
		f, err := hootproto.Parse(m)
		if err != nil {
			b.opts.Log.DebugContext(ctx, "not a message", "error", err)
			continue
		}
		b.take(ctx, f)
	}
}

// take deals with one message. It never waits.
func (b *Server) take(ctx context.Context, f hootproto.Message) {
	p := b.peers.find(f.Identity)
	if p == nil {
		return // gone before we came to it: nobody would hear the answer
	}
	switch f.Command {
	case hootproto.Ready:
		p.greet(f.Identity)
		b.answer(ctx, func() (hootproto.Message, error) { return b.ready(ctx, f) })
	case hootproto.Heartbeat:
		b.answer(ctx, func() (hootproto.Message, error) { return f.Answer(hootproto.Heartbeat), nil })
	case hootproto.Request:
		b.request(ctx, p, f)
	case hootproto.Disconnect:
		p.cancelAll()
	case hootproto.Reply: // we asked for nothing
	}
}

// answer makes and sends something short, unless too many wait for that already.
func (b *Server) answer(ctx context.Context, make func() (hootproto.Message, error)) {
	select {
	case b.answers <- struct{}{}:
	default:
		b.opts.Log.DebugContext(ctx, "too many answers wait to be sent, one was dropped")
		return
	}
	b.calls.Go(func() {
		defer func() { <-b.answers }()
		f, err := make()
		if err == nil {
			err = b.send(ctx, f)
		}
		if err != nil {
			b.opts.Log.DebugContext(ctx, "an answer was lost", "command", f.Command.String(), "error", err)
		}
	})
}

// send waits for room in the front end's queue, but not for ever.
func (b *Server) send(ctx context.Context, f hootproto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return b.router.Send(ctx, f.Frames())
}

// sendTime is how long a front end may not read what it asked for.
const sendTime = 30 * time.Second

// heard keeps account of who is connected.
func (b *Server) heard(e zmtp.Event) {
	switch e.Type {
	case zmtp.Connected:
		b.peers.join(e.Peer.Identity)
		b.opts.Log.Debug("front end connected", "from", e.Peer.Addr)
	case zmtp.Disconnected:
		b.peers.part(e.Peer.Identity)
		b.opts.Log.Debug("front end gone", "from", e.Peer.Addr, "error", e.Err)
	case zmtp.Refused:
		b.opts.Log.Debug("connection refused", "from", e.Peer.Addr, "error", e.Err)
	case zmtp.Subscribed, zmtp.Unsubscribed:
	}
}

// leave says goodbye and lets calls under way finish. What comes meanwhile is
// refused in a way that lets the front end ask whoever takes our place.
func (b *Server) leave(ctx context.Context) {
	b.leaving.Store(true)
	b.broadcast(ctx, hootproto.Shutdown{Reason: "the backend was told to stop"})
	for _, address := range b.peers.greeted() {
		b.answer(ctx, func() (hootproto.Message, error) {
			goodbye := hootproto.New(hootproto.Disconnect, b.opts.Name)
			goodbye.Identity = address
			return goodbye, nil
		})
	}
	if !within(b.opts.Grace, b.peers.idle) {
		b.opts.Log.WarnContext(ctx, "calls were cut short")
		b.peers.close()
		b.peers.idle()
	}
	ctx, cancel := context.WithTimeout(ctx, b.opts.DisconnectWait)
	defer cancel()
	_ = b.router.Flush(ctx) // who does not read now never will
	if b.pub != nil {
		_ = b.pub.Flush(ctx)
	}
	within(b.opts.DisconnectWait, b.peers.alone)
}

// within tells whether something that waits ends in time. It may go on after.
func within(limit time.Duration, wait func()) bool {
	ended := make(chan struct{})
	go func() { wait(); close(ended) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
