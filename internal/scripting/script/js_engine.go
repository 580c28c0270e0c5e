package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/js"
	"github.com/luanette/luanette/internal/scripting/memory"
)

// JavaScriptOptions are the options of a JavaScriptEngine.
type JavaScriptOptions struct {
	CacheDir string       // caches the compiled engine between processes; "" compiles it in each
	Memory   int64        // upper bound of a script's memory in bytes, whatever its limits; 0 means 128 MiB
	Log      *slog.Logger // nil discards
	Pool     *memory.Pool // counts the instances that the engine holds; may be nil
}

// JavaScriptEngine runs scripts in JavaScript and TypeScript. It binds the modules once,
// into the memory image that every script starts from. Runners may share one. Nothing is
// compiled before the first script or Precompile.
type JavaScriptEngine struct {
	engine *js.Engine
	bound  map[string]boundFunc // by target
	plain  atomic.Pointer[plainIndex]
}

// NewJavaScript makes the engine. The caller closes it.
func NewJavaScript(o JavaScriptOptions) (*JavaScriptEngine, error) {
	if o.Memory == 0 {
		o.Memory = DefaultLimits().Memory
	}
	e := &JavaScriptEngine{bound: map[string]boundFunc{}}
	modules := modules()
	options := js.Options{CacheDir: o.CacheDir, Memory: o.Memory, Log: o.Log}
	if o.Pool != nil {
		share, _ := o.Pool.Open(context.Background(), "", 0)
		options.Count = share.Count
	}
	for i := range modules {
		if !modules[i].LuaOnly {
			options.Modules = append(options.Modules, e.bind(&modules[i]))
		}
	}
	var err error
	e.engine, err = js.NewEngine(options)
	return e, err
}

// Precompile stores the compiled engine in the cache, in the background, if it is not there.
func (e *JavaScriptEngine) Precompile() { e.engine.Precompile() }

// warm waits until scripts can run.
func (e *JavaScriptEngine) warm(ctx context.Context) error { return e.engine.Warm(ctx) }

// Close waits for running scripts, then frees everything.
func (e *JavaScriptEngine) Close(ctx context.Context) error { return e.engine.Close(ctx) }

// run runs a request in a fresh realm, or in that of its session.
func (e *JavaScriptEngine) run(ctx context.Context, q Request, limits runLimits, env *host.Env) (done ended, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	h := &jsHost{engine: e, env: env, stop: stop}
	if name := q.required(); name != "" && !e.mayDefine(q, name) { //nolint:contextcheck // it waits for nothing
		return done, missingMain(q.advice(MissingMain))
	}
	program := e.program(ctx, q, limits, h)
	var outcome js.Outcome
	if q.State != nil {
		outcome, done.state, err = e.eval(ctx, q.State.Bytes, program, h)
	} else {
		outcome, err = e.engine.Run(ctx, program, h)
	}
	if err != nil {
		return done, &jsFailure{err, h.causeOf(err)}
	}
	if done.absent = outcome.Absent; done.absent && !q.entryPoint().optional {
		return done, missingMain(q.advice(MissingMain))
	}
	if limits.share != nil {
		limits.share.Count(int64(len(outcome.Result)))
	}
	done.result = outcome.Result
	if done.silent = done.result == nil; done.silent {
		done.result = json.RawMessage("null")
	}
	return done, nil
}

// eval runs a program in the realm of a session.
func (e *JavaScriptEngine) eval(ctx context.Context, saved []byte, p js.Program, h js.Host) (js.Outcome, State, error) {
	session := e.engine.NewSession()
	if saved != nil {
		var err error
		if session, err = e.engine.Restore(ctx, saved); err != nil {
			return js.Outcome{}, nil, cannotRestore(err)
		}
	}
	state := &jsState{session, session.Turns()}
	outcome, err := session.Eval(ctx, p, h)
	return outcome, state, err
}

// jsState is the realm of a session after a run. It does not stay in memory.
type jsState struct {
	session *js.Session
	before  int // its turns before the run
}

