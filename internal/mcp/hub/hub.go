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
// a message came before the answer.
package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
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
	h.pending = &pendingCalls{max: opts.Limits.Pending, waiting: map[string]*pendingCall{}}
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

// Routes are /mcp, /mcp/sse with /mcp/message, /mcp/{namespace}, /mcp/sets/{set}, and the paths where
// clients look for an authorization server.
func (h *Hub) Routes() []principal.Route {
	route := func(pattern string, scope principal.Scope, serve http.HandlerFunc) principal.Route {
		return principal.Route{Pattern: pattern, Scope: scope, Guests: scope == principal.MCP, ChecksOrigin: true, Bearer: true, Handler: h.guarded(serve)}
	}
	const message = "a JSON-RPC message"
	list := []principal.Route{
		route("/mcp", principal.MCP, func(w http.ResponseWriter, r *http.Request) { h.local.ServeHTTP(w, r) }).Reads(message),
		route("/mcp/sse", principal.MCP, h.serveSSE).Reads(principal.NoBody),
		route("/mcp/message", principal.MCP, h.serveSSEMessage).Reads(message),
		route("/mcp/{namespace}", principal.MCP, h.serveRelay).Reads(message),
		route("/mcp/sets/{set}", principal.MCP, h.serveSet).Reads(message),
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

// Offers are the resources, resource templates, prompts and completions at /mcp, in MCP's own
// form.
type Offers interface {
	// List is the whole list that prompts/list, resources/list or resources/templates/list
	// asks for.
	List(ctx context.Context, method string) ([]json.RawMessage, error)
	// Request answers any other request about them, by its params without what belongs to
	// this hop. An unknown resource is fault.NotFound.
	Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error)
	// Subscribe has Options.Changes notify the caller when a resource changes, until release
	// is called, which returns at once.
	Subscribe(ctx context.Context, uri string) (release func(), err error)
}

// Sets are the sets of tools at /mcp/sets/{set}. A principal names the one it is within.
type Sets interface {
	// Find returns an error if the principal's set does not exist for it.
	Find(who principal.Principal) error
	// Includes tells whether the principal's set has tools of a namespace.
	Includes(who principal.Principal, namespace string) bool
	// Instructions are those for the client of ctx, by its set and menu.
	Instructions(ctx context.Context) string
}

// Upstreams are the servers behind /mcp/{namespace}.
type Upstreams interface {
	// Peer finds an upstream. It can be used while Has returns true, which the hub
	// checks for every request.
	Peer(ctx context.Context, namespace string) (Peer, bool)
	// Owner is whose connection to an upstream the requests of ctx use; empty if all share
	// one. Each owner has an endpoint of its own.
	Owner(ctx context.Context, namespace string) string
	// Has tells whether there is an upstream of that name, and costs less than Peer.
	Has(namespace string) bool
	Namespaces() []string
	// RootsChanged passes on that a client's roots have changed.
	RootsChanged(client tool.Client)
}

// Peer is one upstream server with all it offers.
type Peer interface {
	// Call relays the call of a tool and returns its result. params are those of the
	// request, which call describes. A JSON-RPC error of the upstream is a *wire.Error in
	// the chain.
	Call(ctx context.Context, call tool.Call, params json.RawMessage) (tool.Result, error)
	// Request relays any other request in the same way.
	Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error)
	// Describe returns what the upstream answered to initialize or server/discover.
	Describe(ctx context.Context) (capabilities, serverInfo, instructions json.RawMessage, err error)
	// Find finds one of its tools, as the caller has it, in the list that is known.
	Find(ctx context.Context, name string) (tool.Info, bool)
	// Listed is one of its lists beside tools, as it is known: no server is connected for it.
	Listed(ctx context.Context, method string) []json.RawMessage
	// Watch calls notify, one call at a time, for each notification that the upstream
	// sends outside of calls, until stop is called.
	Watch(notify func(method string, params json.RawMessage)) (stop func())
}

// Notify passes on a notification of MCP. to tells for whom it is; nil: for everybody. Of
// changes of lists each client is told only if the list that it sees is different.
type Notify func(method string, params json.RawMessage, to func(principal.Principal) bool)

