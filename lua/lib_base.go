package lua

import (
	"io"
	"strings"
)

// Base is the base library without the functions that read files: print,
// pairs, pcall, load and the like.
var Base = NewLibrary("", []Reg{
	{"assert", baseAssert},
	{"collectgarbage", baseCollectgarbage},
	{"error", baseError},
	{"getmetatable", baseGetmetatable},
	{"ipairs", baseIpairs},
	{"load", baseLoad},
	{"next", baseNext},
	{"pairs", nil},
	{"pcall", nil},
	{"print", basePrint},
	{"rawequal", baseRawequal},
	{"rawget", baseRawget},
	{"rawlen", baseRawlen},
	{"rawset", baseRawset},
	{"select", baseSelect},
	{"setmetatable", baseSetmetatable},
	{"tonumber", baseTonumber},
	{"tostring", baseTostring},
	{"type", baseType},
	{"warn", baseWarn},
	{"xpcall", nil},
}, []Const{{"_VERSION", String("Lua 5.4")}}, setupBase)

// BaseFiles are the functions of the base library that read files.
var BaseFiles = NewLibrary("", []Reg{
	{"dofile", nil},
	{"loadfile", baseLoadfile},
}, nil, nil)

func setupBase(s *State, t *Table) error {
	s.nextFunction = t.GetString("next")
	return t.setStr(s, setupNames["_G"], s.globals.Value())
}

func baseAssert(c *Call) error {
	if c.Arg(1).Truthy() {
		return c.Return(c.args...)
	}
	if err := c.CheckAny(1); err != nil {
		return err
	}
	if c.NArgs() >= 2 {
		return Throw(c.Arg(2))
	}
	return c.Errorf("assertion failed!")
}

func baseError(c *Call) error {
	level, err := c.OptInt(2, 1)
	if err != nil {
		return err
	}
	v := c.Arg(1)
	if text, ok := v.AsString(); ok && level > 0 && level < 1<<30 {
		v = String(c.state.where(c.thread, int(level)) + text)
	}
	return Throw(v)
}

func baseGetmetatable(c *Call) error {
	if err := c.CheckAny(1); err != nil {
		return err
	}
	meta := c.state.metatable(c.Arg(1))
	if meta == nil {
		return c.Return(Nil)
	}
	if v := meta.handler(evMetatable); v.p != nil {
		return c.Return(v)
	}
	return c.Return(meta.Value())
}

func baseSetmetatable(c *Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	meta, ok := c.Arg(2).AsTable()
	if !ok && (!c.Arg(2).IsNil() || c.NArgs() < 2) {
		return c.TypeError(2, "nil or table")
	}
	if t.meta.handler(evMetatable).p != nil {
		return c.Errorf("cannot change a protected metatable")
	}
	t.meta = meta
	c.state.noteMetatable(c.Arg(1), meta)
	return c.Return(c.Arg(1))
}

// noteMetatable registers the finalizer and the weak mode of a new metatable with
// the collector.
func (s *State) noteMetatable(v Value, meta *Table) {
	if meta == nil {
		return
	}
	s.registerFinalizer(v, meta)
	if !s.gc.usesWeak && meta.handler(evMode).p != nil {
		s.gc.usesWeak = true
		s.account.memoryNext = s.nextMeasure()
	}
}

// ipairsIterator is what ipairs returns; loops run it without calling it.
var ipairsIterator = func() *Function {
	f := newShared("ipairs.iterator", ipairsNext)
	f.host.builtin = builtinIpairs
	return f
}()

func baseIpairs(c *Call) error {
	if err := c.CheckAny(1); err != nil {
		return err
	}
	return c.Return(ipairsIterator.Value(), c.Arg(1), Int(0))
}

func ipairsNext(c *Call) error {
	i, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	i++
	v, err := c.Index(c.Arg(1), Int(i))
	if err != nil {
		return err
	}
	if v.IsNil() {
		return c.Return(Nil)
	}
	return c.Return(Int(i), v)
}

func baseNext(c *Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	k, v, ok, err := t.next(c.Arg(2))
	if err != nil {
		return err
	}
	if !ok {
		return c.Return(Nil)
	}
	return c.Return(k, v)
}

