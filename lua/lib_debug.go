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

// level returns the index of the frame at a level of a thread: 0 is the
// running function.
func (t *Thread) level(n int64) (int, bool) {
	i := int64(len(t.frames)) - 1 - n
	return int(i), n >= 0 && i >= 0
}

func debugGetinfo(c *Call) error {
	t, shift := threadArg(c)
	what, err := c.OptString(2+shift, "flnSrtu")
	if err != nil {
		return err
	}
	if strings.HasPrefix(what, ">") {
		return c.ArgError(2+shift, "invalid option '>'")
	}
	var fn *Function
	at := -1
	if f, ok := c.Arg(1 + shift).AsFunction(); ok {
		fn = f
	} else {
		n, err := c.CheckInt(1 + shift)
		if err != nil {
			return err
		}
		i, ok := t.level(n)
		if !ok {
			return c.Return(Nil)
		}
		at, fn = i, t.function(&t.frames[i])
	}
	if strings.Trim(what, "SlnrutLf") != "" {
		return c.ArgError(2+shift, "invalid option")
	}
	r := NewTable(0, 12)
	for _, o := range what {
		c.state.info(r, o, t, fn, at)
	}
	return c.Return(r.Value())
}

// info fills in what one option of getinfo asks for; at is the frame, or -1
// for a function that is not running.
func (s *State) info(r *Table, option rune, t *Thread, fn *Function, at int) {
	switch option {
	case 'S':
		s.sourceInfo(r, fn)
	case 'l':
		line := -1
		if at >= 0 && fn.proto != nil {
			line = fn.proto.lineAt(int(t.frames[at].pc) - 1)
		}
		r.SetString("currentline", Int(int64(line)))
	case 'u':
		ups, params, vararg := len(fn.bound), 0, true
		if fn.proto != nil {
			ups, params, vararg = len(fn.upvalues), int(fn.proto.params), fn.proto.vararg
		}
		r.SetString("nups", Int(int64(ups)))
		r.SetString("nparams", Int(int64(params)))
		r.SetString("isvararg", Bool(vararg))
	case 'n':
		name, kind := "", ""
		if at >= 0 {
			name, kind = s.frameName(t, at)
		}
		r.SetString("namewhat", String(kind))
		if kind != "" {
			r.SetString("name", String(name))
		}
	case 'r':
		first, n := t.hook.transferred(t, at)
		r.SetString("ftransfer", Int(int64(first)))
		r.SetString("ntransfer", Int(int64(n)))
	case 't':
		r.SetString("istailcall", Bool(at >= 0 && t.frames[at].flags&frameTail != 0))
	case 'L':
		r.SetString("activelines", fn.activeLines())
	case 'f':
		r.SetString("func", fn.Value())
	}
}

// transferred gives the first and the number of the values that the hook running
// for a frame sees handed over, or zeros.
func (h *hook) transferred(t *Thread, at int) (first, n int) {
	if h == nil || !h.active || at < 0 || at+1 >= len(t.frames) || t.frames[at+1].flags&frameHook == 0 {
		return 0, 0
	}
	return h.first, h.n
}

func (s *State) sourceInfo(r *Table, fn *Function) {
	what, source, short, line, last := "C", "=[C]", "[C]", -1, -1
	if p := fn.proto; p != nil {
		what, source, short, line, last = "Lua", p.source, chunkID(p.source), int(p.line), int(p.lastLine)
		if line == 0 {
			what = "main"
		}
	}
	r.SetString("what", String(what))
	r.SetString("source", String(source))
	r.SetString("short_src", String(short))
	r.SetString("linedefined", Int(int64(line)))
	r.SetString("lastlinedefined", Int(int64(last)))
}

// activeLines returns the set of lines with code.
func (f *Function) activeLines() Value {
	if f.proto == nil {
		return Nil
	}
	r := NewTable(0, 0)
	for pc, line := range f.proto.lines {
		if pc == 0 && f.proto.vararg {
			continue
		}
		r.SetInt(int64(line), Bool(true))
	}
	return r.Value()
}

// local returns the name and stack position of the n-th variable of a frame;
// negative numbers are variable arguments.
func (t *Thread) local(at int, n int64) (name string, pos int, ok bool) {
	f := &t.frames[at]
	fn := t.function(f)
	if n < 0 {
		if fn.proto == nil || !fn.proto.vararg || -n > int64(f.extra) {
			return "", 0, false
		}
		return "(vararg)", int(f.fn) - int(f.extra) + int(-n) - 1, true
	}
	n = min(n, 1<<20)
	pos = int(f.fn) + int(n)
	inUse := n > 0 && pos < t.end(at)
	if fn.proto == nil {
		return "(C temporary)", pos, inUse
	}
	if name, reg, ok := fn.proto.local(int(n), int(f.pc)-1); ok {
		return name, int(f.fn) + 1 + reg, true
	}
	return "(temporary)", pos, inUse
}

// end is the stack position behind what a frame has in use.
func (t *Thread) end(at int) int {
	f := &t.frames[at]
	switch {
	case at+1 < len(t.frames):
		return int(t.frames[at+1].ret)
	case t.function(f).proto != nil:
		return max(int(f.top), t.top)
	}
	return int(f.top)
}

func debugGetlocal(c *Call) error {
	t, shift := threadArg(c)
	n, err := c.CheckInt(2 + shift)
	if err != nil {
		return err
	}
	if f, ok := c.Arg(1 + shift).AsFunction(); ok {
		if f.proto == nil {
			return c.Return(Nil)
		}
		if name, _, ok := f.proto.local(int(min(n, 1<<20)), 0); ok && n > 0 && n <= int64(f.proto.params) {
			return c.Return(String(name))
		}
		return c.Return(Nil)
	}
	at, err := checkLevel(c, t, 1+shift)
	if err != nil {
		return err
	}
	name, pos, ok := t.local(at, n)
	if !ok {
		return c.Return(Nil)
	}
	v := t.stack[pos]
	if v.isFunction() {
		v.n = 0 // loops keep a note there
	}
	return c.Return(String(name), v)
}

func checkLevel(c *Call, t *Thread, arg int) (int, error) {
	n, err := c.CheckInt(arg)
	if err != nil {
		return 0, err
	}
	at, ok := t.level(n)
	if !ok {
		return 0, c.ArgError(arg, "level out of range")
	}
	return at, nil
}

func debugSetlocal(c *Call) error {
	t, shift := threadArg(c)
	at, err := checkLevel(c, t, 1+shift)
	if err != nil {
		return err
	}
	n, err := c.CheckInt(2 + shift)
	if err != nil {
		return err
	}
	if err := c.CheckAny(3 + shift); err != nil {
		return err
	}
	name, pos, ok := t.local(at, n)
	if !ok {
		return c.Return(Nil)
	}
	t.stack[pos] = c.Arg(3 + shift)
	return c.Return(String(name))
}
