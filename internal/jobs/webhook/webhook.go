// Package webhook receives requests of other services at POST /hooks/NAME. A request that
// is signed as its hook requires starts a job with the body as params. The job is stored
// before the request is acknowledged, and a delivery that comes again starts no other.
package webhook

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"
	silent "go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/jobs/job"
)

// Hook is an address that a service sends requests to.
type Hook struct {
	Name      string
	Script    string              // name of a published script, hash of a stored one, or path of a file
	Scheme    Scheme              // how requests are authenticated
	Secrets   []secret.Text       // any of them is accepted, so that one can be replaced
	Header    string              // with Scheme Secret: the header that has the secret
	Delivery  string              // the header that identifies a delivery; "" is that of the scheme
	Headers   map[string]string   // headers that become params, by the param's name
	Window    time.Duration       // how old a signed time may be
	Keep      time.Duration       // how long deliveries are recognised
	MaxBytes  int64               // limit of the body
	Tags      []string            // of the jobs
	Principal principal.Principal // whose rights the jobs have
}

// Principals of hooks have ids that begin with it.
const principalPrefix = "hook:"

// PrincipalID is the id of a hook's principal.
func PrincipalID(name string) string { return principalPrefix + name }

// Queue stores and starts jobs.
type Queue interface {
	SubmitOnce(ctx context.Context, s job.Spec, key string, keep time.Duration) (j job.Job, repeated bool, err error)
	Submit(ctx context.Context, s job.Spec) (job.Job, error)
}

// Audit records deliveries. refusal is "" for one that was accepted.
type Audit interface {
	RecordDelivery(ctx context.Context, hook string, body []byte, refusal string)
}

// Options configure a receiver. All but Queue, Hooks and Script are optional.
type Options struct {
	Queue  Queue
	Hooks  func() map[string]Hook // the current ones
	Script func(ctx context.Context, name string) (Script, error)
	Client func(*http.Request) string // the address of the client, for the log
	Audit  Audit
	Events *event.Bus
	Tracer trace.Tracer
	Clock  clock.Clock
	Log    *slog.Logger
}

// Receiver receives requests. It is safe for concurrent use.
type Receiver struct {
	options  Options
	decoy    Hook // stands for hooks that do not exist
	refusals perMinute
}

// New returns a receiver.
func New(o Options) *Receiver {
	if o.Tracer == nil {
		o.Tracer = silent.Tracer{}
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = func(r *http.Request) string { return r.RemoteAddr }
	}
	decoy := Hook{Scheme: GitHub, Secrets: []secret.Text{secret.New(rand.Text())}, MaxBytes: DefaultMaxBytes}
	return &Receiver{options: o, decoy: decoy}
}

// Routes is the route of all hooks. Anybody may use it: each hook checks its own secret.
func (rc *Receiver) Routes() []principal.Route {
	return []principal.Route{{
		Pattern: "POST /hooks/{hook}", Scope: principal.Open, Handler: rc, Authenticates: true, Body: "what the service sends",
		AnyOrigin: true, // no page can sign a request, and services use names of ours that we do not know
	}}
}
