package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// luaEngine binds the modules to Lua once; every run opens the bound libraries in a
// fresh state.
type luaEngine struct {
	modules   []host.Module
	libraries []*lua.Library
	programs  programs
}

func newLuaEngine() *luaEngine {
	all := modules()
	return &luaEngine{modules: all, libraries: libraries(all)}
}

// libraries returns the libraries of the sandbox and of the modules.
func libraries(modules []host.Module) []*lua.Library {
	all := append(sandbox(), requireLibrary(modules))
	for i := range modules {
		all = append(all, bindLua(&modules[i]))
	}
	return all
}

// ourPreludes are the preludes of our modules, which all engines share. They are
// prepared for the first script, because many servers run none.
var ourPreludes = sync.OnceValues(func() (*preludes, error) {
	all := modules()
	return newPreludes(all, libraries(all))
})

// open makes a state with the sandbox's libraries and all preludes.
func (e *luaEngine) open(ctx context.Context, limits Limits, env *host.Env, seed uint64) (*lua.State, error) {
	state, err := e.bare(ctx, limits, env, seed)
	if err != nil {
		return nil, err
	}
	preludes, err := ourPreludes()
	if err != nil {
		return nil, err
	}
	return state, preludes.open(ctx, state, preludes.all)
}

// bare makes a state in which no prelude has run yet.
func (e *luaEngine) bare(_ context.Context, limits Limits, env *host.Env, seed uint64) (*lua.State, error) {
	state := lua.New(lua.Options{Seed: seed})
	state.Store(envKey{}, env)
	if err := state.Open(e.libraries...); err != nil {
		return nil, err
	}
	state.SetBudget(limits.budget())
	return state, nil
}

func (e *luaEngine) warm(context.Context) error { return nil }

// run runs a request in a fresh state, or in that of its session.
func (e *luaEngine) run(ctx context.Context, q Request, limits Limits, env *host.Env) (json.RawMessage, error) {
	seed, err := env.Seed(ctx)
	if err != nil {
		return nil, err
	}
	open := e.bare
	t, inSession := q.turn.(*luaTurn)
	if inSession {
		open = t.open
	}
	state, err := open(ctx, limits, env, seed)
	if err != nil {
		return nil, err
	}
	if q.residentState != nil {
		q.residentState.state = state
	}
	flights := newFlights()
	state.Store(flightsKey{}, flights)
	defer flights.close()
	results, err := e.execute(ctx, state, q)
	problem := finish(ctx, state)
	if inSession {
		t.unfinished = problem != nil
	}
	if err == nil {
		err = problem
	}
	if err != nil {
		return nil, err
	}
	for i, value := range results {
		if err := fillLazy(state, value); err != nil {
			return nil, err
		}
		if results[i], err = namespaceResult(ctx, state, value); err != nil {
			return nil, err
		}
	}
	return resultOf(state, results)
}

// namespaceResult replaces a namespace of tools by the list of their names, and mcp by the
// list of the namespaces.
func namespaceResult(ctx context.Context, state *lua.State, v lua.Value) (lua.Value, error) {
	t, ok := v.AsTable()
	if !ok || t.Metatable() == nil {
		return v, nil
	}
	if name, _ := t.Metatable().GetString("__name").AsString(); name != "mcp.namespace" && name != "mcp" {
		return v, nil
	}
	values, err := state.Call(ctx, t.Metatable().GetString("__pairs"), v)
	if err != nil || len(values) < 2 {
		return v, err
	}
	tools, _ := values[1].AsTable()
	var names []string
	for key := range tools.All() {
		name, _ := key.AsString()
		names = append(names, name)
	}
	slices.Sort(names)
	list := lua.NewArray(len(names))
	for _, name := range names {
		list.Append(lua.String(name))
	}
	return list.Value(), nil
}

// execute runs the chunk, and then the entry point. A fresh state gets the preludes that
// the chunk needs; that of a session has all.
func (e *luaEngine) execute(ctx context.Context, state *lua.State, q Request) ([]lua.Value, error) {
	preludes, err := ourPreludes()
	if err != nil {
		return nil, err
	}
	program, err := e.program(ctx, state, preludes, q)
	if err != nil {
		return nil, err
	}
	state.Store(sourceKey{}, runningSource{q.name(), q.Source, preludes})
	if q.turn != nil {
		storeSource(state, q)
	} else if err := preludes.open(ctx, state, program.needs); err != nil {
		return nil, err
	}
	if q.turn == nil && q.Handler != nil && mayBeLazy(program.chunk) {
		state.Store(lazyKey{}, &lazyTables{next: state.Globals().GetString("next")})
	}
	if name := q.required(); name != "" && !mentionsGlobal(program.chunk, name) {
		return nil, missingMain(q.advice(MissingMain))
	}
	results, err := state.Call(ctx, state.Instantiate(program.chunk, state.Globals().Value()).Value())
	if entry := q.entryPoint(); err == nil && entry != nil {
		return callEntry(ctx, state, q, entry)
	}
	return results, err
}