func (s *jsState) Stopped() bool { return s.session.Turns() == s.before }

func (s *jsState) Snapshot(ctx context.Context) (saved []byte, omitted []string, err error) {
	saved, err = s.session.Snapshot(ctx)
	return saved, nil, err
}

func (s *jsState) Live() LiveState { return nil }

// jsCalls limits calls of host functions of every kind in one run. The Handler limits
// effects.
const jsCalls = 100_000

// program converts the request for the engine.
func (e *JavaScriptEngine) program(ctx context.Context, q Request, limits runLimits, h *jsHost) js.Program {
	p := js.Program{
		Source: q.Source, Name: q.name(),
		Funcs:  h.globals(ctx, q.Source),
		OnLine: func(line js.Line) { h.say(ctx, line) },
		Limits: js.Limits{
			Time:   NoTimeLimit, // that of ctx applies
			Memory: limits.Memory, Output: int(limits.Memory),
			Calls: jsCalls, Parallel: int(limits.Calls), Steps: limits.Steps, Reserve: limits.reserve(),
		},
	}
	if limits.meter != nil {
		p.Limits.Meter, p.Limits.Reserve = limits.meter, limits.meter.reserve(limits.share)
	}
	if entry := q.entryPoint(); entry.name != "" {
		p.Entry = &js.Entry{Name: entry.name, Argument: q.Params}
		if len(q.Params) == 0 {
			p.Entry.Argument = json.RawMessage("{}")
		}
	}
	return p
}

// compile checks whether the source is valid JavaScript or TypeScript.
func (e *JavaScriptEngine) compile(ctx context.Context, q Request) error {
	if err := e.engine.Check(ctx, q.Source, q.name()); err != nil {
		return &jsFailure{err, nil}
	}
	return nil
}

// mayDefine looks for the name in the text. A name that is not declared at the beginning of
// a line may still be only mentioned: the compiler tells, which refuses a second declaration.
func (e *JavaScriptEngine) mayDefine(q Request, name string) bool {
	if !strings.Contains(q.Source, name) {
		return false
	}
	for _, found := range declaration().FindAllStringSubmatch(q.Source, -1) {
		if found[1] == name {
			return true
		}
	}
	if assigned().MatchString(q.Source) {
		return true
	}
	again := q
	again.Source += "\n;let " + name + ";"
	return e.compile(context.Background(), again) != nil // it waits for nothing outside
}

// What declares a name at the beginning of a line, and what may define one without declaring it.
var (
	declaration = lazyregexp.New(`(?m)^\s*(?:(?:async\s+)?function\s*\*?|const|let|var|class)\s+([\w$]+)`)
	assigned    = lazyregexp.New(`\bglobalThis\b|\bthis\s*[.,\[)]|\b(?:eval|Function)\s*\(`)
)

var _ engine = (*JavaScriptEngine)(nil)

// boundFunc is a host function and the module it belongs to.
type boundFunc struct {
	module string
	f      *host.Func
}

// target is the name by which the JavaScript side calls a function.
func target(module, name string) string {
	if module == "" {
		return name
	}
	return module + "." + name
}

// bind makes a module for the engine. Functions that wait return a promise; the others
// return their value.
func (e *JavaScriptEngine) bind(m *host.Module) js.Module {
	out := js.Module{Name: m.Name, Source: m.JS, Space: m.Name == "mcp"}
	for i := range m.Funcs {
		f := &m.Funcs[i]
		e.bound[target(m.Name, f.Name)] = boundFunc{m.Name, f}
		out.Funcs = append(out.Funcs, js.Func{Name: f.Name, Target: target(m.Name, f.Name), Sync: !f.Waits, Hidden: f.Hidden})
	}
	return out
}

// jsHost connects one run to its environment. Every call passes the environment's
// Handler.
type jsHost struct {
	engine *JavaScriptEngine
	env    *host.Env
	stop   context.CancelCauseFunc // ends the run

	mu      sync.Mutex
	raised  map[string]error  // recent errors of functions, by message
	spelled map[string]string // tools by the names that the source uses for them; not changed while the script runs
	lazy    []*host.Lazy      // answers of a rehearsal that the script has not looked into
	now     time.Time         // last time returned to Date; used by the script's goroutine only
}

