// Package hub is the MCP server: one address for clients of both protocol eras,
// over Streamable HTTP, the older HTTP+SSE, and standard input and output. It
// serves the house's own tools, resources and prompts, and, at /mcp/{namespace},
// one upstream seen whole under its original names.
//
// The hub speaks protocol and nothing else. Arguments and results pass through
// as the bytes they came as; what a call does is its source's business.
//
// How a request walks: an http handler or the stdio loop reads a message and
// makes a task of it (task.go); the task runs in its own goroutine, asks the
// endpoint's backend (own.go, relay.go), and settles its round (round.go), which
// the handler writes as JSON or, once there was something to say before the
// answer, as a stream of events (stream.go, exchange.go).
package hub

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// Resources are what the hub offers at /mcp for reading. Definitions and results
// are in MCP's own form.
type Resources interface {
	ListResources(ctx context.Context) ([]json.RawMessage, error)
	ListTemplates(ctx context.Context) ([]json.RawMessage, error)
	// ReadResource answers a ReadResourceResult; fault.NotFound for no such uri.
	ReadResource(ctx context.Context, uri string, caller *tool.Caller) (json.RawMessage, error)
}

// Prompts are what the hub offers at /mcp for prompting, in MCP's own form.
type Prompts interface {
	ListPrompts(ctx context.Context) ([]json.RawMessage, error)
	// GetPrompt answers a GetPromptResult; args is an object of strings or nil.
	GetPrompt(ctx context.Context, name string, args json.RawMessage, caller *tool.Caller) (json.RawMessage, error)
}

// Completer suggests values for arguments of prompts and resource templates.
type Completer interface {
	// Complete takes the params of completion/complete and answers its result.
	Complete(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
}

// Upstreams are the servers behind /mcp/{namespace}.
type Upstreams interface {
	// Peer finds one. It stays good while the name is in use; the hub asks for
	// every request whether it still is.
	Peer(namespace string) (Peer, bool)
	// Has tells whether there is one, for less than finding it costs.
	Has(namespace string) bool
	Namespaces() []string
}

// Peer is one upstream server seen whole.
type Peer interface {
	// Call relays the call of a tool, and answers its raw result. params are those of
	// the request, of which call tells what they say. A JSON-RPC error of the upstream
	// is a *wire.Error in the chain.
	Call(ctx context.Context, call tool.Call, params json.RawMessage) (json.RawMessage, error)
	// Request relays any other request in the same way.
	Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error)
	// Describe tells what the upstream said of itself.
	Describe(ctx context.Context) (capabilities, serverInfo, instructions json.RawMessage, err error)
	// Watch calls notify, one at a time, for each notification the upstream sends
	// outside of a call, until stop is called.
	Watch(notify func(method string, params json.RawMessage)) (stop func())
}

// Options say what the hub serves and within which bounds.
type Options struct {
	Name         string // how the server names itself to programs
	Title        string // and to people; may be empty
	Version      string
	Instructions string // for the model that uses the server; may be empty
	// InstructionsFunc gives the instructions where they change with the tools; nil: they are
	// always the same.
	InstructionsFunc func(ctx context.Context) string

	// Tools are exposed at /mcp under Info.Name; their Space is not looked at.
	Tools        tool.Source
	Resources    Resources    // nil: none, and the capability is not declared
	Prompts      Prompts      // likewise
	Completer    Completer    // likewise
	Tasks        Tasks        // likewise
	Upstreams    Upstreams    // nil: nothing at /mcp/{namespace}
	SessionStore SessionStore // sessions that other nodes go on with; nil: there are none
	Nodes        Nodes        // to which clients' messages may have to be carried; nil: there are none

	// Releases says that some of Tools call Release, which lets a call outlive its HTTP
	// request. Calls then run in goroutines of their own.
	Releases bool

	// Changes tells the hub that lists or resources at /mcp changed, by the
	// method names and params of MCP's notifications; calls of notify may come
	// from any goroutine and return at once. Nil: nothing ever changes.
	Changes func(notify func(method string, params json.RawMessage)) (stop func())

	// Principal names who made a request, after authentication by whatever
	// stands in front of the hub. Sessions and parked calls belong to it. Nil:
	// everybody is the same.
	Principal func(*http.Request) string
	// Origins are the browser origins allowed besides the hub's own, as
	// "https://host:port"; "*" allows all.
	Origins []string
	// Hosts are the Host names allowed on a loopback address besides localhost.
	Hosts []string

	Limits     Limits
	Log        *slog.Logger                  // nil: silent
	Tracer     trace.Tracer                  // nil: no spans
	Meter      metric.Meter                  // nil: no measurements
	Propagator propagation.TextMapPropagator // nil: trace context is neither read nor passed on
}