// Options are what the hub serves, and its limits.
type Options struct {
	Name    string // of the server, for programs
	Title   string // of the server, for people; may be empty
	Version string

	// Tools are exposed at /mcp under Info.Name; their Space is ignored.
	Tools tool.Source
	// Menus are the lists of tools that a client can ask for with the parameter menu of
	// the URL. Tools finds the client's choice with tool.MenuOf.
	Menus        []string
	HubMenu      string       // the one for clients of the same Name that do not ask for any
	Offers       Offers       // nil: none, and the capabilities are not declared
	Tasks        Tasks        // likewise
	RelayedTasks RelayedTasks // tasks of upstreams; nil: calls that ask for a task wait for the result
	Upstreams    Upstreams    // nil: nothing at /mcp/{namespace}
	Sets         Sets         // nil: nothing at /mcp/sets/{set}
	Logins       Logins       // asks people during a call to log in to an upstream; nil: they get the link as text
	SessionStore SessionStore // shares sessions with other nodes; nil: there are none
	Nodes        Nodes        // other nodes that serve the same clients; nil: there are none

	// Releases says that some of Tools call Release, which lets a call outlive its HTTP
	// request. Calls then run in goroutines of their own.
	Releases bool

	// Changes calls notify when lists or resources at /mcp change, for whomever. notify may
	// be called from any goroutine and returns at once. Nil: nothing ever changes.
	Changes func(notify Notify) (stop func())

	// Principal identifies who made a request, which was authenticated before. Sessions
	// and requests that wait for input belong to it. Nil: all callers are the same.
	Principal func(*http.Request) string
	// Origins are the browser origins allowed besides the hub's own, as
	// "https://host:port"; "*" allows all.
	Origins []string
	// Proxies are the trusted reverse proxies in front of the hub.
	Proxies netguard.Proxies

	Limits     Limits
	Log        *slog.Logger                  // nil: silent
	Tracer     trace.Tracer                  // nil: no spans
	Meter      metric.Meter                  // nil: no measurements
	Propagator propagation.TextMapPropagator // nil: trace context is neither read nor passed on
}

// Limits limit what clients can make the hub do. Zero means the default.
type Limits struct {
	Body      int64         // bytes of one posted message: 4 MiB
	Line      int           // bytes of one message on stdio: 16 MiB
	Page      int           // entries of one page of a list: 1000
	Sessions  int           // sessions per endpoint: 10,000
	Idle      time.Duration // after which an unused session ends: 30 minutes
	Question  time.Duration // for the client's answer to a question: 10 minutes
	Pending   int           // requests that wait for input: 1000
	Quiet     time.Duration // after which a response without an answer becomes a stream: 5 s
	KeepAlive time.Duration // between comments on a silent stream: 15 s
	Debounce  time.Duration // for several changes of a list to become one notification: 50 ms
	Write     time.Duration // for one write to a stream, after which its client counts as disconnected: 30 s
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

// Client is a program that used the hub.
type Client struct {
	Name    string    `json:"name"` // as it calls itself
	Version string    `json:"version,omitempty"`
	Seen    time.Time `json:"seen"` // when it last connected or listed something
}

// maxClients is how many clients are remembered, and maxClientName the length of what
// they say about themselves.
const (
	maxClients    = 100
	maxClientName = 100
)

// clients are the programs that used the hub lately.
type clients struct {
	mu    sync.Mutex
	known map[Client]time.Time // by name and version
}

// describe returns what a client says about itself; ok is false if that is too long.
func describe(info json.RawMessage) (name, version string, ok bool) {
	name, _ = rawjson.GetText(info, "name")
	version, _ = rawjson.GetText(info, "version")
	return name, version, name != "" && len(name) <= maxClientName && len(version) <= maxClientName
}

// agentOf is a client's name and version, such as "claude-code 2.1.0", or "".
func agentOf(info json.RawMessage) string {
	name, version, ok := describe(info)
	if !ok {
		return ""
	}
	return strings.TrimSpace(name + " " + version)
}

// add notes a client by what it says about itself. A client without a name is not noted.
func (c *clients) add(info json.RawMessage, now time.Time) {
	name, version, ok := describe(info)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.known[Client{Name: name, Version: version}]; !there && len(c.known) >= maxClients {
		return
	}
	if c.known == nil {
		c.known = map[Client]time.Time{}
	}
	c.known[Client{Name: name, Version: version}] = now
}

// Clients returns the programs that used the hub since it was made, the last one first.
func (h *Hub) Clients() []Client {
	h.clients.mu.Lock()
	defer h.clients.mu.Unlock()
	list := []Client{}
	for c, seen := range h.clients.known {
		c.Seen = seen
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Client) int { return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(a.Name, b.Name)) })
	return list
}
