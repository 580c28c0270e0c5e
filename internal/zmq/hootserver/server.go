// Package hootserver serves a tool source over ZeroMQ with the protocol in
// docs/backends.md. Calls arrive on a ROUTER socket; progress and events are
// published on a PUB socket. It does not depend on MCP, which its clients
// implement.
package hootserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
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

// NextEndpoint is the default endpoint for broadcasts beside a listening endpoint: the
// next TCP port, or the path with an ending.
func NextEndpoint(endpoint string) string {
	scheme, rest, _ := strings.Cut(endpoint, "://")
	host, port, err := net.SplitHostPort(rest)
	if scheme != "tcp" || err != nil {
		return endpoint + ".events"
	}
	if n, err := strconv.Atoi(port); err == nil && n > 0 {
		port = strconv.Itoa(n + 1)
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// IsLocal tells whether only this machine can reach an endpoint.
func IsLocal(endpoint string) bool {
	scheme, rest, _ := strings.Cut(endpoint, "://")
	host, _, err := net.SplitHostPort(rest)
	if scheme != "tcp" || err != nil {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Defaults of Options.
const (
	DefaultMaxCalls       = 1024
	DefaultMaxMessage     = 16 << 20
	DefaultGrace          = 2 * time.Second
	DefaultDisconnectWait = 500 * time.Millisecond
)

// Options configure a server.
type Options struct {
	// Name is the name of the service in replies.
	Name string
	// Listen is the endpoint of the ROUTER, such as tcp://127.0.0.1:5580.
	Listen string
	// Broadcast is the endpoint of the PUB, such as tcp://127.0.0.1:5581; empty
	// means no broadcasts.
	Broadcast string
	// Curve authenticates clients and encrypts both sockets; nil means no security.
	Curve *zmtp.Curve
	// Source is the tools to serve.
	Source tool.Source
	// ToolsChanged receives a value when the source's tools changed; nil: never.
	ToolsChanged <-chan struct{}
	// Events is the bus whose events are broadcast; nil: none.
	Events *event.Bus

	// OfferMsgPack asks clients for requests in MessagePack.
	OfferMsgPack bool
	// MaxCalls limits the concurrent calls of all clients together.
	MaxCalls int
	// MaxMessage is the largest message of a client, in bytes. A client that sends
	// more is disconnected.
	MaxMessage int
	// Grace is how long running calls may take to finish on shutdown.
	Grace time.Duration
	// DisconnectWait is how long to wait on shutdown for clients to disconnect.
	// Requests they sent before are answered meanwhile, so that clients know their
	// outcome.
	DisconnectWait time.Duration

	Log        *slog.Logger                  // nil: no log
	Tracer     trace.Tracer                  // starts a span per call; nil: none
	Propagator propagation.TextMapPropagator // extracts the client's trace; nil: not extracted
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

// Server is a listening backend.
type Server struct {
	opts     Options
	router   *zmtp.Socket
	pub      *zmtp.Socket // nil when nothing is broadcast
	peers    *peers
	index    index
	calls    sync.WaitGroup
	stopping atomic.Bool
	// answers limits the short answers that wait to be sent, so that a client that
	// does not read them cannot use up memory.
	answers chan struct{}
}

// Listen opens the sockets. Serve answers requests and closes them at the end; a
// caller that does not call Serve must call Close.
func Listen(ctx context.Context, opts Options) (*Server, error) {
	opts = opts.filled()
	if opts.Source == nil {
		return nil, fault.New(fault.Internal, "serve backend: no tool source")
	}
	s := &Server{opts: opts, peers: newPeers(opts.MaxCalls), answers: make(chan struct{}, 256)}
	life := context.WithoutCancel(ctx) // calls may finish after ctx ended
	if opts.Broadcast != "" {
		pub, err := zmtp.Listen(life, zmtp.Pub, opts.Broadcast, zmtp.Options{Curve: opts.Curve})
		if err != nil {
			return nil, err
		}
		s.pub = pub
	}
	router, err := zmtp.Listen(life, zmtp.Router, opts.Listen, zmtp.Options{
		MaxMessage: opts.MaxMessage, MaxFrames: 32, Curve: opts.Curve, OnEvent: s.handleEvent,
	})
	if err != nil {
		s.Close()
		return nil, err
	}
	s.router = router
	return s, nil
}

// Addr is the endpoint that clients connect to.
func (s *Server) Addr() string { return s.router.Addr() }

// Broadcasts is the endpoint of the broadcasts, or empty.
func (s *Server) Broadcasts() string {
	if s.pub == nil {
		return ""
	}
	return s.pub.Addr()
}

// Close closes all connections at once.
func (s *Server) Close() {
	s.peers.close()
	for _, socket := range []*zmtp.Socket{s.router, s.pub} {
		if socket != nil {
			socket.Close()
		}
	}
	s.calls.Wait()
}

// Serve answers requests until ctx ends. Then it announces its end, refuses new
// calls, lets running ones finish and closes.
func (s *Server) Serve(ctx context.Context) error {
	defer s.Close()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	work.Go(func() { s.broadcastEvents(life) })
	work.Go(func() { s.announceChanges(life) })
	done := make(chan struct{})
	work.Go(func() { defer close(done); s.receive(life) })
	select {
	case <-ctx.Done():
		s.shutdown(life)
		return nil
	case <-done: // closed without a shutdown
		return errors.New("serve backend: the socket was closed")
	}
}

// Start serves in the background, also after ctx ended. The function that it returns ends
// that, and returns after running calls have ended.
func (s *Server) Start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() {
		if err := s.Serve(ctx); err != nil {
			s.opts.Log.ErrorContext(ctx, "tools are no longer served over ZeroMQ", "error", err)
		}
	})
	return func() { cancel(); work.Wait() }
}

// receive handles messages until ctx ends.
func (s *Server) receive(ctx context.Context) {
	for {
		m, err := s.router.Recv(ctx)
		if err != nil {
			return
		}
		f, err := hootproto.Parse(m)
		if err != nil {
			s.opts.Log.DebugContext(ctx, "invalid message", "error", err)
			continue
		}
		s.handle(ctx, f)
	}
}

// handle handles one message. It never blocks.
func (s *Server) handle(ctx context.Context, f hootproto.Message) {
	p := s.peers.find(f.Identity)
	if p == nil {
		return // the client has disconnected
	}
	switch f.Command {
	case hootproto.Ready:
		p.setAddress(f)
		s.answer(ctx, func() (hootproto.Message, error) { return s.ready(ctx, f) })
	case hootproto.Heartbeat:
		if p.mayAnswer(f) {
			s.answer(ctx, func() (hootproto.Message, error) { return f.HeartbeatReply(), nil })
		}
	case hootproto.Request:
		s.request(ctx, p, f)
	case hootproto.Disconnect:
		p.cancelAll()
	case hootproto.Reply, hootproto.HeartbeatReply: // a server sends no requests
	}
}

// answer builds and sends a short message, unless too many wait to be sent.
func (s *Server) answer(ctx context.Context, make func() (hootproto.Message, error)) {
	select {
	case s.answers <- struct{}{}:
	default:
		s.opts.Log.DebugContext(ctx, "answer dropped: too many wait to be sent")
		return
	}
	s.calls.Go(func() {
		defer func() { <-s.answers }()
		f, err := make()
		if err == nil {
			err = s.send(ctx, f)
		}
		if err != nil {
			s.opts.Log.DebugContext(ctx, "answer lost", "command", f.Command.String(), "error", err)
		}
	})
}

// send waits for space in the client's queue, at most sendTimeout.
func (s *Server) send(ctx context.Context, f hootproto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return s.router.Send(ctx, f.Frames())
}

// sendTimeout is how long a client may leave its queue full.
const sendTimeout = 30 * time.Second

// handleEvent tracks which clients are connected.
func (s *Server) handleEvent(e zmtp.Event) {
	switch e.Type {
	case zmtp.Connected:
		s.peers.add(e.Peer.Identity)
		s.opts.Log.Debug("client connected", "from", e.Peer.Addr)
	case zmtp.Disconnected:
		s.peers.remove(e.Peer.Identity)
		s.opts.Log.Debug("client disconnected", "from", e.Peer.Addr, "error", e.Err)
	case zmtp.Refused:
		s.opts.Log.Debug("connection refused", "from", e.Peer.Addr, "error", e.Err)
	case zmtp.Subscribed, zmtp.Unsubscribed:
	}
}

// shutdown announces the end and lets running calls finish. New requests are
// refused as not executed, so that clients can retry them with a successor.
func (s *Server) shutdown(ctx context.Context) {
	s.stopping.Store(true)
	s.Broadcast(ctx, hootproto.Shutdown{Reason: "the backend is shutting down"})
	for _, address := range s.peers.addresses() {
		s.answer(ctx, func() (hootproto.Message, error) {
			disconnect := hootproto.New(hootproto.Disconnect, s.opts.Name)
			disconnect.Identity, disconnect.Protocol = address.identity, address.protocol
			return disconnect, nil
		})
	}
	if !within(s.opts.Grace, s.peers.waitIdle) {
		s.opts.Log.WarnContext(ctx, "running calls were cancelled")
		s.peers.close()
		s.peers.waitIdle()
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.DisconnectWait)
	defer cancel()
	_ = s.router.Flush(ctx) // a client that does not read now never will
	if s.pub != nil {
		_ = s.pub.Flush(ctx)
	}
	within(s.opts.DisconnectWait, s.peers.waitDisconnected)
}

// within reports whether wait returns in time. If not, wait goes on in the
// background.
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

// Broadcast publishes a message to all subscribers. It may be lost.
func (s *Server) Broadcast(ctx context.Context, message hootproto.Broadcast) {
	if s.pub == nil {
		return
	}
	frame, err := hootproto.EncodeBroadcast(hootproto.JSON, message)
	if err == nil {
		err = s.pub.Send(ctx, zmtp.Message{frame})
	}
	if err != nil {
		s.opts.Log.DebugContext(ctx, "broadcast lost", "error", err)
	}
}

// broadcastEvents broadcasts events of the bus until ctx ends.
func (s *Server) broadcastEvents(ctx context.Context) {
	if s.opts.Events == nil || s.pub == nil {
		return
	}
	types := []string{"job.*"}
	for _, kind := range forwarded {
		types = append(types, strings.Replace(kind, "_", ".", 1))
	}
	sub := s.opts.Events.Subscribe(event.Options{Types: types})
	defer sub.Close()
	for e := range sub.All(ctx) {
		if message := broadcastOf(e); message != nil {
			s.Broadcast(ctx, message)
		}
	}
}

// forwarded are the types of broadcasts whose data is that of an event. The event's
// type has a dot for the first underscore.
var forwarded = []string{
	"artifact_created", "transport_state_changed", "marker_reached", "beat_tick",
	"region_entered", "region_left", "config_update", "script_invalidate", "job_state_changed",
}

// broadcastOf returns the broadcast for an event, or nil. Events that came from an
// upstream backend are not broadcast: two servers that are each other's backends
// would repeat them for ever.
func broadcastOf(e event.Event) hootproto.Broadcast {
	raw, err := json.Marshal(e.Data)
	if err != nil {
		return nil
	}
	var from struct {
		Upstream string `json:"upstream"`
	}
	if json.Unmarshal(raw, &from) == nil && from.Upstream != "" {
		return nil
	}
	switch e.Type {
	case "job.submitted":
		return stateOf(raw, "pending")
	case "job.started":
		return stateOf(raw, "running")
	case "job.paused":
		return stateOf(raw, "paused")
	case "job.finished":
		return stateOf(raw, "")
	case "job.progress":
		var p struct {
			ID       string  `json:"job_id"`
			Fraction float64 `json:"fraction"`
			Message  string  `json:"message"`
		}
		if json.Unmarshal(raw, &p) != nil {
			return nil
		}
		return hootproto.Progress{JobID: p.ID, Percent: p.Fraction, Message: p.Message}
	}
	kind := strings.Replace(e.Type, ".", "_", 1)
	for _, known := range forwarded {
		if kind == known {
			return withType(kind, raw)
		}
	}
	return nil
}

// stateOf returns the broadcast for a job in that state or, if state is empty, in
// the state of the event.
func stateOf(raw json.RawMessage, state string) hootproto.Broadcast {
	var j struct {
		ID     string          `json:"job_id"`
		State  string          `json:"status"`
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(raw, &j) != nil {
		return nil
	}
	if state != "" {
		j.State = state
	}
	return hootproto.JobStateChanged{JobID: j.ID, State: j.State, Result: j.Result}
}

// withType returns an event's data with its type added.
func withType(kind string, raw json.RawMessage) hootproto.Broadcast {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	tag, err := json.Marshal(kind)
	if err != nil {
		return nil
	}
	members["type"] = tag
	whole, err := json.Marshal(members)
	if err != nil {
		return nil
	}
	return hootproto.RawBroadcast{Type: kind, Raw: whole}
}
