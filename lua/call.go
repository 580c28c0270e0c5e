package lua

import (
	"context"
	"errors"
	"fmt"
)

// Call is a host function's view of being called. It is valid until the
// function returns; the engine reuses it.
type Call struct {
	state  *State
	thread *Thread
	fn     *Function
	args   []Value
	rets   []Value
	back   []Value // results of the last call back into Lua
	next   *Call   // in the list of free ones
	// resumed is set when the function runs again after Yield.
	resumed bool
}

// State returns the state the function runs in.
func (c *Call) State() *State { return c.state }

// Context returns the context of the State.Call that led here.
func (c *Call) Context() context.Context { return c.state.account.ctx }

// NArgs returns the number of arguments.
func (c *Call) NArgs() int { return len(c.args) }

// Arg returns argument i, counted from 1, or Nil when it is absent.
func (c *Call) Arg(i int) Value {
	if uint(i-1) < uint(len(c.args)) {
		return c.args[i-1]
	}
	return Nil
}

// Args returns all arguments. The slice is the engine's: read it only, and
// only until the function returns.
func (c *Call) Args() []Value { return c.args }

// Upvalue returns value i, counted from 1, that Bind gave the function.
func (c *Call) Upvalue(i int) Value { return c.fn.bound[i-1] }

// SetUpvalue replaces value i that Bind gave the function.
func (c *Call) SetUpvalue(i int, v Value) { c.fn.bound[i-1] = v }

// Function returns the function being called.
func (c *Call) Function() *Function { return c.fn }

// Return sets the results, replacing earlier ones, and returns nil so that a
// function can end with it.
func (c *Call) Return(vals ...Value) error {
	c.rets = append(c.rets[:0], vals...)
	return nil
}

// Yield suspends the coroutine the function runs in, passing values to the code that
// resumed it; the function ends with it. When the coroutine is resumed the
// function is called again, with Resumed set and what resume was given as its
// arguments, and now ends the call for good, or yields once more. Nothing of
// its Go variables is kept in between, so that a suspended coroutine stays
// plain data.
func (c *Call) Yield(vals ...Value) error {
	c.rets = append(c.rets[:0], vals...)
	return errYield
}

// Resumed reports whether the function runs again after a Yield.
func (c *Call) Resumed() bool { return c.resumed }

// Yieldable reports whether Yield is possible: the function runs in a
// coroutine, with no host function that waits for a callback in between.
func (c *Call) Yieldable() bool { return c.thread != c.state.main && c.thread.pinned == 0 }

// Thread returns the coroutine the function runs in.
func (c *Call) Thread() *Thread { return c.thread }

// errYield is what Yield returns for the machine to see.
var errYield = errors.New("yield")

// Line is the line of the nearest Lua function among the callers whose chunk is
// wanted, or 0.
func (c *Call) Line(wanted func(chunk string) bool) int {
	frames := c.thread.frames
	for i := len(frames) - 2; i >= 0; i-- {
		f := &frames[i]
		if f.flags&frameHost != 0 {
			continue
		}
		if p := c.thread.function(f).proto; wanted(chunkID(p.source)) {
			return max(p.lineAt(int(f.pc)-1), 0)
		}
	}
	return 0
}

// Push adds one result.
func (c *Call) Push(v Value) { c.rets = append(c.rets, v) }

// Step charges n units of work to the budget. Every loop whose length a
// script can choose calls it, before or while it runs.
func (c *Call) Step(n int) error {
	c.state.account.fuel -= int64(n)
	if c.state.account.fuel < 0 {
		return c.state.refuel()
	}
	return nil
}

// Alloc charges bytes that are about to be allocated. An allocation whose size
// a script can choose is charged before it is made.
func (c *Call) Alloc(bytes int) error { return c.state.alloc(bytes) }

// NewString charges and returns a string value with a copy of b.
func (c *Call) NewString(b []byte) (Value, error) {
	if err := c.state.alloc(strOverhead + len(b)); err != nil {
		return Nil, err
	}
	return stringOf(b), nil
}

// NewTable charges and returns an empty table with room for the given numbers
// of array elements and other entries.
func (c *Call) NewTable(array, entries int) (*Table, error) {
	n := tableSize + array*int(valueSize) + entriesSize(entryCap(entries))
	if err := c.state.alloc(n); err != nil {
		return nil, err
	}
	return NewTable(array, entries), nil
}

// SetRaw stores v at k in t without metamethods, charging its growth.
func (c *Call) SetRaw(t *Table, k, v Value) error { return t.set(c.state, k, v) }

// SetRawInt stores v at the integer key i of t, charging its growth.
func (c *Call) SetRawInt(t *Table, i int64, v Value) error { return t.setInt(c.state, i, v) }

// Call calls back into Lua. The results are valid until the next Call of c.
// Coroutines cannot yield across it.
func (c *Call) Call(fn Value, args ...Value) ([]Value, error) {
	t := c.thread
	at := int(t.frame().top)
	if err := t.reserve(at + len(args) + 1); err != nil {
		return nil, err
	}
	t.stack[at] = fn
	copy(t.stack[at+1:], args)
	if err := c.state.callNested(t, at, len(args)); err != nil {
		return nil, err
	}
	c.back = append(c.back[:0], t.stack[at:t.top]...)
	return c.back, nil
}

// call1 is Call for exactly one result.
func (c *Call) call1(fn Value, args ...Value) (Value, error) {
	rets, err := c.Call(fn, args...)
	if err != nil || len(rets) == 0 {
		return Nil, err
	}
	return rets[0], nil
}

// Index returns v[k], with metamethods.
func (c *Call) Index(v, k Value) (Value, error) { return c.state.index(v, k) }

