// Package script runs scripts in Lua and JavaScript. A run executes a source with
// parameters in a fresh sandboxed state or in that of a session, within limits, captures
// its output and removes its temp folder. Effects that need approval make it wait. The
// package also describes scripts. Effects go through package host. Packages below it keep
// sessions, publish scripts as tools, and run the startup script with its hooks.
package script

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/observe/telemetry/params"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/memory"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/kv"
)

// Limits bound one run. Zero fields mean the default beside them.
type Limits struct {
	Time   time.Duration // 30 s; NoTimeLimit is none
	Memory int64         // 128 MiB
	Output int           // 1 MiB of printed and logged text
	Calls  int64         // 1,000 effects
	Tools  int64         // tool calls among the effects; no separate limit
	Temp   int64         // 100 MB of temp files
	Steps  int64         // loop iterations and calls; no limit
}

// NoTimeLimit lets a run take as long as it needs.
const NoTimeLimit time.Duration = -1

// deadline returns a context that ends when the run's time is over. Waiting for memory
// that other runs hold does not count.
func (l Limits) deadline(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	if l.Time < 0 {
		return context.WithCancelCause(ctx)
	}
	return memory.WithDeadline(ctx, l.Time, &timeoutError{l.Time})
}

// OrDefault returns the limits with those of d where they are zero.
func (l Limits) OrDefault(d Limits) Limits {
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
	if l.Steps == 0 {
		l.Steps = d.Steps
	}
	return l
}

// Within narrows the time and memory of a run.
func (l Limits) Within(bound Limits) Limits {
	if bound.Time > 0 {
		l.Time = min(l.Time, bound.Time)
	}
	if bound.Memory > 0 {
		l.Memory = min(l.Memory, bound.Memory)
	}
	return l
}

// DefaultLimits returns the limits that apply if none are set.
func DefaultLimits() Limits {
	return Limits{Time: 30 * time.Second, Memory: 128 << 20, Output: 1 << 20, Calls: 1000, Temp: 100 << 20}
}

// Options is what a Runner needs from the server.
type Options struct {
	Tools     tool.Source    // called by mcp.<ns>.<tool>; may be nil
	Upstreams host.Upstreams // managed by the tools module; may be nil
	Results   host.Results   // read and written by the results module; may be nil
	Events    *event.Bus
	Log       *slog.Logger
	Tracer    trace.Tracer
	Meter     metric.Meter
	Clock     clock.Clock
	Contents  host.Contents               // nil disables cas and artifact
	KV        *kv.Store                   // nil disables kv
	Jobs      func() Jobs                 // starts jobs for scripts; nil, or returning nil, disables that
	HTTP      *http.Client                // nil disables the http module
	GetWrites bool                        // GET requests count as writes: not made in previews, and subject to approval
	Commands  host.Commands               // nil disables run_command
	Getenv    func(string) (string, bool) // limited to the variables scripts may read; may be nil
	TempDir   string                      // parent of temp folders; "" is the system's
	Files     host.FilesOptions
	Limits    Limits
	Memory    *memory.Pool // of all runs together; nil does not limit it
	CPU       CPU          // counts the processor time of organisations; nil does not count it
	// JavaScript runs scripts in that language; nil disables them. It may be shared
	// between runners, and the runner does not close it.
	JavaScript *JavaScriptEngine
	// Language returns the language of a stored script, "" if it is unknown; it may be
	// nil.
	Language  func(ctx context.Context, hash cas.Ref) string
	Random    func() uint64 // seeds; nil uses the system's random source
	Approvals Approvals     // decides which effects need approval; nil allows all
	// AwaitTools is Request.AwaitTools of runs that waited for an approval: their servers may
	// be starting when they continue. It may be nil.
	AwaitTools func(ctx context.Context, namespace string)
	Flow       host.Flow // tracks what runs have read; nil disables it
	// CurrentPrincipal returns the current rights of the principal of a run that resumes
	// after its approval; nil uses those it had.
	CurrentPrincipal func(ctx context.Context, was principal.Principal) (principal.Principal, error)
	// Scope returns a context in which such a run has the tools of its principal; may be nil.
	Scope func(context.Context) (context.Context, error)
	// Fields returns the known field names of a tool's results, at any depth; may be
	// nil.
	Fields func(ctx context.Context, ref tool.Ref) []string
}