// find returns the host function of a name, and its arguments.
func (h *jsHost) find(name string, args json.RawMessage) (boundFunc, []host.Value, error) {
	values, err := fromJS(args)
	if err != nil {
		return boundFunc{}, nil, err
	}
	if name == "sleep" {
		name = "clock.sleep"
	}
	if found, ok := h.engine.bound[name]; ok {
		return found, values, nil
	}
	path, isTool := strings.CutPrefix(name, "mcp.")
	if !isTool {
		return boundFunc{}, nil, fault.New(fault.ToolNotFound, "no function %s", name)
	}
	if exact := h.spelled[path]; exact != "" && strings.Contains(path, ".") { // get_sum may be the tool get-sum
		path = exact
	}
	space, name, inSpace := strings.Cut(path, ".")
	if !inSpace {
		space, name = "", path
	}
	if len(values) > 1 || len(values) == 1 && !isObject(values[0]) {
		return boundFunc{}, nil, fault.New(fault.InvalidParams, "%s takes one object of named arguments", path).
			WithHint("write await %s({ name: value })", tool.Ref{Space: space, Name: name}.ScriptPath())
	}
	return h.engine.bound["mcp.call"], append([]host.Value{space, name}, values...), nil
}

func isObject(v host.Value) bool {
	raw, ok := v.(json.RawMessage)
	return v == nil || ok && raw[0] == '{'
}

// Start begins an asynchronous call. The effect has its number when Start returns.
func (h *jsHost) Start(name string, args json.RawMessage) func(context.Context) (json.RawMessage, error) {
	found, values, err := h.find(name, args)
	if err != nil {
		return func(context.Context) (json.RawMessage, error) { return nil, h.raise(err, name) }
	}
	effect := h.env.Start(found.module, found.f, values)
	return func(ctx context.Context) (json.RawMessage, error) {
		values, err := effect(ctx)
		if err != nil {
			return nil, h.raise(err, name)
		}
		return h.toJS(values)
	}
}

// jsLazyKey marks an answer of a rehearsal in the JSON for the prelude.
const jsLazyKey = "$luanette.lazy"

