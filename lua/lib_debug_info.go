package lua

import "strings"

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
