package lua

import (
	"math"
	"strings"
	"unsafe"
)

// maxStringSize bounds the strings that string.rep makes, as in the reference.
const maxStringSize = math.MaxInt32

// bytesPerStep is how much copying counts as one step.
const bytesPerStep = 64

// byteStrings are the strings of one byte, shared by all states.
var byteStrings = buildByteStrings()

func buildByteStrings() (strings [256]*Str) {
	for c := range strings {
		strings[c] = newConstant(string([]byte{byte(c)}))
	}
	return strings
}

// newString makes a string with a copy of s, so that a small piece does not
// keep a large string alive, and charges the copying.
func (c *Call) newString(s string) (Value, error) {
	if len(s) == 1 {
		return byteStrings[s[0]].value(), nil
	}
	buf, v, err := c.makeString(len(s))
	copy(buf, s)
	return v, err
}

// makeString makes a string of n bytes that the caller fills at once.
func (c *Call) makeString(n int) ([]byte, Value, error) {
	if err := c.Alloc(n + strOverhead); err != nil {
		return nil, Nil, err
	}
	if n > bytesPerStep {
		if err := c.Step(n / bytesPerStep); err != nil {
			return nil, Nil, err
		}
	}
	str, buf := makeStr(n)
	return buf, str.value(), nil
}

// returnString returns a copy of s.
func (c *Call) returnString(s string) error {
	v, err := c.newString(s)
	if err != nil {
		return err
	}
	return c.Return(v)
}

// pushString adds a copy of s to the results.
func (c *Call) pushString(s string) error {
	v, err := c.newString(s)
	if err != nil {
		return err
	}
	c.Push(v)
	return nil
}

// reserve charges n results and raises message when the stack has no room for
// so many.
func (c *Call) reserve(n int, message string) error {
	if n > maxStack-int(c.thread.frame().top) {
		return c.Errorf("%s", message)
	}
	if n <= 16 {
		return nil
	}
	if err := c.Step(n); err != nil {
		return err
	}
	return c.Alloc(n * int(valueSize))
}

// stringValue gives argument i, which is a string or number, as a string.
func (c *Call) stringValue(i int) Value {
	if v := c.Arg(i); v.isString() {
		return v
	}
	return String(c.Arg(i).String())
}

// startPosition turns a position that may count from the end into one from 1
// on; it may lie past the end.
func startPosition(pos int64, length int) int {
	switch {
	case pos > 0:
		return int(pos)
	case pos == 0 || pos < -int64(length):
		return 1
	}
	return length + int(pos) + 1
}

// endPosition turns a position that may count from the end into one from 0
// to length.
func endPosition(pos int64, length int) int {
	switch {
	case pos > int64(length):
		return length
	case pos >= 0:
		return int(pos)
	case pos < -int64(length):
		return 0
	}
	return length + int(pos) + 1
}

func stringLen(c *Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	return c.Return(Int(int64(len(s))))
}

func stringSub(c *Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	from, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	to, err := c.OptInt(3, -1)
	if err != nil {
		return err
	}
	start, end := startPosition(from, len(s)), endPosition(to, len(s))
	switch {
	case start > end:
		return c.returnString("")
	case start == 1 && end == len(s) && c.Arg(1).isString():
		return c.Return(c.Arg(1))
	}
	return c.returnString(s[start-1 : end])
}

// mapBytes returns the string whose byte k is that of s that change gives.
func mapBytes(c *Call, change func(s string, k int) byte) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	buf, v, err := c.makeString(len(s))
	if err != nil {
		return err
	}
	for k := range buf {
		buf[k] = change(s, k)
	}
	return c.Return(v)
}

func stringReverse(c *Call) error {
	return mapBytes(c, func(s string, k int) byte { return s[len(s)-1-k] })
}

func stringLower(c *Call) error {
	return mapBytes(c, func(s string, k int) byte {
		if ch := s[k]; ch-'A' <= 'Z'-'A' {
			return ch + 'a' - 'A'
		}
		return s[k]
	})
}

func stringUpper(c *Call) error {
	return mapBytes(c, func(s string, k int) byte {
		if ch := s[k]; ch-'a' <= 'z'-'a' {
			return ch - 'a' + 'A'
		}
		return s[k]
	})
}

func stringRep(c *Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	n, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	sep, err := c.OptString(3, "")
	if err != nil {
		return err
	}
	if n <= 0 {
		return c.returnString("")
	}
	if int64(len(s)+len(sep)) > maxStringSize/n {
		return c.Errorf("resulting string too large")
	}
	if len(s)+len(sep) == 0 {
		return c.returnString("")
	}
	buf, v, err := c.makeString(int(n)*(len(s)+len(sep)) - len(sep))
	if err != nil {
		return err
	}
	// One piece first, then what is there is doubled until the end.
	filled := copy(buf, s)
	filled += copy(buf[filled:], sep)
	for filled < len(buf) {
		filled += copy(buf[filled:], buf[:filled])
	}
	return c.Return(v)
}

func stringByte(c *Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	from, err := c.OptInt(2, 1)
	if err != nil {
		return err
	}
	to, err := c.OptInt(3, from)
	if err != nil {
		return err
	}
	start, end := startPosition(from, len(s)), endPosition(to, len(s))
	if err := c.reserve(max(end-start+1, 0), "stack overflow (string slice too long)"); err != nil {
		return err
	}
	for k := start; k <= end; k++ {
		c.Push(Int(int64(s[k-1])))
	}
	return nil
}