// program compiles a request's source, or takes it from the cache.
func (e *luaEngine) program(ctx context.Context, state *lua.State, preludes *preludes, q Request) (program, error) {
	key := programKey{name: q.name(), source: q.Source, statements: q.entryPoint() != nil}
	return e.programs.get(key, func() (program, error) {
		chunk, err := compileChunk(ctx, state, q)
		if err != nil {
			return program{}, err
		}
		return program{chunk: chunk, needs: preludes.neededBy(chunk)}, nil
	})
}

// atEndName is the registry key of the function that a state's preludes registered with
// atEnd. Copies and restored states find it there too.
const atEndName = "luanette.at_end"

// atEnd(fn) registers fn to be called when a run ends.
func atEnd(c *lua.Call) error {
	fn, err := c.CheckFunction(1)
	if err != nil {
		return err
	}
	c.State().Registry().SetString(atEndName, fn.Value())
	return nil
}

// finish calls the function registered with atEnd, which closes files that the script
// left open.
func finish(ctx context.Context, state *lua.State) error {
	fn, ok := state.Registry().GetString(atEndName).AsFunction()
	if !ok {
		return nil
	}
	_, err := state.Call(ctx, fn.Value())
	return err
}

// compile checks whether the source is valid Lua.
func (e *luaEngine) compile(ctx context.Context, q Request) error {
	_, err := compileChunk(ctx, lua.New(lua.Options{}), q)
	return err
}

// mayDefine looks for the name among the globals that the source uses.
func (e *luaEngine) mayDefine(q Request, name string) bool {
	chunk, err := compileChunk(context.Background(), lua.New(lua.Options{}), q) // it waits for nothing
	return err != nil || mentionsGlobal(chunk, name)
}

// mentionsGlobal reports whether code may use a global of that name.
func mentionsGlobal(chunk *lua.Proto, name string) bool {
	found := false
	named := chunk.Globals(func(global string) { found = found || global == name || global == "_G" || global == "load" })
	return found || !named
}

// likeJavaScript matches what most JavaScript sources and no Lua sources contain.
var likeJavaScript = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)=>|===|^\s*(const|let|var|async|await|import|export)\b|\bawait \w|^\s*//`)
})

// compileChunk compiles the source. A chunk without an entry point may also be an
// expression, as typed in a REPL.
func compileChunk(ctx context.Context, state *lua.State, q Request) (*lua.Proto, error) {
	name := "=" + q.name()
	var budget *lua.BudgetError
	if q.entryPoint() == nil && !beginsStatement(q.Source) {
		if chunk, err := state.CompileContext(ctx, "return "+q.Source, name); err == nil || errors.As(err, &budget) {
			return chunk, err
		}
	}
	chunk, err := state.CompileContext(ctx, q.Source, name)
	if errors.As(err, &budget) {
		return nil, err
	}
	if err != nil {
		failure := &Error{Kind: SyntaxError, Message: err.Error(), Line: lineOf(err, q.name()), Troubleshooting: advice[Lua][SyntaxError], cause: err}
		if likeJavaScript().MatchString(q.Source) {
			failure.Suggestions = []string{`This looks like JavaScript but was read as Lua: set language to "javascript"`}
		}
		return nil, failure
	}
	return chunk, nil
}

// beginsStatement reports whether the first word rules out that the source is an
// expression.
func beginsStatement(source string) bool {
	source = strings.TrimLeft(source, " \t\r\n")
	rest := strings.TrimLeftFunc(source, func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) })
	switch source[:len(source)-len(rest)] {
	case "return", "local", "for", "if", "while", "repeat", "do", "goto", "break":
		return true
	}
	return false
}

// callEntry calls a function that the chunk defined.
func callEntry(ctx context.Context, state *lua.State, q Request, e *entry) ([]lua.Value, error) {
	function, ok := state.Globals().GetString(e.name).AsFunction()
	if !ok && e.optional {
		e.absent = true
		return nil, nil
	}
	if !ok {
		return nil, missingMain(advice[Lua][MissingMain])
	}
	params := q.Params
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	argument, err := lua.FromJSON(state, params)
	if err != nil {
		return nil, paramsError([]string{err.Error()})
	}
	return state.Call(ctx, function.Value(), argument)
}