func basePrint(c *Call) error {
	var b strings.Builder
	for i := 1; i <= c.NArgs(); i++ {
		if i > 1 {
			b.WriteByte('\t')
		}
		text, err := c.ToString(c.Arg(i))
		if err != nil {
			return err
		}
		if err := c.Step(len(text) / 16); err != nil {
			return err
		}
		b.WriteString(text)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(c.state.stdout(), b.String())
	return err
}

func baseRawequal(c *Call) error {
	if err := c.CheckAny(1); err != nil {
		return err
	}
	if err := c.CheckAny(2); err != nil {
		return err
	}
	return c.Return(Bool(RawEqual(c.Arg(1), c.Arg(2))))
}

func baseRawget(c *Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	if err := c.CheckAny(2); err != nil {
		return err
	}
	return c.Return(t.get(c.Arg(2)))
}

func baseRawlen(c *Call) error {
	switch v := c.Arg(1); v.Kind() {
	case KindTable:
		return c.Return(Int(int64(v.table().Len())))
	case KindString:
		return c.Return(Int(int64(len(v.str().s))))
	}
	return c.ArgError(1, "table or string expected")
}

func baseRawset(c *Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	for i := 2; i <= 3; i++ {
		if err := c.CheckAny(i); err != nil {
			return err
		}
	}
	if err := t.set(c.state, c.Arg(2), c.Arg(3)); err != nil {
		return err
	}
	return c.Return(c.Arg(1))
}

func baseSelect(c *Call) error {
	if text, ok := c.Arg(1).AsString(); ok && strings.HasPrefix(text, "#") {
		return c.Return(Int(int64(c.NArgs() - 1)))
	}
	n, err := c.CheckInt(1)
	if err != nil {
		return err
	}
	count := int64(c.NArgs())
	if n < 0 {
		n = count + n
	} else if n > count {
		n = count
	}
	if n < 1 {
		return c.ArgError(1, "index out of range")
	}
	return c.Return(c.args[n:]...)
}

func baseTostring(c *Call) error {
	if err := c.CheckAny(1); err != nil {
		return err
	}
	if c.Arg(1).isString() {
		return c.Return(c.Arg(1))
	}
	text, err := c.ToString(c.Arg(1))
	if err != nil {
		return err
	}
	if err := c.Alloc(strOverhead + len(text)); err != nil {
		return err
	}
	return c.Return(String(text))
}

func baseTonumber(c *Call) error {
	v := c.Arg(1)
	if c.Arg(2).IsNil() {
		if n, ok := toNumber(v); ok {
			return c.Return(n)
		}
		if err := c.CheckAny(1); err != nil {
			return err
		}
		return c.Return(Nil)
	}
	base, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	text, ok := v.AsString()
	if !ok {
		return c.TypeError(1, "string")
	}
	if base < 2 || base > 36 {
		return c.ArgError(2, "base out of range")
	}
	if n, ok := parseBase(trimSpace(text), base); ok {
		return c.Return(Int(n))
	}
	return c.Return(Nil)
}

// parseBase reads an integer in a base; it wraps around like all integers.
func parseBase(text string, base int64) (int64, bool) {
	text, neg := cutSign(text)
	if text == "" {
		return 0, false
	}
	n := int64(0)
	for _, c := range []byte(text) {
		d := int64(-1)
		switch {
		case isDecimalDigit(c):
			d = int64(c - '0')
		case isAlpha(c):
			d = int64(c|0x20-'a') + 10
		}
		if d < 0 || d >= base {
			return 0, false
		}
		n = n*base + d
	}
	if neg {
		n = -n
	}
	return n, true
}

func baseType(c *Call) error {
	if err := c.CheckAny(1); err != nil {
		return err
	}
	return c.Return(typeStrings[c.args[0].Kind()].value())
}

// typeStrings are the results of type, made once.
var typeStrings = func() (list [kindLight + 1]*Str) {
	for k := range list {
		list[k] = newConstant(typeNames[k])
	}
	return list
}()

func baseWarn(c *Call) error {
	var b strings.Builder
	for i := 1; i <= max(1, c.NArgs()); i++ {
		text, err := c.CheckString(i)
		if err != nil {
			return err
		}
		b.WriteString(text)
	}
	if c.NArgs() == 1 || !strings.HasPrefix(b.String(), "@") {
		c.state.warn(b.String())
	} else if c.state.warnings.on {
		_, _ = io.WriteString(c.state.stderr(), "Lua warning: "+b.String()+"\n")
	}
	return nil
}

// gcSettings are what scripts set through collectgarbage. They are kept and
// reported back but change nothing: Go's collector does the work.
type gcSettings struct {
	pause, stepmul int64
	generational   bool
}

func baseCollectgarbage(c *Call) error {
	option, err := c.CheckOption(1, "collect", "stop", "restart", "collect", "count", "step", "setpause",
		"setstepmul", "isrunning", "generational", "incremental")
	if err != nil {
		return err
	}
	s := c.state
	if s.gc.finalizing { // as the reference: not from a finalizer
		return c.Return(Bool(false))
	}
	switch option {
	case 0:
		s.gc.stopped = true
		return c.Return(Int(0))
	case 1:
		s.gc.stopped = false
		s.account.memoryNext = s.nextMeasure()
		return c.Return(Int(0))
	case 2:
		return fullCollect(c, Int(0))
	case 3:
		return c.Return(Float(float64(s.account.memory) / 1024))
	case 4:
		return fullCollect(c, Bool(true))
	case 5, 6:
		n, err := c.OptInt(2, 0)
		if err != nil {
			return err
		}
		slot := &s.gcSettings.pause
		if option == 6 {
			slot = &s.gcSettings.stepmul
		}
		old := *slot
		*slot = n
		return c.Return(Int(old))
	case 7:
		return c.Return(Bool(!s.gc.stopped))
	}
	old := "incremental"
	if s.gcSettings.generational {
		old = "generational"
	}
	s.gcSettings.generational = option == 8
	return c.Return(String(old))
}

// fullCollect walks, runs finalizers, and walks again for what they freed.
func fullCollect(c *Call, result Value) error {
	s := c.state
	if err := s.collectNow(); err != nil {
		return err
	}
	return c.Return(result)
}

// collectNow does a full collection with its finalizers.
func (s *State) collectNow() error {
	s.account.memory = s.collect()
	if len(s.gc.pending) > 0 {
		if err := s.finalize(); err != nil {
			return err
		}
		s.account.memory = s.collect()
	}
	s.account.memoryNext = s.nextMeasure()
	return s.step(0)
}

// warnings is the state of the warning system: off until a script or the host
// turns it on.
type warnings struct {
	on      bool
	partial strings.Builder // of a warning in pieces
}

// warn writes a complete warning, or obeys a control message.
func (s *State) warn(msg string) {
	if strings.HasPrefix(msg, "@") {
		switch msg {
		case "@on":
			s.warnings.on = true
		case "@off":
			s.warnings.on = false
		}
		return
	}
	if s.warnings.on {
		_, _ = io.WriteString(s.stderr(), "Lua warning: "+msg+"\n")
	}
}
