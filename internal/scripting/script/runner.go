// Package script runs scripts: a source with parameters, in a fresh sandboxed
// state, inside a budget, with its output captured and its temp folder removed
// on every way out. It knows the engines and the modules; what scripts do to the
// world goes through the host package's door.
package script

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
)

// Limits bound one run. Zero fields mean the default beside them.
type Limits struct {
	Time   time.Duration // 30 s
	Memory int64         // 128 MiB
	Output int           // 1 MiB of printed and logged text
	Calls  int64         // 1,000 effects
	Tools  int64         // calls of tools among them; no limit of their own
	Temp   int64         // 100 MB of temp files
}

func (l Limits) orDefault(d Limits) Limits {
	if l.Time == 0 {
		l.Time = d.Time
	}
	if l.Memory == 0 {
		l.Memory = d.Memory
	}
	if l.Output == 0 {
		l.Output = d.Output
	}
	if l.Calls == 0 {
		l.Calls = d.Calls
	}
	if l.Tools == 0 {
		l.Tools = d.Tools
	}
	if l.Temp == 0 {
		l.Temp = d.Temp
	}
	return l
}

// DefaultLimits are those of a script nobody set limits for.
func DefaultLimits() Limits {
	return Limits{Time: 30 * time.Second, Memory: 128 << 20, Output: 1 << 20, Calls: 1000, Temp: 100 << 20}
}

// Options is what a runner needs of the house.
type Options struct {
	Tools     tool.Source    // what mcp.<ns>.<tool> reaches; may be nil
	Upstreams host.Upstreams // what the tools module manages; may be nil
	Results   host.Results   // what the results module keeps; may be nil
	Events    *event.Bus
	Log       *slog.Logger
	Tracer    trace.Tracer
	Meter     metric.Meter
	Clock     clock.Clock
	Contents  host.Contents               // nil switches cas and artifact off
	HTTP      *http.Client                // nil switches the http module off
	GetWrites bool                        // a GET is not made in previews, and needs approval like a write
	Commands  host.Commands               // nil switches run_command off
	Getenv    func(string) (string, bool) // limited to what scripts may see; may be nil
	TempDir   string                      // parent of temp folders; "" is the system's
	Files     host.FilesOptions
	Limits    Limits
	// JavaScript runs scripts in that language; nil switches them off. It may be
	// shared, and is not the runner's to close.
	JavaScript *JavaScriptEngine
	// Language is that of a stored script, "" when it is not known; it may be nil.
	Language  func(ctx context.Context, hash cas.Ref) string
	Random    func() uint64 // seeds; nil draws from the system
	Approvals Approvals     // who decides what scripts may do; nil lets them do all
	Flow      host.Flow     // follows what runs have read; nil follows nothing
	// CurrentPrincipal tells who somebody is now, for a run that goes on after its approval;
	// nil takes them as they were.
	CurrentPrincipal func(ctx context.Context, was principal.Principal) (principal.Principal, error)
	// Fields are the names of the fields a tool's results have, at any depth, as
	// far as they are known; may be nil.
	Fields func(ctx context.Context, ref tool.Ref) []string
}

// Runner runs scripts. It is safe for concurrent use.
type Runner struct {
	options Options
	lua     *luaEngine
}

// NewRunner prepares the engines.
func NewRunner(o Options) *Runner {
	o.Limits = o.Limits.orDefault(DefaultLimits())
	if o.Contents != nil {
		o.Files.Named = o.Contents.Folder()
	}
	return &Runner{options: o, lua: newLuaEngine()}
}

// Modules are what scripts can reach.
func (r *Runner) Modules() []host.Module { return r.lua.modules }

