// Package hub is the MCP server: one URL for clients of both protocol eras, over
// Streamable HTTP, the older HTTP+SSE, and standard input and output. It serves the
// program's own tools, resources and prompts at /mcp, and at /mcp/{namespace} one upstream
// with all it offers, under its original names.
//
// The hub knows the protocol and nothing else. Arguments and results pass through as the
// bytes they came as; what a call does is up to its source.
//
// An HTTP handler (http*.go) or the stdio loop reads a message and makes a request of it
// (request.go). The request asks the endpoint's backend (local.go, relay.go) and finishes
// its response (response.go). The handler writes that as JSON, or as a stream of events if
// a message came before the answer (response_write.go, stream.go).
package hub

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
)

// Hub is the server. Close it when done.
type Hub struct {
	opts         Options
	log          *slog.Logger
	metrics      instruments
	pending      *pendingCalls
	local        *endpoint
	clients      clients
	unwatchTasks func()
	closing      chan struct{} // closed by Close: streams end and new requests are refused

	work     sync.WaitGroup // requests and background work
	relaying sync.Mutex     // held while an upstream's endpoint is looked up or made; locked before mu

	mu       sync.Mutex
	closed   bool
	requests map[*request]struct{}
	relays   map[relayKey]*endpoint
}

// New makes a hub and starts watching for changes.
func New(opts Options) *Hub {
	opts.Limits = opts.Limits.orDefault()
	h := &Hub{
		opts:     opts,
		log:      opts.Log,
		metrics:  newInstruments(opts.Meter),
		closing:  make(chan struct{}),
		requests: map[*request]struct{}{},
		relays:   map[relayKey]*endpoint{},

		unwatchTasks: func() {},
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	key := make([]byte, 32)
	rand.Read(key) // never fails
	h.pending = newPendingCalls(key, opts.Limits.Pending)
	h.local = newEndpoint(h, "", newLocalBackend(h))
	if opts.Changes != nil {
		h.local.stop = opts.Changes(h.local.changed)
	}
	if opts.RelayedTasks != nil {
		h.unwatchTasks = opts.RelayedTasks.Watch(h.relayedTaskChanged)
	}
	h.work.Go(h.expireSessions)
	return h
}

// Routes are /mcp, /mcp/sse with /mcp/message, /mcp/{namespace}, and the paths where
// clients look for an authorization server.
func (h *Hub) Routes() []principal.Route {
	route := func(pattern string, scope principal.Scope, serve http.HandlerFunc) principal.Route {
		return principal.Route{Pattern: pattern, Scope: scope, Guests: scope == principal.MCP, Handler: h.guarded(serve)}
	}
	const message = "a JSON-RPC message"
	list := []principal.Route{
		route("/mcp", principal.MCP, func(w http.ResponseWriter, r *http.Request) { h.local.ServeHTTP(w, r) }).Reads(message),
		route("/mcp/sse", principal.MCP, h.serveSSE).Reads(principal.NoBody),
		route("/mcp/message", principal.MCP, h.serveSSEMessage).Reads(message),
		route("/mcp/{namespace}", principal.MCP, h.serveRelay).Reads(message),
	}
	for _, path := range wellKnown {
		list = append(list, route(path, principal.Open, noAuthorization).Reads(principal.NoBody))
	}
	return list
}

// Handler serves the routes without authentication.
func (h *Hub) Handler() http.Handler { return principal.Unguarded(h.Routes()) }

// Sessions is the number of open sessions, including stdio.
func (h *Hub) Sessions() int {
	n := 0
	for _, e := range h.endpoints() {
		n += e.sessions.count()
	}
	return n
}

// Connected is the number of sessions whose clients read a stream or wait for an answer.
func (h *Hub) Connected() int {
	n := 0
	for _, e := range h.endpoints() {
		for _, s := range e.sessions.list() {
			if s.busy() {
				n++
			}
		}
	}
	return n
}

// Close ends the hub: listeners get their result, streams end, requests that wait for
// input are cancelled, and running requests may finish until ctx is done, when they are
// cancelled. It returns when nothing of the hub runs any more. Shut down an http.Server
// in front of it afterwards, since that would wait for the streams.
func (h *Hub) Close(ctx context.Context) error {
	h.mu.Lock()
	again := h.closed
	h.closed = true
	h.mu.Unlock()
	if again {
		return nil
	}
	close(h.closing)
	h.cancelRequests(errClosing, (*request).isWaitingForInput)
	for _, e := range h.endpoints() {
		e.sessions.endStreams()
	}
	idle := make(chan struct{})
	go func() { h.work.Wait(); close(idle) }()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = context.Cause(ctx)
		h.cancelRequests(errClosing, nil)
		<-idle
	}
	h.unwatchTasks()
	for _, e := range h.endpoints() {
		e.close(ctx)
	}
	return err
}

// spawn runs f in the background unless the hub is closed; Close waits for it.
func (h *Hub) spawn(f func(ctx context.Context)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.work.Go(func() {
		ctx, cancel := context.WithTimeout(background, backgroundTimeout)
		defer cancel()
		f(ctx)
	})
}

// background is the context of work that belongs to no request, and backgroundTimeout
// limits such work.
var background = context.Background()

const backgroundTimeout = 30 * time.Second

// cancelRequests cancels the requests for which which returns true; nil means all.
func (h *Hub) cancelRequests(why error, which func(*request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for req := range h.requests {
		if which == nil || which(req) {
			req.cancel(why)
		}
	}
}

func (h *Hub) isClosing() bool {
	select {
	case <-h.closing:
		return true
	default:
		return false
	}
}

func (h *Hub) endpoints() []*endpoint {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := []*endpoint{h.local}
	for _, e := range h.relays {
		all = append(all, e)
	}
	return all
}

// expireSessions ends sessions that were unused for too long, and what is left of upstreams
// that were removed.
func (h *Hub) expireSessions() {
	tick := time.NewTicker(min(30*time.Second, max(h.opts.Limits.Idle/4, time.Millisecond)))
	defer tick.Stop()
	for {
		select {
		case <-h.closing:
			return
		case now := <-tick.C:
			h.closeRemoved(background)
			for _, e := range h.endpoints() {
				e.sessions.expire(background, now.Add(-h.opts.Limits.Idle))
			}
		}
	}
}