// Runner runs scripts. It is safe for concurrent use.
type Runner struct {
	options Options
	lua     *luaEngine

	descriptions recent[descriptionKey, Description]
}

// NewRunner prepares the engines.
func NewRunner(o Options) *Runner {
	o.Limits = o.Limits.OrDefault(DefaultLimits())
	if o.Memory == nil {
		o.Memory = memory.NewPool(memory.Options{})
	}
	if o.Contents != nil {
		o.Files.Named = o.Contents.Folder()
	}
	return &Runner{options: o, lua: newLuaEngine()}
}

// Modules returns the modules that scripts can use.
func (r *Runner) Modules() []host.Module { return r.lua.modules }

// Limits returns the limits of runs that set none.
func (r *Runner) Limits() Limits { return r.options.Limits }

// Request describes one run. The fields with names in JSON are stored while it waits for
// approval.
type Request struct {
	Source   string          `json:"source"`
	Name     string          `json:"name,omitempty"`     // used in error messages; "" means "script"
	Own      string          `json:"own,omitempty"`      // the name from describe(), which Prepare sets; "" means Name
	Language string          `json:"language,omitempty"` // "" means the language of Name's extension, otherwise Lua
	Hash     cas.Ref         `json:"hash"`               // of a stored script; zero otherwise
	Creator  string          `json:"creator,omitempty"`  // who stored or started it
	Org      string          `json:"org,omitempty"`      // whose published script it is; "" is the server's, or none
	Params   json.RawMessage `json:"params,omitempty"`   // with Main: the argument of main
	Main     bool            `json:"main,omitempty"`     // run the chunk, then call main(params); otherwise the chunk's value is the result
	Limits   Limits          `json:"limits"`             // zero fields mean the runner's

	// TypedParams are params as typed on a command line. Where describe() asks for a
	// string, the typed text is used.
	TypedParams map[string]string `json:"-"`

	Handler host.Handler          `json:"-"` // nil means live
	Caller  *tool.Caller          `json:"-"` // the client waiting for the result
	Temp    string                `json:"-"` // an existing folder to use as temp folder, which outlives the run; "" creates one that is removed
	Watch   func(host.OutputLine) `json:"-"` // receives output while the script runs; must not block; nil sends it to the caller

	Upstreams host.Upstreams `json:"-"` // managed by the tools module in this run; nil means the runner's
	// AwaitTools waits until the tools of a namespace are known, or cannot be; nil does not
	// wait: a call of an unknown tool then waits for its upstream itself.
	AwaitTools func(ctx context.Context, namespace string) `json:"-"`
	Job        string                                      `json:"-"` // id of the job that the run is, for traces; "" otherwise
	Jobs       Jobs                                        `json:"-"` // starts jobs; nil means the runner's
	FlowName   string                                      `json:"-"` // name under which the flow of the run is stored, such as "job:…"; "" does not store it

	State *SavedState `json:"-"` // of the session whose turn the run is; nil runs in a fresh state

	entry    entry          // a function to call instead of main
	listener *host.Listener // of a script that stays loaded, which closes it; nil if it does not
}

// entry is a function of the script that is called after the chunk. The zero value is none.
type entry struct {
	name     string
	optional bool // its absence is not an error
}

// entryPoint returns the function to call after the chunk.
func (q Request) entryPoint() entry {
	if q.entry.name == "" && q.Main {
		return entry{name: "main"}
	}
	return q.entry
}

// Outcome is the outcome of a run, also of one that failed.
type Outcome struct {
	Result   json.RawMessage // nil if it failed
	Silent   bool            // the script returned no value; Result is null
	Output   []host.OutputLine
	Duration time.Duration
	Tools    int64         // number of tool calls
	CPU      time.Duration // processor time of the script itself; 0 if it is not counted
	State    State         // of a request with a State: what the run left; nil if that must not be used

	absent bool // the script does not define the optional function to call
}