// Request is one run.
type Request struct {
	Source   string
	Name     string          // what errors call it; "" means "script"
	Language string          // "" goes by the extension in Name, and is Lua without
	Hash     cas.Ref         // of a stored script; zero otherwise
	Creator  string          // who stored or started it
	Params   json.RawMessage // with Main: the argument of main
	Main     bool            // load the chunk, then call main(params); else the chunk's value is the result
	// TypedParams are params as somebody typed them; where describe() wants text, the text counts.
	TypedParams map[string]string

	Handler host.Handler          // nil is live
	Caller  *tool.Caller          // who waits
	Limits  Limits                // zero fields: the runner's
	Temp    string                // a folder that outlives the run, to be its temp folder; "" makes one that goes with it
	Watch   func(host.OutputLine) // sees output as it is said; must not block; nil tells the caller

	Upstreams host.Upstreams // what the tools module manages in this run; nil: the runner's
	FlowName  string         // under which what it has read is remembered, such as "job:…"; "" is not

	entry *entry // another function than main; nil otherwise
	turn  turn   // of a session; nil runs in a fresh state
	stay  *stay  // what is left of the run to go on with; nil is nothing
}

// entry is a function of the script that is called once the chunk has run.
type entry struct {
	name     string
	optional bool // a script without it is not at fault
	absent   bool // set by the run: there is none
}

// entryPoint is what a run calls after the chunk; nil is nothing.
func (q Request) entryPoint() *entry {
	if q.entry == nil && q.Main {
		return &entry{name: "main"}
	}
	return q.entry
}

// Outcome is what a run left behind, also when it failed.
type Outcome struct {
	Result   json.RawMessage // nil when it failed
	Output   []host.OutputLine
	Duration time.Duration
	Tools    int64 // how many tools it called
}

// Run runs a script. The error is an *Error when the script is at fault, and a
// *Pending when it waits for somebody's approval; output is in the outcome either
// way. Cancelling ctx stops the script wherever it is.
func (r *Runner) Run(ctx context.Context, q Request) (Outcome, error) {
	if q.Handler != nil || host.ParentOf(ctx) != nil || r.options.Approvals == nil {
		return r.run(ctx, q)
	}
	a := &attended{runner: r, key: newRunKey(), request: q, once: func(ctx context.Context, handler host.Handler) (Outcome, error) {
		q := q
		q.Handler = handler
		return r.run(ctx, q)
	}}
	if q.Caller != nil {
		a.owner = q.Caller.User
	}
	outcome, err := a.run(ctx)
	if _, problem := a.finish(ctx, Turn{Outcome: outcome}, err); err == nil {
		err = problem
	}
	return outcome, err
}

// run runs a script once, by its own door or that of the script that asked.
func (r *Runner) run(ctx context.Context, q Request) (Outcome, error) {
	q = r.inLanguage(ctx, q)
	ctx, remember, err := r.follow(ctx, q.FlowName)
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := r.runOnce(ctx, q)
	if problem := remember(); problem != nil { // what is not remembered must not be seen either
		return Outcome{}, problem
	}
	return outcome, err
}

// follow begins to follow what a run reads, and what it had read before. What it
// returns keeps that.
func (r *Runner) follow(ctx context.Context, record string) (_ context.Context, remember func() error, err error) {
	flow := r.options.Flow
	if flow == nil {
		return ctx, func() error { return nil }, nil
	}
	ctx = flow.Begin(ctx)
	if record == "" {
		return ctx, func() error { return nil }, nil
	}
	remember = func() error { return flow.Remember(context.WithoutCancel(ctx), record) }
	return ctx, remember, flow.Recall(ctx, record)
}

// inherit has what was read under one name remembered under another as well.
func (r *Runner) inherit(ctx context.Context, from, to string) error {
	flow := r.options.Flow
	if flow == nil {
		return nil
	}
	ctx = flow.Begin(ctx)
	if err := flow.Recall(ctx, from); err != nil {
		return err
	}
	return flow.Remember(ctx, to)
}

