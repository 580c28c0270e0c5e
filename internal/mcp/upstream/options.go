package upstream

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/mcp/faultinject"
	"github.com/luanette/luanette/internal/mcp/packages"
	"github.com/luanette/luanette/internal/mcp/recording"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/sandbox/launch"
)

// Options configure a Manager. The zero value works, without a cache, a log or
// access to the environment.
type Options struct {
	Log    *slog.Logger // nil: no log
	Events *event.Bus   // nil: no events

	// ClientName and ClientVersion are sent in the handshake; empty means "luanette"
	// and "dev".
	ClientName    string
	ClientVersion string

	// CacheDir is the folder for what is known of servers between runs; empty: nothing
	// is stored. It is created if it is missing.
	CacheDir string

	// OnDemand starts a server when it is first used, whatever its spec says, and also if
	// its tools are not known. It is for a process that serves one command.
	OnDemand bool

	// Getenv reads our environment, for bearer tokens; nil: it is empty.
	Getenv func(string) (string, bool)
	// Environ lists it as NAME=value, for what child processes inherit; nil: nothing.
	Environ func() []string

	// Secret resolves the references to secrets in the headers and variables of a
	// Trusted spec, when they are used; nil: they are used as they are written.
	Secret func(text string) (secret.Text, error)

	// Person returns who the owner of a connection is; nil: only the ID is known. An error
	// refuses the connection, as that of a person who was blocked.
	Person func(ctx context.Context, owner string) (Person, error)
	// Personal returns a value that the owner of a connection has stored; fault.NotFound if
	// there is none. nil: there are none.
	Personal func(ctx context.Context, owner, name string) (secret.Text, error)

	// DialControl may refuse an address when it is dialled, after its name has been
	// resolved, for specs that are not Trusted; see net.Dialer.Control.
	DialControl func(network, address string, conn syscall.RawConn) error
	// GuardedControl is DialControl for specs that are Guarded; nil: they have the same.
	GuardedControl func(network, address string, conn syscall.RawConn) error
	// Proxy picks a proxy per request; nil: none.
	Proxy func(*http.Request) (*url.URL, error)
	// Socket is the Unix socket that HTTP requests go to, whatever their URL; empty: none.
	Socket string

	// CAFile is a PEM file with certificate authorities that are trusted besides those of
	// the system; empty: none. It is read with every connection.
	CAFile string

	// Login has the tokens for HTTP requests of specs without credentials of their
	// own; nil: there are none.
	Login Login

	// Files stores what APIs answer that is not text, and has what is sent to them; nil:
	// that is not possible.
	Files api.Files

	// Tasks stores tasks for callers who asked for them; nil: calls wait for the result.
	Tasks TaskKeeper

	// Packages has the packages that commands with npx run; nil: npx itself runs.
	Packages *packages.Store

	// Sandbox starts the processes of specs with a Sandbox; nil: those are not started.
	Sandbox *launch.Launcher

	// Dialers open other transports than the built-in ones, or replace those. The key is the value of
	// Spec.Transport, or the scheme of Spec.URL.
	Dialers map[string]Dialer

	// APIs open services that are not MCP servers, by kind; nil: the built-in kinds.
	APIs map[string]api.Opener

	Backoff backoff.Policy // between attempts; zero means 100 ms doubling to 3 s

	// ProbeTimeout is how long a server may take to answer the handshake of an era that it
	// perhaps does not speak; a URL has twice that time; zero: 5 s.
	ProbeTimeout time.Duration
	// StartTimeout is how long a process may take until it is connected; zero: 2 min.
	StartTimeout   time.Duration
	ConnectTimeout time.Duration // the same for a URL; zero: 30 s
	// ParallelStarts is how many processes may start at once; zero: two per processor.
	ParallelStarts int
	// Idle is how long a program of an installed package that starts quickly is not used until it
	// sleeps, if its spec does not say when it starts; zero: it does not.
	Idle           time.Duration
	QuickStart     time.Duration // how long the start of such a program may take; zero: 2 s
	HealthInterval time.Duration // how long a server may be silent until a health check; zero: 15 s
	HealthTimeout  time.Duration // for the answer to a health check; zero: 5 s
	Debounce       time.Duration // between list_changed and the new list; zero: 100 ms
	AuthRetry      time.Duration // between attempts while credentials are missing; zero: 1 min
	// SecretInterval is how often the files with the secrets of a connection are looked at, which
	// watching would miss where they are mounted or links are exchanged; zero: 2 s.
	SecretInterval time.Duration
	FailedAfter    time.Duration // how long a process must end the same way until StateFailed; zero: 5 s
	FailedRetry    time.Duration // between attempts in StateFailed; zero: 5 min
	StopTimeout    time.Duration // for a child process to end by itself; zero: 2 s

	// MaxMessage is the largest message of a server in bytes; zero: 16 MiB.
	MaxMessage int

	// Tracer makes a client span per request; nil: none. Propagator writes the
	// span's context into _meta and headers; nil: the caller's trace context is passed
	// on.
	Tracer     trace.Tracer
	Propagator propagation.TextMapPropagator
	// Meter records how long requests and sessions took, and the states of the upstreams;
	// nil: nothing is recorded.
	Meter metric.Meter
}