// toJS encodes the result of a function. A made-up answer gets a number, with which the
// prelude reports that the script looked into it.
func (h *jsHost) toJS(values []host.Value) (json.RawMessage, error) {
	if len(values) != 1 {
		return toJS(values)
	}
	answer, ok := values[0].(*host.Lazy)
	if !ok {
		return toJS(values)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lazy = append(h.lazy, answer)
	return encode(map[string]any{jsLazyKey: len(h.lazy) - 1, "value": answer.JSON}), nil
}

// looked records that the script looked into a made-up answer.
func (h *jsHost) looked(args json.RawMessage) {
	var number []int
	if json.Unmarshal(args, &number) != nil || len(number) != 1 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := number[0]; i >= 0 && i < len(h.lazy) {
		h.lazy[i].Look()
	}
}

// CallSync makes a synchronous call.
func (h *jsHost) CallSync(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	if name == "__looked" {
		h.looked(args)
		return nil, nil
	}
	found, values, err := h.find(name, args)
	if err == nil {
		values, err = h.env.Call(ctx, found.module, found.f, values)
	}
	if err != nil {
		return nil, h.raise(err, name)
	}
	return h.toJS(values)
}

// Next returns which of several calls the script gets the result of next. The order
// depends on the outside, so it passes the Handler like the time does.
func (h *jsHost) Next(ctx context.Context, first func(context.Context) (int, error)) (int, error) {
	number, err := nextDone(ctx, h.env, func(ctx context.Context) (int64, error) {
		id, err := first(ctx)
		return int64(id), err
	})
	return int(number), err
}

// Now returns the time for Date. If the Handler refuses it, the run ends.
func (h *jsHost) Now(ctx context.Context) time.Time {
	found := h.engine.bound["clock.now"]
	values, err := h.env.Call(ctx, found.module, found.f, nil)
	if err != nil {
		h.stop(err)
	} else if milliseconds, ok := values[0].(int64); ok {
		h.now = time.UnixMilli(milliseconds)
	}
	return h.now
}

// Seed returns the seed of Math.random.
func (h *jsHost) Seed(ctx context.Context) uint64 {
	seed, err := h.env.Seed(ctx)
	if err != nil {
		h.stop(err)
	}
	return seed
}

// say records a line of the console. Too many lines end the run, as with print.
func (h *jsHost) say(ctx context.Context, line js.Line) {
	stream := "stdout"
	if line.Level == "warn" || line.Level == "error" {
		stream = "stderr"
	}
	found := h.engine.bound["__print"]
	if _, err := h.env.Call(ctx, found.module, found.f, []host.Value{stream, strings.ToValidUTF8(line.Text, "�"), line.Level}); err != nil {
		h.stop(err)
	}
}

// raise remembers an error, so that explain knows the cause if the script does not catch
// it. The error value itself cannot be passed into the script.
func (h *jsHost) raise(err error, name string) error {
	const enough = 64
	var cause error = fault.From(err)
	if strings.HasPrefix(name, "mcp.") {
		cause = toolFault{fault.From(err)}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.raised == nil || len(h.raised) >= enough {
		h.raised = map[string]error{}
	}
	h.raised[err.Error()] = cause
	return err
}

// causeOf returns the error of the function that ended the run, or nil.
func (h *jsHost) causeOf(err error) error {
	var thrown *js.Error
	if !errors.As(err, &thrown) || thrown.Func == "" {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.raised[thrown.Message]
}

// bytesKey marks bytes that are not valid text in arguments and results.
const bytesKey = "$bytes"

// fromJS decodes the arguments of a call: scalars as they are, everything else as JSON.
func fromJS(args json.RawMessage) ([]host.Value, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal(args, &raws); err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read the arguments")
	}
	values := make([]host.Value, len(raws))
	for i, raw := range raws {
		var err error
		if values[i], err = valueFromJS(raw); err != nil {
			return nil, fault.Wrap(fault.InvalidParams, err, "read argument %d", i+1)
		}
	}
	return values, nil
}

func valueFromJS(raw json.RawMessage) (host.Value, error) {
	switch raw[0] {
	case 'n':
		return nil, nil
	case 't', 'f':
		return raw[0] == 't', nil
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	case '[':
		return raw, nil
	case '{':
		if !bytes.HasPrefix(raw, []byte(`{"`+bytesKey+`":"`)) {
			return raw, nil
		}
		var packed map[string][]byte
		if json.Unmarshal(raw, &packed) != nil || len(packed) != 1 { // an ordinary object with that key
			return raw, nil //nolint:nilerr // see above
		}
		return string(packed[bytesKey]), nil
	}
	if whole, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return whole, nil
	}
	return strconv.ParseFloat(string(raw), 64)
}

// toJS encodes the result of a function: nothing is undefined, several values are a
// list.
func toJS(values []host.Value) (json.RawMessage, error) {
	switch len(values) {
	case 0:
		return nil, nil
	case 1:
		if values[0] == nil {
			return nil, nil
		}
		return valueToJS(values[0])
	}
	list := []byte{'['}
	for i, value := range values {
		raw, err := valueToJS(value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, raw...)
	}
	return append(list, ']'), nil
}

func valueToJS(value host.Value) (json.RawMessage, error) {
	switch v := value.(type) {
	case nil:
		return json.RawMessage("null"), nil
	case json.RawMessage:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return encode(map[string][]byte{bytesKey: []byte(v)}), nil
		}
		return encode(v), nil
	case bool, int64:
		return encode(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return json.RawMessage("null"), nil // like JSON.stringify
		}
		return encode(v), nil
	default:
		return nil, fmt.Errorf("a %T cannot be passed to a script", v)
	}
}

var _ js.Host = (*jsHost)(nil)