// runOnce runs the script in its own world.
func (r *Runner) runOnce(ctx context.Context, q Request) (Outcome, error) {
	limits := q.Limits.orDefault(r.options.Limits)
	ctx, span := r.options.Tracer.Start(ctx, q.spanName())
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(spanAttributes(ctx, q)...)
	}
	temp := r.tempFor(q, limits)
	defer func() {
		if err := temp.Close(); err != nil {
			r.options.Log.WarnContext(ctx, "temp folder left behind", "error", err)
		}
	}()
	listener := host.NewListener(r.options.Events)
	if q.stay != nil {
		q.stay.listener = listener
	} else {
		defer listener.Close()
	}
	output := host.NewOutput(r.options.Log, limits.Output, q.watch())
	tools := &host.ToolCounter{Limit: limits.Tools}
	engine, err := r.engineFor(q)
	if err == nil {
		err = engine.warm(ctx)
	}
	started := r.options.Clock.Now()

	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time, &timeoutError{limits.Time})
	defer cancel()
	var result json.RawMessage
	if err == nil {
		result, err = engine.run(ctx, q, limits, r.environment(ctx, q, limits, belongings{tools, temp, output, listener}))
	}
	outcome := Outcome{Output: output.Lines(), Duration: r.options.Clock.Now().Sub(started), Tools: tools.Count()}
	if err != nil {
		failure := r.explain(ctx, q, err)
		span.RecordError(failure, trace.WithAttributes(attribute.String("exception.stacktrace", failure.StackText())))
		span.SetStatus(codes.Error, string(failure.Kind))
		return outcome, failure
	}
	outcome.Result = result
	return outcome, nil
}

// tempFor is the run's own folder, or one that was there before it.
func (r *Runner) tempFor(q Request, limits Limits) *host.Temp {
	if q.Temp != "" {
		return host.NewTempAt(q.Temp, limits.Temp)
	}
	return host.NewTemp(r.options.TempDir, limits.Temp)
}

// belongings are what a run has for itself.
type belongings struct {
	tools    *host.ToolCounter
	temp     *host.Temp
	output   *host.Output
	listener *host.Listener
}

// environment is the world of one run.
func (r *Runner) environment(ctx context.Context, q Request, limits Limits, own belongings) *host.Env {
	handler, parent := q.Handler, host.ParentOf(ctx)
	switch {
	case handler != nil:
		parent = nil
	case parent != nil: // a part of what another script does
		handler = parent.Handler
	default:
		handler = host.Live()
	}
	o := r.options
	if q.Upstreams != nil {
		o.Upstreams = q.Upstreams
	}
	env := host.NewEnv(r.lua.modules, host.TrackFlow(host.LimitEffects(own.tools.Wrap(handler), limits.Calls), o.Flow), &host.Services{
		Tools: o.Tools, Caller: q.Caller, Upstreams: o.Upstreams, Results: o.Results,
		Output: own.output, Clock: host.NewClock(o.Clock),
		Files: host.NewFiles(own.temp, o.Files), Temp: own.temp, Contents: o.Contents,
		HTTP: o.HTTP, GetWrites: o.GetWrites, Commands: o.Commands, Getenv: o.Getenv, Meter: o.Meter, Random: o.Random,
		Events: o.Events, Listener: own.listener, Resident: q.stay != nil,
		Progress: progressTo(q.Caller),
	})
	if parent != nil {
		env.SetParent(parent)
	}
	return env
}

func progressTo(caller *tool.Caller) func(float64, string) {
	return func(fraction float64, message string) {
		if caller != nil && caller.Progress != nil {
			caller.Progress(tool.Progress{Progress: fraction, Total: 1, Message: message})
		}
	}
}

func (q Request) spanName() string {
	if q.entry != nil {
		return "luanette.script." + q.entry.name
	}
	return "luanette.script.execute"
}

func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return fmt.Sprintf("%s (%d bytes)", redact.Cut(text, limit), len(text))
}

func (q Request) name() string {
	if q.Name == "" {
		return "script"
	}
	return q.Name
}
