package lua

import "strings"

// DebugLib is the debug library. It lets scripts look into everything and is
// not for sandboxes; DebugSafe holds the harmless part.
var DebugLib = NewLibrary("debug", []Reg{
	{"getinfo", debugGetinfo},
	{"gethook", debugGethook},
	{"getlocal", debugGetlocal},
	{"getmetatable", debugGetmetatable},
	{"getregistry", debugGetregistry},
	{"getupvalue", debugGetupvalue},
	{"getuservalue", debugGetuservalue},
	{"sethook", debugSethook},
	{"setlocal", debugSetlocal},
	{"setmetatable", debugSetmetatable},
	{"setupvalue", debugSetupvalue},
	{"setuservalue", debugSetuservalue},
	{"traceback", debugTraceback},
	{"upvalueid", debugUpvalueid},
	{"upvaluejoin", debugUpvaluejoin},
	{"setcstacklimit", debugSetcstacklimit},
}, nil, nil)

// DebugSafe is the part of the debug library that only reads: traceback and
// getinfo.
var DebugSafe = NewLibrary("debug", []Reg{
	{"getinfo", debugGetinfo},
	{"traceback", debugTraceback},
}, nil, nil)

// threadArg takes an optional thread as first argument and returns it and how
// far the others are shifted.
func threadArg(c *Call) (*Thread, int) {
	if t, ok := c.Arg(1).AsThread(); ok {
		return t, 1
	}
	return c.thread, 0
}

func debugTraceback(c *Call) error {
	t, shift := threadArg(c)
	msg, isString := c.Arg(1 + shift).AsString()
	if v := c.Arg(1 + shift); !isString && !v.IsNil() {
		if !v.isNumber() {
			return c.Return(v)
		}
		msg, isString = v.String(), true
	}
	def := int64(1)
	if t != c.thread {
		def = 0
	}
	level, err := c.OptInt(2+shift, def)
	if err != nil {
		return err
	}
	text := c.state.Traceback(t, "", int(max(0, min(level, 1<<30))))
	if isString {
		text = msg + "\n" + text
	}
	return c.Return(String(text))
}

func debugGetmetatable(c *Call) error {
	if err := c.CheckAny(1); err != nil {
		return err
	}
	if m := c.state.metatable(c.Arg(1)); m != nil {
		return c.Return(m.Value())
	}
	return c.Return(Nil)
}

func debugSetmetatable(c *Call) error {
	meta, ok := c.Arg(2).AsTable()
	if !ok && !c.Arg(2).IsNil() {
		return c.TypeError(2, "nil or table")
	}
	switch v := c.Arg(1); v.Kind() {
	case KindTable:
		v.table().meta = meta
		c.state.noteMetatable(v, meta)
	case KindUserdata:
		(*Userdata)(v.p).meta = meta
		c.state.noteMetatable(v, meta)
	case KindInt, KindFloat:
		c.state.metas[KindInt], c.state.metas[KindFloat] = meta, meta
	default:
		c.state.metas[v.Kind()] = meta
	}
	return c.Return(c.Arg(1))
}

func debugGetregistry(c *Call) error { return c.Return(c.state.registryTable().Value()) }

// registryTable returns the table where libraries keep what scripts should not
// see, made at the first use.
func (s *State) registryTable() *Table {
	if s.registry != nil {
		return s.registry
	}
	s.registry = NewTable(2, smallTable)
	s.registry.SetInt(1, s.main.Value())
	s.registry.SetInt(2, s.globals.Value())
	s.registry.SetString("_LOADED", s.loaded.Value())
	// Hooks live with their threads; scripts find an empty table here.
	hooks, meta := NewTable(0, 0), NewTable(0, 1)
	meta.SetString("__mode", String("k"))
	hooks.meta = meta
	s.registry.SetString("_HOOKKEY", hooks.Value())
	return s.registry
}

func debugGetuservalue(c *Call) error {
	n, err := c.OptInt(2, 1)
	if err != nil {
		return err
	}
	u, ok := c.Arg(1).AsUserdata()
	if !ok || n < 1 || n > int64(len(u.values)) {
		return c.Return(Nil)
	}
	return c.Return(u.values[n-1], Bool(true))
}