// Limits bound what clients can make the hub do. Zero means the default.
type Limits struct {
	Body      int64         // bytes of one posted message: 4 MiB
	Line      int           // bytes of one message on stdio: 16 MiB
	Page      int           // entries of one page of a list: 1000
	Sessions  int           // sessions of the older era per endpoint: 10,000
	Idle      time.Duration // after which an unused session ends: 30 minutes
	Question  time.Duration // for the answer to a question, parked or not: 10 minutes
	Pending   int           // calls parked at a time: 1000
	Quiet     time.Duration // after which a call without an answer becomes a stream: 5 s
	KeepAlive time.Duration // between signs of life on a silent stream: 15 s
	Debounce  time.Duration // for list changes to come together: 50 ms
	Write     time.Duration // for one write to a stream, after which its client counts as gone: 30 s
	Progress  int           // progress messages per second and call: 20
}

func (l Limits) orDefault() Limits {
	fill(&l.Body, 4<<20)
	fill(&l.Line, 16<<20)
	fill(&l.Page, 1000)
	fill(&l.Sessions, 10_000)
	fill(&l.Idle, 30*time.Minute)
	fill(&l.Question, 10*time.Minute)
	fill(&l.Pending, 1000)
	fill(&l.Quiet, 5*time.Second)
	fill(&l.KeepAlive, 15*time.Second)
	fill(&l.Debounce, 50*time.Millisecond)
	fill(&l.Write, 30*time.Second)
	fill(&l.Progress, 20)
	return l
}

func fill[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Hub is the server. Close it when done.
type Hub struct {
	opts    Options
	log     *slog.Logger
	metrics instruments
	pending *pendingCalls
	local   *endpoint
	closing chan struct{} // closed by Close: streams end, new requests are refused

	work     sync.WaitGroup // tasks and the janitor
	relaying sync.Mutex     // held while an upstream's endpoint is looked up or made; before mu

	mu       sync.Mutex
	closed   bool
	requests map[*request]struct{}
	relays   map[string]*endpoint
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
		relays:   map[string]*endpoint{},
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
	h.work.Go(h.expireSessions)
	return h
}

// Routes are /mcp, /mcp/sse with /mcp/message, /mcp/{namespace} and the addresses
// at which clients look for an authorization server.
func (h *Hub) Routes() []principal.Route {
	route := func(pattern string, scope principal.Scope, serve http.HandlerFunc) principal.Route {
		return principal.Route{Pattern: pattern, Scope: scope, Handler: h.guarded(serve)}
	}
	list := []principal.Route{
		route("/mcp", principal.MCP, func(w http.ResponseWriter, r *http.Request) { h.local.ServeHTTP(w, r) }),
		route("/mcp/sse", principal.MCP, h.serveSSE),
		route("/mcp/message", principal.MCP, h.serveSSEMessage),
		route("/mcp/{namespace}", principal.MCP, h.serveRelay),
	}
	for _, path := range wellKnown {
		list = append(list, route(path, "", noAuthorization))
	}
	return list
}

// Handler serves the routes to everybody, for whoever has no gate before them.
func (h *Hub) Handler() http.Handler { return principal.Unguarded(h.Routes()) }

// Sessions counts the open sessions of the older era, stdio included.
func (h *Hub) Sessions() int {
	n := 0
	for _, e := range h.endpoints() {
		n += e.sessions.count()
	}
	return n
}

// Connected counts the sessions whose clients read from us or wait for an answer
// just now.
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

// Close ends what is open: listeners get their last word, streams end, parked
// calls are called off, running ones may finish until ctx is done and are
// cancelled then. It returns when nothing of the hub runs any more. An
// http.Server in front of it is shut down afterwards: that would wait for the
// streams.
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

// background is the context of what the hub does on no request's behalf, and
// backgroundTime bounds it.
var background = context.Background()

const backgroundTimeout = 30 * time.Second

// cancelRequests calls off the tasks which says yes to; nil means all of them.
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

// expireSessions ends sessions that nobody used for too long.
func (h *Hub) expireSessions() {
	tick := time.NewTicker(min(30*time.Second, max(h.opts.Limits.Idle/4, time.Millisecond)))
	defer tick.Stop()
	for {
		select {
		case <-h.closing:
			return
		case now := <-tick.C:
			for _, e := range h.endpoints() {
				e.sessions.expire(background, now.Add(-h.opts.Limits.Idle))
			}
		}
	}
}
