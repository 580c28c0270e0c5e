// Package api is what the rest of the program knows of a service that is not an MCP
// server, and whose operations are offered as tools all the same. Package upstream makes
// an upstream of any API, so that everything that works for MCP servers works for it.
package api

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/store/cas"

	"github.com/luanette/luanette/internal/sandbox/launch"
)

// API is a service whose operations are tools. All methods may be called concurrently.
type API interface {
	// List returns the tools. It may be called often and must be cheap if nothing changed.
	List(ctx context.Context) (Listing, error)
	// Call calls a tool and returns the result of tools/call as MCP has it. A failure that
	// the service reports is a result with isError; an error means that the service was not
	// asked, or that nobody knows its answer. Errors are faults and contain no credentials.
	// The API itself repeats what may be repeated.
	Call(ctx context.Context, call Call) (json.RawMessage, error)
	// Close ends everything that the API started, and waits for that.
	Close()
}

// Listing is the tools of an API and what it says about itself.
type Listing struct {
	Title        string // of the service; empty: not known
	Version      string
	Instructions string            // how the tools are used; empty: nothing to say
	Tools        []json.RawMessage // definitions as in tools/list
	LeftOut      []string          // why operations are not offered
}

// Call is one call of a tool.
type Call struct {
	Tool      string
	Arguments json.RawMessage // an object, or empty
	// Progress reports that the call goes on, which also extends its timeout. Total is 0 if
	// it is not known. It is never nil.
	Progress func(done, total float64, message string)
}

// Opener opens an API. What Environment has is for as long as the API is open.
type Opener func(ctx context.Context, env Environment) (API, error)

// Environment is what an API gets from the program.
type Environment struct {
	Name     string   // of the upstream
	Settings Settings // with their secrets
	Header   http.Header
	TLS      *tls.Config
	Login    Login // nil: there are no logins

	// AllowURL may refuse a URL, and DialControl an address; both may be nil.
	AllowURL    func(*url.URL) error
	DialControl func(network, address string, conn syscall.RawConn) error
	Proxy       func(*http.Request) (*url.URL, error)

	Files      Files            // nil: contents cannot be stored
	Sandbox    *launch.Launcher // starts programs; nil: those with a sandbox are not started
	Tracer     trace.Tracer
	Propagator propagation.TextMapPropagator
	Log        *slog.Logger
	MaxAnswer  int           // bytes of an answer that is not stored as a file
	Timeout    time.Duration // of a call without progress; zero: none
	MaxTime    time.Duration // of a call in total

	// Changed requests a new List. It does not block.
	Changed func()
}

// RefusedCredentials tells callers why the service does not accept a call.
func (e Environment) RefusedCredentials() string {
	return "The service does not accept the credentials of upstream " + e.Name + ", which its configuration has."
}

// Login has the tokens for a service that requires a login.
type Login interface {
	// Token is the bearer token for requests to base; "" for none.
	Token(ctx context.Context, base string) (string, error)
	// Refused returns another token after the service has refused one.
	Refused(ctx context.Context, base string, refusal Refusal) (string, error)
	// At returns the same login for a service that names the endpoint of its tokens.
	At(tokenURL string) Login
}

// Refusal is an answer of a service that requires other credentials.
type Refusal struct {
	Status    int
	Challenge string // WWW-Authenticate
	Token     string // that was sent; may be empty
}

// Files stores contents that are not text, and finds those that callers name by a hash or
// an artifact's id.
type Files interface {
	PutFile(ctx context.Context, content io.Reader, mime string) (cas.File, error)
	FindFile(ctx context.Context, name string) (cas.File, error)
}