// SetIndex does v[k] = x, with metamethods.
func (c *Call) SetIndex(v, k, x Value) error { return c.state.setIndex(v, k, x) }

// Len returns #v, with metamethods, which must give an integer.
func (c *Call) Len(v Value) (int64, error) {
	if t, ok := v.AsTable(); ok && t.meta == nil {
		return int64(t.Len()), nil
	}
	n, err := c.state.length(v)
	if err != nil {
		return 0, err
	}
	i, ok := n.AsInt()
	if !ok {
		return 0, c.Errorf("object length is not an integer")
	}
	return i, nil
}

// ToString converts v as tostring does, with __tostring and __name.
func (c *Call) ToString(v Value) (string, error) { return c.state.display(v) }

// Equal returns a == b, with metamethods.
func (c *Call) Equal(a, b Value) (bool, error) { return c.state.equals(a, b) }

// Less returns a < b, with metamethods.
func (c *Call) Less(a, b Value) (bool, error) { return c.state.less(a, b) }

// Arith computes a op b, with metamethods and without converting strings; the
// unary operators ignore b.
func (c *Call) Arith(op ArithOp, a, b Value) (Value, error) { return c.state.arith(op, a, b) }

// Metafield returns the field of v's metatable, or Nil.
func (c *Call) Metafield(v Value, name string) Value {
	if m := c.state.metatable(v); m != nil {
		return m.GetString(name)
	}
	return Nil
}

// Metatable returns v's metatable, or nil.
func (c *Call) Metatable(v Value) *Table { return c.state.metatable(v) }

// CheckAny reports an absent argument i.
func (c *Call) CheckAny(i int) error {
	if i > len(c.args) {
		return c.ArgError(i, "value expected")
	}
	return nil
}

// CheckInt returns argument i as an integer, converting floats and strings
// with an exact integer value.
func (c *Call) CheckInt(i int) (int64, error) {
	v := c.Arg(i)
	if v.isInt() {
		return v.int(), nil
	}
	if n, ok := toInteger(v); ok {
		return n, nil
	}
	if _, ok := toNumber(v); ok {
		return 0, c.ArgError(i, "number has no integer representation")
	}
	return 0, c.TypeError(i, "number")
}

// CheckNumber returns argument i as an integer or float, converting strings.
func (c *Call) CheckNumber(i int) (Value, error) {
	if v, ok := toNumber(c.Arg(i)); ok {
		return v, nil
	}
	return Nil, c.TypeError(i, "number")
}

// CheckFloat returns argument i as a float, converting integers and strings.
func (c *Call) CheckFloat(i int) (float64, error) {
	v := c.Arg(i)
	if v.isFloat() {
		return v.float(), nil
	}
	v, err := c.CheckNumber(i)
	f, _ := v.AsFloat()
	return f, err
}

// CheckString returns argument i as a string, converting numbers.
func (c *Call) CheckString(i int) (string, error) {
	v := c.Arg(i)
	if v.isString() {
		return v.str().s, nil
	}
	if v.isNumber() {
		return v.String(), nil
	}
	return "", c.TypeError(i, "string")
}

// CheckTable returns argument i, which must be a table.
func (c *Call) CheckTable(i int) (*Table, error) {
	if t, ok := c.Arg(i).AsTable(); ok {
		return t, nil
	}
	return nil, c.TypeError(i, "table")
}

// CheckFunction returns argument i, which must be a function.
func (c *Call) CheckFunction(i int) (*Function, error) {
	if f, ok := c.Arg(i).AsFunction(); ok {
		return f, nil
	}
	return nil, c.TypeError(i, "function")
}

// OptInt is CheckInt with a default for nil and absent arguments.
func (c *Call) OptInt(i int, def int64) (int64, error) {
	if c.Arg(i).IsNil() {
		return def, nil
	}
	return c.CheckInt(i)
}

// OptFloat is CheckFloat with a default for nil and absent arguments.
func (c *Call) OptFloat(i int, def float64) (float64, error) {
	if c.Arg(i).IsNil() {
		return def, nil
	}
	return c.CheckFloat(i)
}

// OptString is CheckString with a default for nil and absent arguments.
func (c *Call) OptString(i int, def string) (string, error) {
	if c.Arg(i).IsNil() {
		return def, nil
	}
	return c.CheckString(i)
}

// CheckOption returns the position of argument i in a list of words.
func (c *Call) CheckOption(i int, def string, options ...string) (int, error) {
	name, err := c.OptString(i, def)
	if def == "" {
		name, err = c.CheckString(i)
	}
	if err != nil {
		return 0, err
	}
	for at, o := range options {
		if o == name {
			return at, nil
		}
	}
	return 0, c.ArgError(i, fmt.Sprintf("invalid option '%s'", name))
}

// Errorf returns an error whose message begins with the position of the
// function's caller, as error does at level 1.
func (c *Call) Errorf(format string, args ...any) error {
	return Throw(String(c.state.where(c.thread, 1) + fmt.Sprintf(format, args...)))
}

// ArgError returns the error for a wrong argument i.
func (c *Call) ArgError(i int, msg string) error {
	name, kind := c.state.callerName(c.thread)
	if kind == "method" {
		i--
		if i == 0 {
			return c.Errorf("calling '%s' on bad self (%s)", name, msg)
		}
	}
	if name == "" {
		name = c.state.globalName(c.fn)
	}
	if name == "" {
		name = "?"
	}
	return c.Errorf("bad argument #%d to '%s' (%s)", i, name, msg)
}

// TypeError returns the error for an argument i that should be of the type
// named.
func (c *Call) TypeError(i int, want string) error {
	got := "no value"
	if i <= len(c.args) {
		got = c.state.typeName(c.args[i-1])
	}
	return c.ArgError(i, want+" expected, got "+got)
}