func stringChar(c *Call) error {
	n := c.NArgs()
	buf, v, err := c.makeString(n)
	if err != nil {
		return err
	}
	for k := range buf {
		ch, err := c.CheckInt(k + 1)
		if err != nil {
			return err
		}
		if ch < 0 || ch > 255 {
			return c.ArgError(k+1, "value out of range")
		}
		buf[k] = byte(ch)
	}
	if n == 1 {
		v = byteStrings[buf[0]].value()
	}
	return c.Return(v)
}

// stringDump returns the code of a Lua function in binary form.
func stringDump(c *Call) error {
	f, err := c.CheckFunction(1)
	if err != nil {
		return err
	}
	if f.proto == nil {
		return c.Errorf("unable to dump given function")
	}
	v, err := c.NewString(f.proto.dump(c.Arg(2).Truthy()))
	if err != nil {
		return err
	}
	return c.Return(v)
}

// StringLib is the library "string", which is also what methods of strings
// are looked up in. Its metatable makes arithmetic convert strings.
var StringLib = NewLibrary("string", []Reg{
	{"byte", stringByte},
	{"char", stringChar},
	{"dump", stringDump},
	{"find", stringFind},
	{"format", stringFormat},
	{"gmatch", stringGmatch},
	{"gsub", stringGsub},
	{"len", stringLen},
	{"lower", stringLower},
	{"match", stringMatch},
	{"rep", stringRep},
	{"reverse", stringReverse},
	{"sub", stringSub},
	{"upper", stringUpper},
	{"pack", stringPack},
	{"packsize", stringPacksize},
	{"unpack", stringUnpack},
}, nil, setupStrings)

// setupStrings gives the strings of a state their metatable.
func setupStrings(s *State, lib *Table) error {
	meta := stringMetamethods.template.borrow()
	if err := meta.setStr(s, eventNames["__index"], lib.Value()); err != nil {
		return err
	}
	s.SetStringMetatable(meta)
	return nil
}

// stringMetamethods are the arithmetic operators of strings.
var stringMetamethods = NewLibrary("string.meta", []Reg{
	{"__add", stringArith(OpAdd, "__add")},
	{"__sub", stringArith(OpSub, "__sub")},
	{"__mul", stringArith(OpMul, "__mul")},
	{"__mod", stringArith(OpMod, "__mod")},
	{"__pow", stringArith(OpPow, "__pow")},
	{"__div", stringArith(OpDiv, "__div")},
	{"__idiv", stringArith(OpIDiv, "__idiv")},
	{"__unm", stringArith(OpUnm, "__unm")},
}, nil, nil)

// stringArith makes the metamethod for one operator: it converts both
// operands to numbers, or tries the metamethod of the second.
func stringArith(op ArithOp, event string) Func {
	return func(c *Call) error {
		a, ok1 := toNumber(c.Arg(1))
		b, ok2 := toNumber(c.Arg(2))
		if ok1 && ok2 {
			v, err := c.Arith(op, a, b)
			if err != nil {
				return err
			}
			return c.Return(v)
		}
		method := Nil
		if !c.Arg(2).isString() {
			method = c.Metafield(c.Arg(2), event)
		}
		if method.IsNil() {
			return c.Errorf("attempt to %s a '%s' with a '%s'", strings.TrimPrefix(event, "__"),
				c.Arg(1).TypeName(), c.Arg(2).TypeName())
		}
		v, err := c.call1(method, c.Arg(1), c.Arg(2))
		if err != nil {
			return err
		}
		return c.Return(v)
	}
}

// textBuffer builds a string whose length the script chooses: what it grows by
// is charged before it grows.
type textBuffer struct {
	c *Call
	b []byte
}

// add appends s.
func (t *textBuffer) add(s string) error {
	if len(t.b)+len(s) > cap(t.b) {
		if err := t.grow(len(s)); err != nil {
			return err
		}
	}
	t.b = append(t.b, s...)
	return nil
}

// grow makes room for n more bytes.
func (t *textBuffer) grow(n int) error {
	size := max(2*cap(t.b), len(t.b)+n, 64)
	if err := t.c.Alloc(size); err != nil {
		return err
	}
	if err := t.c.Step(size / bytesPerStep); err != nil {
		return err
	}
	b := make([]byte, len(t.b), size)
	copy(b, t.b)
	t.b = b
	return nil
}

// value ends the building with the string that was built.
func (t *textBuffer) value() (Value, error) {
	if waste := cap(t.b) - len(t.b); len(t.b) <= 40 || waste > len(t.b)/4 {
		return t.c.newString(unsafe.String(unsafe.SliceData(t.b), len(t.b)))
	}
	v := newStr(unsafe.String(unsafe.SliceData(t.b), len(t.b))).value()
	t.b = nil
	return v, t.c.Alloc(strOverhead)
}

// finish returns the string that was built.
func (t *textBuffer) finish() error {
	v, err := t.value()
	if err != nil {
		return err
	}
	return t.c.Return(v)
}