// Run runs a script. The error is an *Error if the script failed, and a *PendingError if
// it waits for approval; the outcome has its output in both cases. Cancelling ctx stops
// the script.
func (r *Runner) Run(ctx context.Context, q Request) (Outcome, error) {
	if !r.mayAsk(ctx, q) {
		return r.run(ctx, q)
	}
	a := NewApprovedRun(q)
	outcome, err := r.withApprovals(ctx, a, r.attempt(q))
	if problem := r.Finish(ctx, a, outcome, nil, err); err == nil {
		err = problem
	}
	return outcome, err
}

// attempt makes a run of a request.
func (r *Runner) attempt(q Request) Attempt {
	return func(ctx context.Context, handler host.Handler) (Outcome, error) {
		q.Handler = handler
		return r.run(ctx, q)
	}
}

// run runs a script once, with its own Handler or that of its parent.
func (r *Runner) run(ctx context.Context, q Request) (Outcome, error) {
	q = r.WithLanguage(ctx, q)
	ctx, remember, err := r.follow(ctx, q.FlowName)
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := r.runOnce(ctx, q)
	if problem := remember(); problem != nil { // without the record the result must not be shown
		return Outcome{}, problem
	}
	return outcome, err
}

// follow starts tracking what a run reads, including what it read before under the name
// record. remember stores the record.
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

