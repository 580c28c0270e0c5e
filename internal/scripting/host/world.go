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

// Services is everything outside a script, as the functions of modules see it when
// the door lets them. A nil part is a part this run does not have.
type Services struct {
	Tools     tool.Source                            // what mcp.<ns>.<tool> calls
	Caller    *tool.Caller                           // who waits for the run; tools may talk to them
	Upstreams Upstreams                              // what the tools module manages
	Results   Results                                // kept for later runs, by handle
	Output    *Output                                // what the run prints and logs
	Clock     *Clock                                 // the run's own time
	Files     *Files                                 // folders it may read or write
	Temp      *Temp                                  // its own folder, gone when it ends
	Contents  Contents                               // what is kept under its hash
	HTTP      *http.Client                           // already limited to the hosts that are allowed
	GetWrites bool                                   // a GET counts as something that may change the world
	Getenv    func(string) (string, bool)            // already limited to the variables that are allowed
	Events    *event.Bus                             // where emit publishes
	Listener  *Listener                              // what on(event, fn) hears
	Resident  bool                                   // the script stays after the run: hooks may be set
	Commands  Commands                               // programs it may run
	Meter     metric.Meter                           // what otel.record_metric counts with
	Progress  func(fraction float64, message string) // tells whoever waits
	Random    func() uint64                          // seeds the script's generator
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

// Commander is an Upstreams that also starts programs. Only the owner's own
// startup script is given one: a program runs with the owner's rights.
type Commander interface {
	AddCommand(ctx context.Context, name string, c Command) error
}

// ToolArranger is an Upstreams that also gives tools other names and an order. It too
// is the owner's.
type ToolArranger interface {
	Alias(ctx context.Context, namespace, alias, name string) error
	// SetPreferences gives a tool, or with no name all tools of a namespace, a priority.
	Prefer(ctx context.Context, namespace, name string, priority int) error
}

// Command is a program to start and speak to over its standard input and output.
type Command struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Cwd     string            `json:"cwd"`
}

// UpstreamStatus is one connection in the shape scripts know.
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

// Clock is a run's own time: the house's clock plus what the script advanced.
type Clock struct {
	clock.Clock
	advanced *atomic.Int64 // milliseconds
	pretends bool          // waiting takes no time
}

// NewClock starts at the time c tells.
func NewClock(c clock.Clock) *Clock { return &Clock{Clock: c, advanced: new(atomic.Int64)} }

// Milliseconds is the run's time since 1970.
func (c *Clock) Milliseconds() int64 { return c.Now().UnixMilli() + c.advanced.Load() }

// Advance moves the run's time forward without waiting.
func (c *Clock) Advance(milliseconds int64) { c.advanced.Add(milliseconds) }

// ForRehearsal is the same clock for a rehearsal: whoever waits goes on at once, and
// the run's time has moved by what they wanted to wait.
func (c *Clock) ForRehearsal() *Clock {
	return &Clock{Clock: c.Clock, advanced: c.advanced, pretends: true}
}

// Sleep waits until d has passed.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if !c.pretends {
		return c.Clock.Sleep(ctx, d)
	}
	c.Advance(d.Milliseconds())
	return c.Clock.Sleep(ctx, 0)
}

// pretend is the world of effects that are only rehearsed: files are written
// aside, and waiting takes no time.
func (w *Services) pretend() *Services {
	pretended := *w
	if w.Files != nil {
		pretended.Files = w.Files.ForRehearsal()
	}
	if w.Contents != nil {
		pretended.Contents = pretendContents(w.Contents, w.Temp.limit)
	}
	if w.Clock != nil {
		pretended.Clock = w.Clock.ForRehearsal()
	}
	return &pretended
}
