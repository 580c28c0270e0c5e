package host

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
)

// Services is what effects use: the parts of the server and the machine that a run has
// access to. A nil field means that the run has no access to that part.
type Services struct {
	Tools tool.Source // what mcp.<ns>.<tool> calls
	// AwaitTools waits until the tools of a namespace are known, or cannot be; may be nil.
	AwaitTools func(ctx context.Context, namespace string)
	Caller     *tool.Caller                           // the client waiting for the run, which tools may send requests to
	Upstreams  Upstreams                              // managed by the tools module
	Results    Results                                // values stored for later runs, by handle
	Output     *Output                                // what the run prints and logs
	Clock      *Clock                                 // the run's own time
	Files      *Files                                 // folders it may read or write
	Temp       *Temp                                  // the run's own folder, removed when it ends
	Contents   Contents                               // contents stored by hash
	KV         KV                                     // values that the script stores between its runs
	Jobs       Jobs                                   // starts jobs in the background
	Job        string                                 // id of the job that the run is; "" if it is none
	HTTP       *http.Client                           // limited to the allowed hosts
	GetWrites  bool                                   // a GET request counts as a write
	Getenv     func(string) (string, bool)            // limited to the allowed variables
	Events     *event.Bus                             // where emit publishes
	Listener   *Listener                              // receives events for on(event, fn)
	Resident   bool                                   // the script stays loaded after the run, so hooks may be set
	Commands   Commands                               // programs it may run
	Meter      metric.Meter                           // for otel.record_metric
	Progress   func(fraction float64, message string) // reports progress to the caller
	// ToolProgress passes the progress of a tool that the script waits for to the caller; nil
	// does not.
	ToolProgress func(ref tool.Ref, p tool.Progress)
	Random       func() uint64 // seeds the script's generator
}

func (w *Services) random() uint64 {
	if w.Random != nil {
		return w.Random()
	}
	return rand.Uint64()
}

// Upstreams is the part of the connection manager that scripts may use.
type Upstreams interface {
	Add(ctx context.Context, name, url string) error
	Remove(ctx context.Context, name string) (bool, error)
	Status(name string) (UpstreamStatus, bool)
	List() []UpstreamStatus
}

// Commander is an Upstreams that also starts programs. Only the startup script is given
// one, because a program runs with the rights of the server's owner.
type Commander interface {
	AddCommand(ctx context.Context, name string, c Command) error
}

// ToolArranger is an Upstreams that also gives tools aliases and priorities. Only the
// startup script is given one.
type ToolArranger interface {
	Alias(ctx context.Context, namespace, alias, name string) error
	// Prefer gives a tool, or with an empty name all tools of a namespace, a priority.
	Prefer(ctx context.Context, namespace, name string, priority int) error
}

// Command is a program that is started and spoken to over its standard input and output.
type Command struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Cwd     string            `json:"cwd"`
}

// UpstreamStatus is one connection as scripts see it.
type UpstreamStatus struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Tools    int    `json:"tools"`
	Endpoint string `json:"endpoint"`
	Calls    int64  `json:"calls"`
	Error    string `json:"error,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	LastTool string `json:"last_tool,omitempty"`
}

// Clock is a run's own time: the server's clock plus what the script advanced.
type Clock struct {
	clock.Clock
	advanced *atomic.Int64          // milliseconds
	started  *atomic.Pointer[int64] // milliseconds since 1970 at which it stands still; nil runs with the server's clock
	instant  bool                   // for a rehearsal: sleeping takes no time
}

// NewClock starts at the current time of c.
func NewClock(c clock.Clock) *Clock {
	return &Clock{Clock: c, advanced: new(atomic.Int64), started: new(atomic.Pointer[int64])}
}

// Milliseconds returns the run's time in milliseconds since 1970.
func (c *Clock) Milliseconds() int64 {
	if start := c.started.Load(); start != nil {
		return *start + c.advanced.Load()
	}
	return c.Now().UnixMilli() + c.advanced.Load()
}

// Start sets the run's time. From then on only Advance moves it.
func (c *Clock) Start(milliseconds int64) {
	c.advanced.Store(0)
	c.started.Store(&milliseconds)
}

// Advance moves the run's time forward without waiting.
func (c *Clock) Advance(milliseconds int64) { c.advanced.Add(milliseconds) }

// ForRehearsal returns the same clock for a rehearsal: Sleep returns at once and
// advances the run's time.
func (c *Clock) ForRehearsal() *Clock {
	return &Clock{Clock: c.Clock, advanced: c.advanced, started: c.started, instant: true}
}

// Sleep waits for d.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if !c.instant {
		return c.Clock.Sleep(ctx, d)
	}
	c.Advance(d.Milliseconds())
	return c.Clock.Sleep(ctx, 0)
}

// rehearse returns the Services of a rehearsal: files and contents are written to an
// overlay, and sleeping takes no time.
func (w *Services) rehearse() *Services {
	rehearsed := *w
	if w.Files != nil {
		rehearsed.Files = w.Files.ForRehearsal()
	}
	if w.Contents != nil {
		rehearsed.Contents = newOverlayContents(w.Contents, w.Temp.limit)
	}
	if w.KV != nil {
		rehearsed.KV = newOverlayKV(w.KV)
	}
	if w.Clock != nil {
		rehearsed.Clock = w.Clock.ForRehearsal()
	}
	return &rehearsed
}