// InheritFlow stores the flow under the name from also under the name to.
func (r *Runner) InheritFlow(ctx context.Context, from, to string) error {
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

// runOnce runs the script with its own Services.
func (r *Runner) runOnce(ctx context.Context, q Request) (Outcome, error) {
	limits := runLimits{Limits: q.Limits.OrDefault(r.options.Limits)}
	ctx, span := r.startSpan(ctx, q)
	defer span.End()
	temp := r.tempFor(q, limits.Limits)
	defer func() {
		if err := temp.Close(); err != nil {
			r.options.Log.WarnContext(ctx, "temp folder not removed", "error", err)
		}
	}()
	limits.share, ctx = r.memoryOf(ctx, limits.Limits)
	listener := q.listener
	if listener == nil { // otherwise its state stays, with what it holds
		listener = host.NewListener(r.options.Events)
		defer listener.Close()
		defer limits.share.Close()
	}
	output := host.NewOutput(r.options.Log, limits.Output, q.watch())
	tools := &host.ToolCounter{Limit: limits.Tools}
	engine, err := r.engineFor(q)
	if err == nil {
		err = engine.warm(ctx)
	}
	started := r.options.Clock.Now()

	ctx, stop := limits.deadline(ctx)
	defer stop(nil)
	if err == nil {
		limits.meter, err = r.meterOf(ctx, stop)
	}
	var done ended
	if err == nil {
		done, err = limits.meter.measure(func() (ended, error) {
			return engine.run(ctx, q, limits, r.environment(ctx, q, limits, ownServices{tools, temp, output, listener}))
		})
	}
	outcome := Outcome{
		Result: done.result, Silent: done.silent, Output: output.Lines(), Duration: r.options.Clock.Now().Sub(started),
		Tools: tools.Count(), CPU: limits.meter.total(span), State: done.state, absent: done.absent,
	}
	if err == nil {
		return outcome, nil
	}
	failure := r.explain(ctx, q, err)
	tellCalls(ctx, failure, tools.Open())
	recordFailure(span, q, failure)
	if lost := (*restoreError)(nil); errors.As(err, &lost) {
		return outcome, lost.reason
	}
	return outcome, failure
}

// startSpan starts the span of a run.
func (r *Runner) startSpan(ctx context.Context, q Request) (context.Context, trace.Span) {
	ctx, span := r.options.Tracer.Start(ctx, q.spanName())
	if span.IsRecording() {
		span.SetAttributes(spanAttributes(ctx, q)...)
		telemetry.AddLink(ctx, span)
		if q.Job != "" {
			ctx = telemetry.WithAttributes(ctx, jobAttributes(q)...)
		}
	}
	return ctx, span
}

// recordFailure records how a run failed. What a rehearsal does with made-up answers is no
// failure.
func recordFailure(span trace.Span, q Request, failure *Error) {
	if q.Handler != nil && host.Rehearsing(q.Handler) {
		span.SetAttributes(attribute.Bool("luanette.for_plan", true))
		return
	}
	span.RecordError(failure, trace.WithAttributes(attribute.String("exception.stacktrace", failure.StackText())))
	span.SetStatus(codes.Error, string(failure.Kind))
}

// tempFor returns the run's temp folder, a new one or the one the request names.
func (r *Runner) tempFor(q Request, limits Limits) *host.Temp {
	if q.Temp != "" {
		return host.NewTempAt(q.Temp, limits.Temp)
	}
	return host.NewTemp(r.options.TempDir, limits.Temp)
}

// ownServices are the parts of Services that only this run uses.
type ownServices struct {
	tools    *host.ToolCounter
	temp     *host.Temp
	output   *host.Output
	listener *host.Listener
}

// environment makes the environment of one run.
func (r *Runner) environment(ctx context.Context, q Request, limits runLimits, own ownServices) *host.Env {
	handler, parent := q.Handler, host.ParentOf(ctx)
	switch {
	case handler != nil:
		parent = nil
	case parent != nil: // a nested run
		handler = parent.Handler
	default:
		handler = host.Live()
	}
	o, progress := r.options, &progressReport{caller: q.Caller}
	if q.Upstreams != nil {
		o.Upstreams = q.Upstreams
	}
	env := host.NewEnv(r.lua.modules, host.TrackFlow(host.LimitEffects(own.tools.Wrap(handler), limits.Calls), o.Flow), &host.Services{
		Tools: o.Tools, AwaitTools: q.AwaitTools, Caller: q.Caller, Upstreams: o.Upstreams, Results: o.Results,
		Output: own.output, Clock: host.NewClock(o.Clock),
		Files: host.NewFiles(own.temp, r.filesFor(ctx)), Temp: own.temp, Contents: o.Contents,
		KV: r.kvFor(ctx, q), Script: q.OwnName(), Jobs: r.jobsFor(q), Job: q.Job,
		HTTP: o.HTTP, GetWrites: o.GetWrites, Commands: o.Commands, Getenv: o.Getenv, Meter: o.Meter, Random: o.Random,
		Events: o.Events, Listener: own.listener, Resident: q.listener != nil,
		Progress: progress.script, ToolProgress: progress.tool,
	})
	if parent != nil {
		env.SetParent(parent)
	}
	if limits.meter != nil {
		env.SetMeter(limits.meter)
	}
	return env
}

func (q Request) spanName() string {
	if q.entry.name != "" {
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

// spanAttributes names the script, who runs it, and its parameters, shortened so that a
// large parameter cannot fill a trace.
func spanAttributes(ctx context.Context, q Request) []attribute.KeyValue {
	attributes := append(jobAttributes(q), attribute.String("script.name", q.name()))
	switch {
	case q.Creator != "":
		attributes = append(attributes, attribute.String("script.creator", q.Creator))
	case q.Caller != nil && q.Caller.ID != "":
		attributes = append(attributes, attribute.String("script.creator", q.Caller.ID))
	}
	if scope := tool.ScopeOf(ctx); scope != nil && scope.HideArgs {
		return attributes
	}
	return append(attributes, params.Attributes("script.params", q.Params)...)
}

// jobAttributes names the script, and the job if it is one. All spans of a job have them.
func jobAttributes(q Request) []attribute.KeyValue {
	hash := q.Hash
	if hash == (cas.Ref{}) {
		hash = cas.Sum([]byte(q.Source))
	}
	attributes := []attribute.KeyValue{attribute.String("script.hash", hash.String())}
	if q.Job != "" {
		attributes = append(attributes, attribute.String("job.id", q.Job))
	}
	return attributes
}
