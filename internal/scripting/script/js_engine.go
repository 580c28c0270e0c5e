package script

import (
	"context"
	"encoding/json"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/luanette/luanette/internal/base/fault"
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
func (e *JavaScriptEngine) warm(ctx context.Context) error { return e.engine.Ready(ctx) }

// Close waits for running scripts, then frees everything.
func (e *JavaScriptEngine) Close(ctx context.Context) error { return e.engine.Close(ctx) }

// run runs a request in a fresh realm, or in that of its session.
func (e *JavaScriptEngine) run(ctx context.Context, q Request, limits Limits, env *host.Env) (json.RawMessage, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	h := &jsHost{engine: e, env: env, stop: stop}
	if name := q.required(); name != "" && !e.mayDefine(q, name) { //nolint:contextcheck // it waits for nothing
		return nil, missingMain(e.advice(MissingMain))
	}
	program := e.program(ctx, q, limits, h)
	var outcome js.Outcome
	var err error
	if t, ok := q.turn.(*jsTurn); ok {
		outcome, err = t.eval(ctx, program, h)
	} else {
		outcome, err = e.engine.Run(ctx, program, h)
	}
	if err != nil {
		return nil, &jsFailure{err, h.causeOf(err)}
	}
	if outcome.Absent {
		entry := q.entryPoint()
		if !entry.optional {
			return nil, missingMain(e.advice(MissingMain))
		}
		entry.absent = true
	}
	if limits.share != nil {
		limits.share.Count(int64(len(outcome.Result)))
	}
	if outcome.Result == nil {
		return json.RawMessage("null"), nil
	}
	return outcome.Result, nil
}

// jsCalls limits calls of host functions of every kind in one run. The Handler limits
// effects.
const jsCalls = 100_000

// program converts the request for the engine.
func (e *JavaScriptEngine) program(ctx context.Context, q Request, limits Limits, h *jsHost) js.Program {
	p := js.Program{
		Source: q.Source, Name: q.name(),
		Resolve: h.globals(ctx, q.Source),
		OnLine:  func(line js.Line) { h.say(ctx, line) },
		Limits: js.Limits{
			Time:   NoTimeLimit, // that of ctx applies
			Memory: limits.Memory, Output: int(limits.Memory), Logs: limits.Output,
			Calls: jsCalls, Parallel: int(limits.Calls), Steps: limits.Steps, Reserve: limits.reserve(),
		},
	}
	if limits.meter != nil {
		p.Limits.Meter, p.Limits.Reserve = limits.meter, limits.meter.reserve(limits.share)
	}
	if entry := q.entryPoint(); entry != nil {
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
	declaration = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\s*(?:(?:async\s+)?function\s*\*?|const|let|var|class)\s+([\w$]+)`)
	})
	assigned = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\bglobalThis\b|\bthis\s*[.,\[)]|\b(?:eval|Function)\s*\(`)
	})
)

// jsTurn is a run in the realm of a session.
type jsTurn struct {
	engine  *JavaScriptEngine
	saved   []byte
	session *js.Session // nil before the run
	before  int         // its turns before the run
	failed  error       // why the saved state cannot be used
}

func (e *JavaScriptEngine) turn(saved []byte) turn { return &jsTurn{engine: e, saved: saved} }

func (t *jsTurn) eval(ctx context.Context, p js.Program, h js.Host) (js.Outcome, error) {
	t.session = t.engine.engine.NewSession()
	if t.saved != nil {
		session, err := t.engine.engine.Restore(ctx, t.saved)
		if err != nil {
			t.failed = fault.Wrap(fault.Conflict, err, "restore the session").
				WithHint("session_reset makes it usable again; its variables are lost")
			return js.Outcome{}, t.failed
		}
		t.session = session
	}
	t.before = t.session.Turns()
	return t.session.Eval(ctx, p, h)
}

func (t *jsTurn) restoreError() error { return t.failed }

func (t *jsTurn) stateAfter(ctx context.Context, _ error) ([]byte, bool, []string) {
	if t.session == nil {
		return nil, false, nil
	}
	if t.session.Turns() == t.before {
		return nil, false, []string{turnStopped}
	}
	state, err := t.session.Snapshot(ctx)
	if err != nil {
		return nil, false, []string{turnUnsaved + err.Error()}
	}
	return state, true, nil
}

var _ engine = (*JavaScriptEngine)(nil)
