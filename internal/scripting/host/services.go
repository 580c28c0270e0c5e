package host

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/kv"
	"github.com/luanette/luanette/internal/tools/results"
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
	Script     string                                 // the name of the script that runs
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
	Check(ctx context.Context, name, url string) error // why Add would refuse it
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

// Contents is the content store for scripts. It finds what the principal
// of the context may read.
type Contents interface {
	// Put stores all of r.
	Put(ctx context.Context, r io.Reader, about Stored) (Content, error)
	// Find returns the content that a hash or a unique prefix of one names.
	Find(ctx context.Context, hash string) (Content, error)
	// Artifact returns the content of an artifact, named by its id or hash.
	Artifact(ctx context.Context, id string) (Content, error)
	// Open opens a content for reading.
	Open(ctx context.Context, hash cas.Ref) (io.ReadCloser, error)
	// Folder is the folder with the contents as files; "" if they are not files.
	Folder() string
}

// Stored says what a script stores, so that people find it.
type Stored = artifact.Result

// Content is data stored under its hash.
type Content = cas.File

// Store returns the run's content store, or an error if there is none.
func (w *Services) Store() (Contents, error) {
	if w.Contents == nil {
		return nil, fault.New(fault.Unavailable, "this run has no content store").
			WithHint("run the script on a server, which has one in its data folder")
	}
	return w.Contents, nil
}

// Open opens a file for reading, named by a path that the run may read or by the hash of
// a content. The caller closes it.
func (w *Services) Open(ctx context.Context, name string) (File, error) {
	if _, err := cas.ParsePrefix(name); err != nil || strings.ContainsAny(strings.TrimPrefix(name, cas.Scheme+"//"), "./\\") {
		return w.Files.Open(name)
	}
	contents, err := w.Store()
	if err != nil {
		return nil, err
	}
	c, err := contents.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	if c.Path == "" {
		return nil, fault.New(fault.Unavailable, "contents are not stored as files here").WithHint("write it to temp.path with cas.read first")
	}
	return w.Files.Open(c.Path)
}

// Commands runs programs for scripts. The implementation decides which programs, where
// and with what environment.
type Commands interface {
	// Run runs a program to its end. A program that ran and failed is a result with its
	// status, not an error.
	Run(ctx context.Context, name string, args []string) (CommandResult, error)
}

// CommandResult is the result of a program.
type CommandResult struct {
	Status int // its exit status
	Stdout string
	Stderr string
}

// KV holds the values that a script stores between its runs. Each script of each
// principal has its own.
type KV interface {
	// Get returns the value of a key; nil if there is none.
	Get(ctx context.Context, key string) (json.RawMessage, error)
	// Set stores a value. With a positive lifetime it is removed after that time.
	Set(ctx context.Context, key string, value json.RawMessage, lifetime time.Duration) error
	// Delete removes a value. It returns false if there was none.
	Delete(ctx context.Context, key string) (bool, error)
	// Swap stores the new value if the present one is old, and reports whether it was;
	// nil means that there is no value. A change with the same token, if it is not "", is
	// made once.
	Swap(ctx context.Context, key string, change kv.Change) (bool, error)
	// List returns the values whose keys begin with prefix, sorted by key.
	List(ctx context.Context, prefix string) ([]KVEntry, error)
}

// KVEntry is a stored value as scripts see it.
type KVEntry struct {
	Key     string          `json:"key"`
	Value   json.RawMessage `json:"value"`
	Expires int64           `json:"expires,omitempty"` // milliseconds since 1970; 0 means never
}

// Jobs starts jobs for scripts, and tells how they ended.
type Jobs interface {
	// Start starts a job and returns its id. A second job with the same token, if that is
	// not "", is not started: the id is that of the first.
	Start(ctx context.Context, j NewJob) (id string, err error)
	// Result returns the state of a job of the same principal.
	Result(ctx context.Context, id string) (JobResult, error)
	// ChangedFile returns what a job, which the principal may undo, changed in a file.
	ChangedFile(ctx context.Context, id, path string) (ChangedFile, error)
}

// NewJob is a job to start.
type NewJob struct {
	Name     string          // for people; "" means the name of the script that starts it
	Source   string          // defines main(params)
	Language string          // of the source; "" means Lua
	Params   json.RawMessage // the argument of main
	Tags     []string
	Token    string // identifies the effect that starts it; "" if nothing repeats it
}

// JobResult is the state of a job.
type JobResult struct {
	State string          // "pending", "complete", "error" or "timeout"
	Value json.RawMessage // if it is complete
	Error string          // if it has failed
}

// Token identifies the effect that ctx belongs to among all effects of all jobs. It is ""
// unless the run is a job, or part of one: only jobs repeat an effect, after a crash.
func (w *Services) Token(ctx context.Context) string {
	parent := ParentOf(ctx)
	if parent == nil || parent.job == "" {
		return ""
	}
	return parent.job + "/" + strconv.FormatInt(parent.seq, 10)
}

// Results are values stored for later runs of the same user, each under a handle such as
// "$r12".
type Results interface {
	// Read returns a value, or the part that a JSON pointer selects.
	Read(ctx context.Context, owner, handle, pointer string) (json.RawMessage, error)
	// Slice skips items of a list, or characters of a text, and returns the next count.
	Slice(ctx context.Context, owner, handle, pointer string, skip, count int) (results.Part, error)
	// Put stores a value.
	Put(ctx context.Context, owner, source string, value json.RawMessage) (results.Stored, error)
	// List lists the stored values, the newest first.
	List(ctx context.Context, owner string) ([]results.Stored, error)
}
