package hub

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// Resources are the resources at /mcp. Definitions and results are in MCP's own form.
type Resources interface {
	ListResources(ctx context.Context) ([]json.RawMessage, error)
	ListTemplates(ctx context.Context) ([]json.RawMessage, error)
	// ReadResource returns a ReadResourceResult; fault.NotFound for an unknown uri.
	ReadResource(ctx context.Context, uri string, caller *tool.Caller) (json.RawMessage, error)
}

// Prompts are the prompts at /mcp, in MCP's own form.
type Prompts interface {
	ListPrompts(ctx context.Context) ([]json.RawMessage, error)
	// GetPrompt returns a GetPromptResult; args is an object of strings or nil.
	GetPrompt(ctx context.Context, name string, args json.RawMessage, caller *tool.Caller) (json.RawMessage, error)
}

// Completer suggests values for arguments of prompts and resource templates.
type Completer interface {
	// Complete takes the params of completion/complete and returns its result.
	Complete(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
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
	// Watch calls notify, one call at a time, for each notification that the upstream
	// sends outside of calls, until stop is called.
	Watch(notify func(method string, params json.RawMessage)) (stop func())
}

// Notify passes on a notification of MCP. to tells for whom it is; nil: for everybody. Of
// changes of lists each client is told only if the list that it sees is different.
type Notify func(method string, params json.RawMessage, to func(principal.Principal) bool)

// Options are what the hub serves, and its limits.
type Options struct {
	Name         string // of the server, for programs
	Title        string // of the server, for people; may be empty
	Version      string
	Instructions string // for the model that uses the server; may be empty

	// Tools are exposed at /mcp under Info.Name; their Space is ignored.
	Tools tool.Source
	// Menus are the lists of tools that a client can ask for with the parameter menu of
	// the URL. Tools finds the client's choice with tool.MenuOf.
	Menus        []string
	HubMenu      string       // the one for clients of the same Name that do not ask for any
	Resources    Resources    // nil: none, and the capability is not declared
	Prompts      Prompts      // likewise
	Completer    Completer    // likewise
	Tasks        Tasks        // likewise
	RelayedTasks RelayedTasks // tasks of upstreams; nil: calls that ask for a task wait for the result
	Upstreams    Upstreams    // nil: nothing at /mcp/{namespace}
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
	// Hosts are the Host names allowed on a loopback address besides localhost.
	Hosts []string
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
