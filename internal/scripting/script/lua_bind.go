package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
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
		space, tool := c.Upvalue(1), c.Upvalue(2)
		if isNamespace(c.Arg(1)) && !c.Resumed() {
			return raise(c, calledWithColon(space, tool))
		}
		return callHost(c, "mcp", call, []lua.Value{space, tool})
	}
}

// calledWithColon is the error for mcp.space:tool{…}, which passes mcp.space as the arguments.
func calledWithColon(space, name lua.Value) error {
	var ref tool.Ref
	ref.Space, _ = space.AsString()
	ref.Name, _ = name.AsString()
	return fault.New(fault.InvalidParams, "%s was called with a colon", ref).
		WithHint("write a dot: %s { name = value }", ref.ScriptPath())
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
	values, err := hostArgs(c, module, f, lead)
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

// hostArgs converts the values of lead and the arguments of a call. Errors name the function
// as scripts know it, not as the prelude that calls it does.
func hostArgs(c *lua.Call, module string, f *host.Func, lead []lua.Value) ([]host.Value, error) {
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
			name := target(module, f.Name)
			if len(lead) == 2 {
				space, _ := lead[0].AsString()
				tool, _ := lead[1].AsString()
				name = strings.Trim(space+"."+tool, ".")
			}
			return nil, c.Errorf("bad argument #%d to '%s' (%s)", i-len(lead)+1, name, err)
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

// sandbox returns the parts of Lua's own libraries that scripts may use: everything that
// computes. Loading files, running programs, the debug library and the standard streams
// are never added.
func sandbox() []*lua.Library {
	return []*lua.Library{lua.Base, lua.CoroutineLib, tableLibrary(), lua.StringLib, lua.MathLib, lua.UTF8Lib}
}

// tableLibrary is Lua's table library with is_array.
func tableLibrary() *lua.Library {
	names := []string{"concat", "insert", "move", "pack", "remove", "sort", "unpack"}
	return lua.NewLibrary("table", []lua.Reg{{Name: "is_array", Fn: isArray}}, borrowed(lua.TableLib, names), nil)
}

// borrowed returns functions of one of Lua's libraries for use in one of ours.
func borrowed(from *lua.Library, names []string) []lua.Const {
	var consts []lua.Const
	for _, name := range names {
		if f, ok := from.Function(name); ok {
			consts = append(consts, lua.Const{Name: name, Value: f.Value()})
		}
	}
	return consts
}

// isArray reports whether its argument is a list: a table with the keys 1 to n and no
// others.
func isArray(c *lua.Call) error {
	t, ok := c.Arg(1).AsTable()
	if !ok {
		return c.Return(lua.Bool(false))
	}
	if err := fillLazy(c.State(), c.Arg(1)); err != nil {
		return err
	}
	count := 0
	for range t.All() {
		count++
	}
	if err := c.Step(count); err != nil {
		return err
	}
	return c.Return(lua.Bool(count == t.Len()))
}

// luaLibraries are Lua's own libraries that scripts have, and io, which is ours.
var luaLibraries = []string{"coroutine", "io", "math", "string", "table", "utf8"}

// requireLibrary provides require for scripts that expect it: it returns globals that
// exist already, and never loads anything.
func requireLibrary(modules []host.Module) *lua.Library {
	names := slices.Clone(luaLibraries)
	for i := range modules {
		if modules[i].Name != "" {
			names = append(names, modules[i].Name)
		}
	}
	slices.Sort(names)
	return lua.NewLibrary("", []lua.Reg{{Name: "require", Fn: func(c *lua.Call) error {
		name, err := c.CheckString(1)
		if err != nil {
			return err
		}
		if module := c.State().Globals().GetString(name); slices.Contains(names, name) && !module.IsNil() {
			return c.Return(module)
		}
		return c.Errorf("%s", notRequired(name, names))
	}}}, nil, nil)
}

// notRequired is the error text for an unknown module.
func notRequired(name string, names []string) string {
	meant := ""
	if near := suggest.Names(name, names, 1); len(near) > 0 {
		meant = fmt.Sprintf(" Did you mean '%s'?", near[0])
	}
	return fmt.Sprintf("module '%s' not found: scripts cannot load files.%s Available as globals: %s", name, meant, strings.Join(names, ", "))
}

// lazyKey is the key of a state's lazyTables.
type lazyKey struct{}

// lazyTables are the made-up answers of a rehearsal that the script has not looked into.
// They are empty tables whose metatable fills them on first use.
type lazyTables struct {
	next    lua.Value // Lua's own
	meta    *lua.Table
	waiting map[*lua.Table]*host.Lazy
}

// init makes the metatable.
func (l *lazyTables) init() {
	l.meta, l.waiting = lua.NewTable(0, 4), map[*lua.Table]*host.Lazy{}
	l.on("__index", func(c *lua.Call) error {
		value, err := c.Index(c.Arg(1), c.Arg(2))
		if err != nil {
			return err
		}
		return c.Return(value)
	})
	l.on("__newindex", func(c *lua.Call) error { return c.SetIndex(c.Arg(1), c.Arg(2), c.Arg(3)) })
	l.on("__len", func(c *lua.Call) error {
		n, err := c.Len(c.Arg(1))
		if err != nil {
			return err
		}
		return c.Return(lua.Int(n))
	})
	l.on("__pairs", func(c *lua.Call) error { return c.Return(l.next, c.Arg(1), lua.Nil) })
}

// on sets a metamethod, which fills its table first.
func (l *lazyTables) on(event string, use lua.Func) {
	l.meta.SetString(event, lua.NewFunc("lazy"+event, func(c *lua.Call) error {
		if err := l.fill(c.State(), c.Arg(1)); err != nil {
			return err
		}
		return use(c)
	}).Value())
}

// rawAccess are the functions that bypass metatables. A script that uses one gets its
// answers as plain tables, which count as looked at.
var rawAccess = []string{"next", "rawget", "rawset", "rawlen", "getmetatable", "setmetatable", "debug", "_G", "_ENV", "load", "require"}

// mayBeLazy reports whether code uses tables only in ways that lazy tables notice.
func mayBeLazy(code *lua.Proto) bool {
	raw := false
	named := code.Globals(func(name string) { raw = raw || slices.Contains(rawAccess, name) })
	return named && !raw
}

// lazyTable returns a made-up answer as a table.
func lazyTable(s *lua.State, v *host.Lazy) (lua.Value, error) {
	l, _ := s.Stored(lazyKey{}).(*lazyTables)
	if l == nil {
		v.Look()
		return lua.FromJSON(s, v.JSON)
	}
	if l.meta == nil {
		l.init()
	}
	t := lua.NewTable(0, 0)
	t.SetMetatable(l.meta)
	l.waiting[t] = v
	return t.Value(), nil
}

// fill gives a lazy table its content; other values stay as they are.
func (l *lazyTables) fill(s *lua.State, v lua.Value) error {
	t, ok := v.AsTable()
	if !ok || l.waiting[t] == nil {
		return nil
	}
	answer := l.waiting[t]
	delete(l.waiting, t)
	value, err := lua.FromJSON(s, answer.JSON)
	if err != nil {
		return err
	}
	content, ok := value.AsTable()
	if !ok {
		return errors.New("a made-up answer is not a table")
	}
	t.SetMetatable(nil)
	t.MarkArray(content.IsArray())
	for key, value := range content.All() {
		if err := t.Set(key, value); err != nil {
			return err
		}
	}
	answer.Look()
	return nil
}

// fillLazy fills the lazy tables in a value that leaves the script.
func fillLazy(s *lua.State, v lua.Value) error {
	l, _ := s.Stored(lazyKey{}).(*lazyTables)
	if l == nil || len(l.waiting) == 0 {
		return nil
	}
	return l.fillAll(s, v, map[*lua.Table]bool{})
}

func (l *lazyTables) fillAll(s *lua.State, v lua.Value, seen map[*lua.Table]bool) error {
	t, ok := v.AsTable()
	if !ok || seen[t] {
		return nil
	}
	seen[t] = true
	if err := l.fill(s, v); err != nil {
		return err
	}
	for _, value := range t.All() {
		if err := l.fillAll(s, value, seen); err != nil {
			return err
		}
	}
	return nil
}
