package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// envKey is the key of a state's environment. Functions look it up when they are called,
// so that all states can share the libraries and a restored session can use the
// environment of the next run.
type envKey struct{}

// bindLua makes a library of a module's functions.
func bindLua(m *host.Module) *lua.Library {
	regs := make([]lua.Reg, len(m.Funcs))
	for i := range m.Funcs {
		regs[i] = lua.Reg{Name: m.Funcs[i].Name, Fn: luaFunc(m.Name, &m.Funcs[i])}
	}
	var consts []lua.Const
	switch m.Name {
	case "json":
		regs = append(regs, lua.Reg{Name: "array", Fn: jsonArray})
		consts = append(consts, lua.Const{Name: "null", Value: lua.Null})
	case "events":
		regs = append(regs, lua.Reg{Name: "__keep", Fn: storeDeliver})
	case "fs":
		regs = append(regs, lua.Reg{Name: "__at_end", Fn: atEnd})
	case "os":
		consts = append(consts, pureOS()...)
	case "mcp":
		invoke := lua.NewFunc("mcp.invoke", luaTool(m.Func("call")))
		regs = append(regs, lua.Reg{Name: "__bind", Fn: func(c *lua.Call) error { return c.Return(invoke.Bind(c.Args()...).Value()) }})
		consts = append(consts, lua.Const{Name: "__invoke", Value: invoke.Value()})
	case "parallel":
		regs = append(regs, parallelFuncs()...)
	case "":
		if m.Func("__background") != nil {
			regs = append(regs, lua.Reg{Name: "__function_source", Fn: functionSource})
		}
	}
	return lua.NewLibrary(m.Name, regs, consts, nil)
}

// luaFunc binds a host function to Lua: arguments and results are copied, and errors are
// raised with their cause. A function that waits, called in a task, lets the other tasks
// continue: its first half starts a parallel call and suspends the task, its second half
// is called with the call's number.
func luaFunc(module string, f *host.Func) lua.Func {
	return func(c *lua.Call) error { return callHost(c, module, f, nil) }
}

// luaTool binds a tool to Lua: mcp.call with the names bound. It is not a Lua function
// around mcp.call, so that the script's line stays on the stack when it returns a tool's
// result in a tail call.
func luaTool(call *host.Func) lua.Func {
	return func(c *lua.Call) error {
		return callHost(c, "mcp", call, []lua.Value{c.Upvalue(1), c.Upvalue(2)})
	}
}

// callHost calls a host function with the values of lead before the arguments.
func callHost(c *lua.Call, module string, f *host.Func, lead []lua.Value) error {
	if c.Resumed() {
		return landed(c)
	}
	env, _ := c.State().Stored(envKey{}).(*host.Env)
	if env == nil {
		return c.Errorf("%s: the state has no environment", f.Name)
	}
	values, err := hostArgs(c, lead)
	if err != nil {
		return err
	}
	if env.WantsLines() {
		env.SetLine(c.Line(ofScript))
	}
	if f.Waits && c.Yieldable() {
		if flights := flightsOf(c.State()); flights != nil && flights.tasks[c.Thread()] {
			flights.start(c.Context(), c.Thread(), env.Start(module, f, values))
			return c.Yield()
		}
	}
	results, err := env.Call(c.Context(), module, f, values)
	return answer(c, results, err)
}

// hostArgs converts the values of lead and the arguments of a call.
func hostArgs(c *lua.Call, lead []lua.Value) ([]host.Value, error) {
	values := make([]host.Value, len(lead)+c.NArgs())
	for i := range values {
		var err error
		if i < len(lead) {
			values[i], err = fromLua(c.State(), lead[i])
		} else {
			values[i], err = fromLua(c.State(), c.Arg(i-len(lead)+1))
		}
		if stopped := (*lua.BudgetError)(nil); errors.As(err, &stopped) {
			return nil, err
		}
		if err != nil {
			return nil, c.ArgError(i-len(lead)+1, err.Error())
		}
	}
	return values, nil
}

// ofScript reports whether a chunk is part of a script, not of our preludes.
func ofScript(chunk string) bool { return !strings.HasPrefix(chunk, preludeName) }

// toolFault is the cause of an error raised by a tool or its upstream, as opposed to our
// own functions.
type toolFault struct{ error }

func (t toolFault) Unwrap() error { return t.error }

// landed is the second half of a function whose task was suspended.
func landed(c *lua.Call) error {
	number, _ := c.Arg(1).AsInt()
	flights := flightsOf(c.State())
	if flights == nil {
		return c.Errorf("the call was interrupted when its run ended")
	}
	one, err := flights.claim(c.Context(), number)
	if err != nil {
		return raise(c, err)
	}
	if one == nil {
		return c.Errorf("the call was interrupted when its run ended")
	}
	return answer(c, one.values, one.err)
}

// answer passes the result of a host function to Lua.
func answer(c *lua.Call, results []host.Value, err error) error {
	if err != nil {
		return raise(c, err)
	}
	for _, result := range results {
		value, err := toLua(c.State(), result)
		if err != nil {
			return raise(c, err)
		}
		c.Push(value)
	}
	return nil
}

// raise raises the error of a host function in Lua. The message has no position, because
// it would be that of our prelude; the stack has the script's. The cause is attached, so
// that explain knows its code and hint. A script cannot catch the error that ended the
// run's own context.
func raise(c *lua.Call, err error) error {
	if c.Context().Err() != nil {
		if stop := c.Step(0); stop != nil {
			return stop
		}
	}
	var cause error = fault.From(err)
	if strings.HasPrefix(c.Function().HostName(), "mcp.") {
		cause = toolFault{fault.From(err)}
	}
	return &lua.Error{Value: errorTable(c.State(), fault.From(err)).Value(), Cause: cause}
}

// fromLua converts a Lua value: scalars as they are, tables as JSON.
func fromLua(s *lua.State, v lua.Value) (host.Value, error) {
	switch v.Kind() {
	case lua.KindNil:
		return nil, nil
	case lua.KindBool:
		b, _ := v.AsBool()
		return b, nil
	case lua.KindInt:
		i, _ := v.AsInt()
		return i, nil
	case lua.KindFloat:
		f, _ := v.AsFloat()
		return f, nil
	case lua.KindString:
		s, _ := v.AsString()
		return s, nil
	}
	if err := fillLazy(s, v); err != nil {
		return nil, err
	}
	raw, err := s.ToJSON(v)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(raw), nil
}

// toLua converts a value to Lua.
func toLua(s *lua.State, v host.Value) (lua.Value, error) {
	switch v := v.(type) {
	case nil:
		return lua.Nil, nil
	case bool:
		return lua.Bool(v), nil
	case int64:
		return lua.Int(v), nil
	case float64:
		return lua.Float(v), nil
	case string:
		return lua.String(v), nil
	case json.RawMessage:
		return lua.FromJSON(s, v)
	case *host.Lazy:
		return lazyTable(s, v)
	default:
		return lua.Nil, fmt.Errorf("a %T cannot be passed to a script", v)
	}
}

// jsonArray marks its argument, or a new table, as an array.
func jsonArray(c *lua.Call) error {
	if c.NArgs() == 0 {
		return c.Return(lua.NewArray(0).Value())
	}
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	t.MarkArray(true)
	return c.Return(t.Value())
}

// pureOS are the functions of Lua's os library that only compute.
func pureOS() []lua.Const { return borrowed(lua.OSLib, []string{"date", "difftime", "time"}) }
