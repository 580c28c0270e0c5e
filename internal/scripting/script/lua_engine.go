package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
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
func (e *luaEngine) open(ctx context.Context, limits runLimits, env *host.Env, seed uint64) (*lua.State, error) {
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
func (e *luaEngine) bare(_ context.Context, limits runLimits, env *host.Env, seed uint64) (*lua.State, error) {
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
func (e *luaEngine) run(ctx context.Context, q Request, limits runLimits, env *host.Env) (done ended, err error) {
	seed, err := env.Seed(ctx)
	if err != nil {
		return done, err
	}
	state, err := e.stateFor(ctx, q, limits, env, seed)
	if err != nil {
		return done, err
	}
	flights := newFlights()
	state.Store(flightsKey{}, flights)
	defer flights.close()
	results, err := e.execute(ctx, state, q)
	if done.absent = errors.Is(err, errAbsent); done.absent {
		err = nil
	}
	problem := finish(ctx, state)
	if err == nil {
		err = problem
	}
	if err == nil {
		done.silent = len(results) == 0
		done.result, err = e.result(ctx, state, q, results)
	}
	if q.State != nil || q.listener != nil {
		var stopped *lua.BudgetError
		done.state = &luaState{state, problem != nil || errors.As(err, &stopped)}
	}
	return done, err
}

// stateFor prepares a state for a run: a fresh one, or that of its session.
func (e *luaEngine) stateFor(ctx context.Context, q Request, limits runLimits, env *host.Env, seed uint64) (*lua.State, error) {
	switch {
	case q.State == nil:
		return e.bare(ctx, limits, env, seed)
	case q.State.Live != nil:
		state := q.State.Live.(*luaState).state
		state.SetBudget(limits.budget())
		state.Store(envKey{}, env)
		return state, nil
	case q.State.Bytes != nil:
		state, err := lua.Restore(q.State.Bytes, lua.RestoreOptions{Libraries: e.libraries, Functions: errorFunctions, Budget: limits.budget()})
		if err != nil {
			return nil, cannotRestore(err)
		}
		state.Store(envKey{}, env)
		return state, nil
	}
	return e.open(ctx, limits, env, seed)
}

// result converts what the script returned to JSON. In a session a value is looked at:
// what JSON lacks is text.
func (e *luaEngine) result(ctx context.Context, state *lua.State, q Request, values []lua.Value) (json.RawMessage, error) {
	for i, value := range values {
		if err := fillLazy(state, value); err != nil {
			return nil, err
		}
		var err error
		if values[i], err = namespaceResult(ctx, state, value); err != nil {
			return nil, err
		}
	}
	result, err := resultOf(state, values)
	var failed *Error
	if q.State != nil && !q.Main && errors.As(err, &failed) {
		if shown, ok := legible(values); ok {
			return shown, nil
		}
	}
	return result, err
}

// luaState is the state of a session or of a script that stays loaded.
type luaState struct {
	state   *lua.State
	stopped bool // by a limit, or before it closed its files
}

func (s *luaState) Stopped() bool { return s.stopped }

func (s *luaState) Snapshot(context.Context) (saved []byte, omitted []string, err error) {
	var buffer bytes.Buffer
	left, err := s.state.SnapshotPartial(&buffer)
	for _, one := range left {
		omitted = append(omitted, one.Error())
	}
	return buffer.Bytes(), omitted, err
}

func (s *luaState) Live() LiveState { return s }

func (s *luaState) Fork() (LiveState, error) {
	copied, err := s.state.Fork()
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "copy the session")
	}
	return &luaState{state: copied}, nil
}

// namespaceResult replaces a namespace of tools by the list of their names, and mcp by the
// list of the namespaces.
func namespaceResult(ctx context.Context, state *lua.State, v lua.Value) (lua.Value, error) {
	if !isNamespace(v) {
		return v, nil
	}
	t, _ := v.AsTable()
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

// isNamespace reports whether a value is mcp, or a namespace of tools in it.
func isNamespace(v lua.Value) bool {
	t, ok := v.AsTable()
	if !ok || t.Metatable() == nil {
		return false
	}
	name, _ := t.Metatable().GetString("__name").AsString()
	return name == "mcp.namespace" || name == "mcp"
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
	if q.State != nil {
		storeSource(state, q)
	} else if err := preludes.open(ctx, state, program.needs); err != nil {
		return nil, err
	}
	if q.State == nil && q.Handler != nil && mayBeLazy(program.chunk) {
		state.Store(lazyKey{}, &lazyTables{next: state.Globals().GetString("next")})
	}
	if name := q.required(); name != "" && !mentionsGlobal(program.chunk, name) {
		return nil, missingMain(q.advice(MissingMain))
	}
	results, err := state.Call(ctx, state.Instantiate(program.chunk, state.Globals().Value()).Value())
	if entry := q.entryPoint(); err == nil && entry.name != "" {
		return callEntry(ctx, state, q, entry)
	}
	return results, err
}

// program compiles a request's source, or takes it from the cache.
func (e *luaEngine) program(ctx context.Context, state *lua.State, preludes *preludes, q Request) (program, error) {
	key := programKey{name: q.name(), source: q.Source, statements: q.entryPoint().name != ""}
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
var likeJavaScript = lazyregexp.New(`(?m)=>|===|^\s*(const|let|var|async|await|import|export)\b|\bawait \w|^\s*//`)

// compileChunk compiles the source. A chunk without an entry point may also be an
// expression, as typed in a REPL.
func compileChunk(ctx context.Context, state *lua.State, q Request) (*lua.Proto, error) {
	name := "=" + q.name()
	var budget *lua.BudgetError
	if q.entryPoint().name == "" && !beginsStatement(q.Source) {
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
		if hint := reservedField(q.Source, err.Error()); hint != "" {
			failure.Suggestions = []string{hint}
		} else if likeJavaScript().MatchString(q.Source) {
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

// errAbsent is returned by callEntry if the script does not define an optional function.
var errAbsent = errors.New("the script does not define the function")

// callEntry calls a function that the chunk defined.
func callEntry(ctx context.Context, state *lua.State, q Request, e entry) ([]lua.Value, error) {
	function, ok := state.Globals().GetString(e.name).AsFunction()
	if !ok && e.optional {
		return nil, errAbsent
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
