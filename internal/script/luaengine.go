package script

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/luanette/luanette/internal/host"
	"github.com/luanette/luanette/lua"
)

// preludeName begins the chunk names of our preludes, so that their frames can
// be left out of stacks. The bracket tells the engine that they are the host's:
// they leave the script's own line on the stack.
const preludeName = "[luanette:"

// luaEngine binds the modules to Lua once; every run opens the bound libraries
// in a fresh state.
type luaEngine struct {
	modules   []host.Module
	libraries []*lua.Library
	preludes  []*lua.Proto
}

func newLuaEngine(modules []host.Module) (*luaEngine, error) {
	e := &luaEngine{modules: modules, libraries: sandbox()}
	compiler := lua.New(lua.Options{})
	for i := range modules {
		m := &modules[i]
		e.libraries = append(e.libraries, bindLua(m))
		if m.Lua == "" {
			continue
		}
		proto, err := compiler.Compile(m.Lua, "="+preludeName+moduleTitle(m)+"]")
		if err != nil {
			return nil, err
		}
		e.preludes = append(e.preludes, proto)
	}
	return e, nil
}

// moduleTitle is the module's name, or its first function's for globals.
func moduleTitle(m *host.Module) string {
	if m.Name != "" {
		return m.Name
	}
	return strings.TrimLeft(m.Funcs[0].Name, "_")
}

// open makes a state with the sandbox's libraries and our modules in it.
func (e *luaEngine) open(ctx context.Context, limits Limits, env *host.Env, seed uint64) (*lua.State, error) {
	state := lua.New(lua.Options{Seed: seed})
	state.Store(envKey{}, env)
	if err := state.Open(e.libraries...); err != nil {
		return nil, err
	}
	for _, prelude := range e.preludes {
		if _, err := state.Call(ctx, state.Instantiate(prelude, state.Globals().Value()).Value()); err != nil {
			return nil, err
		}
	}
	state.SetBudget(lua.Budget{Memory: limits.Memory})
	return state, nil
}

// run runs a request in a fresh state, or in that of its session.
func (e *luaEngine) run(ctx context.Context, q Request, limits Limits, env *host.Env) (json.RawMessage, error) {
	seed, err := env.Seed(ctx)
	if err != nil {
		return nil, err
	}
	open := e.open
	if q.turn != nil {
		open = q.turn.open
	}
	state, err := open(ctx, limits, env, seed)
	if err != nil {
		return nil, err
	}
	flights := newFlights()
	state.Store(flightsKey{}, flights)
	defer flights.close()
	results, err := execute(ctx, state, q)
	problem := finish(ctx, state)
	if q.turn != nil {
		q.turn.unfinished = problem != nil
	}
	if err == nil {
		err = problem
	}
	if err != nil {
		return nil, err
	}
	return resultOf(results)
}

// execute runs the chunk, and then the function that is asked for.
func execute(ctx context.Context, state *lua.State, q Request) ([]lua.Value, error) {
	chunk, err := loadChunk(state, q)
	if err != nil {
		return nil, err
	}
	results, err := state.Call(ctx, chunk.Value())
	if entry := q.entryPoint(); err == nil && entry != nil {
		return callEntry(ctx, state, q, entry)
	}
	return results, err
}

// endKey is where a state keeps what its preludes want called when a run ends.
type endKey struct{}

// atEnd(fn) has fn called when a run ends, however it ends.
func atEnd(c *lua.Call) error {
	fn, err := c.CheckFunction(1)
	if err != nil {
		return err
	}
	c.State().Store(endKey{}, fn)
	return nil
}

// finish lets the preludes end what the script left open, such as files.
func finish(ctx context.Context, state *lua.State) error {
	fn, _ := state.Stored(endKey{}).(*lua.Function)
	if fn == nil {
		return nil
	}
	_, err := state.Call(ctx, fn.Value())
	return err
}

// compile tells whether the source is Lua, without running any of it.
func (e *luaEngine) compile(q Request) error {
	_, err := loadChunk(lua.New(lua.Options{}), q)
	return err
}

// loadChunk compiles the source. A plain chunk may be an expression: what one
// types to see a value.
func loadChunk(state *lua.State, q Request) (*lua.Function, error) {
	name := "=" + q.name()
	if q.entryPoint() == nil {
		if chunk, err := state.Load("return "+q.Source, name); err == nil {
			return chunk, nil
		}
	}
	chunk, err := state.Load(q.Source, name)
	if err != nil {
		return nil, &Error{Kind: SyntaxError, Message: err.Error(), Line: lineOf(err, q.name()), Troubleshooting: adviceFor(SyntaxError), cause: err}
	}
	return chunk, nil
}

// callEntry calls a function that the chunk has defined.
func callEntry(ctx context.Context, state *lua.State, q Request, e *entry) ([]lua.Value, error) {
	function, ok := state.Globals().GetString(e.name).AsFunction()
	if !ok && e.optional {
		e.absent = true
		return nil, nil
	}
	if !ok {
		return nil, &Error{Kind: MissingMain, Message: "the script has no global function main(params)", Troubleshooting: adviceFor(MissingMain)}
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

// resultOf is what the script returned: nothing is null, several values a list.
func resultOf(values []lua.Value) (json.RawMessage, error) {
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
	result, err := lua.ToJSON(value)
	if err != nil {
		return nil, &Error{Kind: ResultError, Message: "the result " + conversionProblem(err), Troubleshooting: adviceFor(ResultError), cause: err}
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