func debugSetuservalue(c *Call) error {
	u, ok := c.Arg(1).AsUserdata()
	if !ok {
		return c.TypeError(1, "userdata")
	}
	n, err := c.OptInt(3, 1)
	if err != nil {
		return err
	}
	if n < 1 || n > int64(len(u.values)) {
		return c.Return(Nil)
	}
	u.values[n-1] = c.Arg(2)
	return c.Return(c.Arg(1))
}

// upvalueArg returns the function in argument 1 and upvalue number in 2.
func upvalueArg(c *Call, fn, index int) (*Function, int, error) {
	n, err := c.CheckInt(index)
	if err != nil {
		return nil, 0, err
	}
	f, err := c.CheckFunction(fn)
	return f, int(max(min(n, 1<<20), 0)), err
}

func debugGetupvalue(c *Call) error {
	f, n, err := upvalueArg(c, 1, 2)
	if err != nil {
		return err
	}
	if f.proto == nil {
		if n < 1 || n > len(f.bound) {
			return nil
		}
		return c.Return(String(""), f.bound[n-1])
	}
	if n < 1 || n > len(f.upvalues) {
		return nil
	}
	return c.Return(String(f.upvalueName(n-1)), *f.upvalues[n-1].v)
}

func (f *Function) upvalueName(i int) string {
	if name := f.proto.upvalues[i].name; name != "" {
		return name
	}
	return "(no name)"
}

func debugSetupvalue(c *Call) error {
	if err := c.CheckAny(3); err != nil {
		return err
	}
	f, n, err := upvalueArg(c, 1, 2)
	if err != nil {
		return err
	}
	if f.proto == nil {
		return nil // host functions rely on the values bound to them
	}
	if n < 1 || n > len(f.upvalues) {
		return nil
	}
	*f.upvalues[n-1].v = c.Arg(3)
	return c.Return(String(f.upvalueName(n - 1)))
}

func debugUpvalueid(c *Call) error {
	f, n, err := upvalueArg(c, 1, 2)
	if err != nil {
		return err
	}
	if n < 1 || n > len(f.upvalues) {
		if f.proto == nil && n >= 1 && n <= len(f.bound) {
			return c.Return(f.Value())
		}
		return c.Return(Nil)
	}
	return c.Return(f.upvalues[n-1].identity())
}

func debugUpvaluejoin(c *Call) error {
	f1, n1, err := upvalueArg(c, 1, 2)
	if err != nil {
		return err
	}
	if n1 < 1 || n1 > len(f1.upvalues) {
		return c.ArgError(2, "invalid upvalue index")
	}
	f2, n2, err := upvalueArg(c, 3, 4)
	if err != nil {
		return err
	}
	if n2 < 1 || n2 > len(f2.upvalues) {
		return c.ArgError(4, "invalid upvalue index")
	}
	f1.upvalues[n1-1] = f2.upvalues[n2-1]
	return nil
}

func debugSetcstacklimit(c *Call) error { return c.Return(Int(maxDepth)) }

func debugSethook(c *Call) error {
	t, shift := threadArg(c)
	if c.Arg(1+shift).IsNil() || c.NArgs() <= shift {
		t.setHook(nil)
		return nil
	}
	mask, err := c.CheckString(2 + shift)
	if err != nil {
		return err
	}
	f, err := c.CheckFunction(1 + shift)
	if err != nil {
		return err
	}
	count, err := c.OptInt(3+shift, 0)
	if err != nil {
		return err
	}
	h := newHook(f.Value(), mask, count)
	if old := t.hook; old != nil && h != nil {
		h.active = old.active
	}
	t.setHook(h)
	return nil
}

// newHook returns a hook for the events of a mask and, if count is positive, for
// every count instructions; nil when that is no event at all.
func newHook(fn Value, mask string, count int64) *hook {
	h := &hook{
		fn: fn, count: int(max(0, min(count, 1<<30))),
		call: strings.Contains(mask, "c"), ret: strings.Contains(mask, "r"), line: strings.Contains(mask, "l"),
	}
	h.left = h.count
	if !h.call && !h.ret && !h.line && h.count == 0 {
		return nil
	}
	return h
}

func debugGethook(c *Call) error {
	t, _ := threadArg(c)
	h := t.hook
	if h == nil {
		return c.Return(Nil)
	}
	mask := ""
	if h.call {
		mask += "c"
	}
	if h.ret {
		mask += "r"
	}
	if h.line {
		mask += "l"
	}
	return c.Return(h.fn, String(mask), Int(int64(h.count)))
}