// shared is what all connections of a Manager have in common.
type shared struct {
	opts       *Options        // with their defaults
	clientInfo json.RawMessage // of the handshake
	starts     *startQueue
	recordings *recording.Set
	faults     *faultinject.Plans
	meters     *meters
	watchers   *watchers
}

func newShared(o Options) *shared {
	o = o.withDefaults()
	return &shared{
		opts: &o, clientInfo: clientInfo(o.ClientName, o.ClientVersion), starts: newStartQueue(o.ParallelStarts),
		recordings: &recording.Set{}, faults: &faultinject.Plans{}, meters: newMeters(o.Meter),
		watchers: &watchers{list: map[connectionKey]map[*watcher]bool{}},
	}
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Getenv == nil {
		o.Getenv = func(string) (string, bool) { return "", false }
	}
	if o.Environ == nil {
		o.Environ = func() []string { return nil }
	}
	if o.ClientName == "" {
		o.ClientName = "luanette"
	}
	if o.ClientVersion == "" {
		o.ClientVersion = "dev"
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = wire.MaxMessage
	}
	o.ProbeTimeout = positive(o.ProbeTimeout, 5*time.Second)
	o.StartTimeout = positive(o.StartTimeout, DefaultStartTimeout)
	o.ConnectTimeout = positive(o.ConnectTimeout, 30*time.Second)
	o.QuickStart = positive(o.QuickStart, 2*time.Second)
	o.HealthInterval = positive(o.HealthInterval, 15*time.Second)
	o.HealthTimeout = positive(o.HealthTimeout, 5*time.Second)
	o.Debounce = positive(o.Debounce, 100*time.Millisecond)
	o.AuthRetry = positive(o.AuthRetry, time.Minute)
	o.SecretInterval = positive(o.SecretInterval, 2*time.Second)
	o.FailedAfter = positive(o.FailedAfter, 5*time.Second)
	o.FailedRetry = positive(o.FailedRetry, 5*time.Minute)
	o.StopTimeout = positive(o.StopTimeout, 2*time.Second)
	if o.ParallelStarts <= 0 {
		o.ParallelStarts = 2 * runtime.GOMAXPROCS(0)
	}
	if o.APIs == nil {
		o.APIs = builtinAPIs
	}
	return o
}

// control may refuse the addresses that the connection of a spec dials; nil: it may dial all.
func (o *Options) control(spec Spec) func(network, address string, conn syscall.RawConn) error {
	switch {
	case spec.Trusted:
		return nil
	case spec.Guarded && o.GuardedControl != nil:
		return o.GuardedControl
	}
	return o.DialControl
}

// startTimeout is how long the server of a spec may take until it is connected.
func (o *Options) startTimeout(s Spec) time.Duration {
	if s.Command == "" {
		return positive(time.Duration(s.StartTimeout), o.ConnectTimeout)
	}
	return positive(time.Duration(s.StartTimeout), o.StartTimeout)
}
