package lua

import "math"

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