// resultOf converts what the script returned: nothing is null, several values are a
// list.
func resultOf(state *lua.State, values []lua.Value) (json.RawMessage, error) {
	value := lua.Nil
	switch len(values) {
	case 0:
	case 1:
		value = values[0]
	default:
		list := lua.NewArray(len(values))
		for _, v := range values {
			if v.IsNil() {
				v = lua.Null
			}
			list.Append(v)
		}
		value = list.Value()
	}
	result, err := state.ToJSON(value)
	if stopped := (*lua.BudgetError)(nil); errors.As(err, &stopped) {
		return nil, err
	}
	if err != nil {
		return nil, &Error{Kind: ResultError, Message: "the result " + conversionProblem(err), Troubleshooting: advice[Lua][ResultError], cause: err}
	}
	return result, nil
}

func conversionProblem(err error) string {
	var convert *lua.ConvertError
	if errors.As(err, &convert) {
		return convert.Error()
	}
	return "cannot be returned: " + err.Error()
}

// program is a compiled source and the preludes it needs. It does not belong to a state
// and may run in many at once.
type program struct {
	chunk *lua.Proto
	needs preludeSet
}

// programs caches compiled sources, because most scripts run more than once: published
// ones, jobs, event handlers.
type programs struct{ recent[programKey, program] }

// programKey is everything that a compiled source depends on.
type programKey struct {
	name, source string
	statements   bool // not tried as an expression
}

// weight returns the approximate size of a program in memory, in bytes.
func (k programKey) weight() int { return 1<<10 + 10*(len(k.name)+len(k.source)) }

// get returns a program from the cache, or compiles it.
func (p *programs) get(key programKey, compile func() (program, error)) (program, error) {
	if found, ok := p.find(key, key.weight()); ok {
		return found, nil
	}
	made, err := compile()
	if err == nil {
		p.keep(key, made, key.weight())
	}
	return made, err
}

// luaTurn is a run in the state of a session.
type luaTurn struct {
	engine     *luaEngine
	live       *lua.State // the cached state; nil restores saved
	saved      []byte     // nil means a fresh state
	state      *lua.State
	unfinished bool  // the function registered with atEnd failed
	failed     error // why the saved state cannot be used
}

func (e *luaEngine) turn(saved []byte) turn { return &luaTurn{engine: e, saved: saved} }

func (t *luaTurn) restoreError() error { return t.failed }

// stateAfter returns the state after the run, without what cannot be saved.
func (t *luaTurn) stateAfter(_ context.Context, failed error) ([]byte, bool, []string) {
	if t.state == nil {
		return nil, false, nil
	}
	var stopped *lua.BudgetError
	if t.unfinished || errors.As(failed, &stopped) {
		return nil, false, []string{turnStopped}
	}
	var saved bytes.Buffer
	left, err := t.state.SnapshotPartial(&saved)
	if err != nil {
		return nil, false, []string{turnUnsaved + err.Error()}
	}
	var warnings []string
	for _, one := range left {
		warnings = append(warnings, "not saved after this turn: "+one.Error())
	}
	return saved.Bytes(), true, warnings
}

// open prepares the state for this run.
func (t *luaTurn) open(ctx context.Context, limits Limits, env *host.Env, seed uint64) (*lua.State, error) {
	state, err := t.obtain(ctx, limits, env, seed)
	if err != nil {
		return nil, err
	}
	state.Store(envKey{}, env)
	t.state = state
	return state, nil
}

// obtain takes the cached state, restores the saved one, or makes a fresh one.
func (t *luaTurn) obtain(ctx context.Context, limits Limits, env *host.Env, seed uint64) (*lua.State, error) {
	switch {
	case t.live != nil:
		t.live.SetBudget(limits.budget())
		return t.live, nil
	case t.saved != nil:
		state, err := lua.Restore(t.saved, lua.RestoreOptions{Libraries: t.engine.libraries, Functions: errorFunctions, Budget: limits.budget()})
		if err != nil {
			t.failed = fault.Wrap(fault.Conflict, err, "restore the session").
				WithHint("session_reset makes it usable again; its variables are lost")
		}
		return state, t.failed
	}
	return t.engine.open(ctx, limits, env, seed)
}

// luaState is a state that stays in memory between turns.
type luaState struct{ *lua.State }

func (s luaState) fork() (forkable, error) {
	copied, err := s.Fork()
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "copy the session")
	}
	return luaState{copied}, nil
}

func (t *luaTurn) reuse(state forkable) { t.live = state.(luaState).State }

func (t *luaTurn) ready() forkable { return luaState{t.state} }
