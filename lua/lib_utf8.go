package lua

// The code points that UTF-8 can express: as Unicode defines it, and in the
// original form with up to six bytes.
const (
	maxUnicode   = 0x10FFFF
	maxCodepoint = 0x7FFFFFFF
)

const errUTF8 = "invalid UTF-8 code"

// UTF8Lib is the library "utf8".
var UTF8Lib = NewLibrary("utf8", []Reg{
	{"char", utf8Char},
	{"codepoint", utf8Codepoint},
	{"codes", utf8Codes},
	{"len", utf8Len},
	{"offset", utf8Offset},
}, []Const{
	{"charpattern", String("[\x00-\x7F\xC2-\xFD][\x80-\xBF]*")},
}, nil)

// decodeUTF8 reads the code point at the start of s and its length in bytes;
// length 0 when there is none. Strict accepts what Unicode allows, otherwise
// surrogates and values up to 2^31 pass.
func decodeUTF8(s string, strict bool) (code uint32, length int) {
	// The smallest values that need so many continuation bytes.
	limits := [...]uint32{^uint32(0), 0x80, 0x800, 0x10000, 0x200000, 0x4000000}
	first := uint32(s[0])
	if first < 0x80 {
		return first, 1
	}
	count := 0
	for ; first&0x40 != 0; first <<= 1 {
		count++
		if count >= len(s) || !isContinuation(s[count]) {
			return 0, 0
		}
		code = code<<6 | uint32(s[count]&0x3f)
	}
	code |= first & 0x7f << (count * 5)
	if count > 5 || code > maxCodepoint || code < limits[count] {
		return 0, 0
	}
	if strict && !isUnicode(code) {
		return 0, 0
	}
	return code, count + 1
}

// isUnicode reports whether Unicode has the code point, which it does not for
// surrogates.
func isUnicode(code uint32) bool {
	return code <= maxUnicode && (code < 0xD800 || code > 0xDFFF)
}

func isContinuation(c byte) bool { return c&0xC0 == 0x80 }

// continues tells whether a continuation byte is at position k, which may be
// the end of s.
func continues(s string, k int) bool { return k < len(s) && isContinuation(s[k]) }

// appendUTF8 writes a code point up to 2^31 in as few bytes as possible.
func appendUTF8(dst []byte, code uint32) []byte {
	if code < 0x80 {
		return append(dst, byte(code))
	}
	var buf [6]byte
	at := len(buf)
	// What the first byte can hold shrinks with each byte that follows it.
	for room := uint32(0x3f); ; room >>= 1 {
		if code <= room {
			at--
			buf[at] = byte(^room<<1 | code)
			return append(dst, buf[at:]...)
		}
		at--
		buf[at] = byte(0x80 | code&0x3f)
		code >>= 6
	}
}

// fromEnd turns a position that may count from the end into one from 0 on.
func fromEnd(pos int64, length int) int64 {
	switch {
	case pos >= 0:
		return pos
	case pos < -int64(length):
		return 0
	}
	return int64(length) + pos + 1
}

func utf8Len(c *Call) error {
	s, from, to, err := c.checkRange(1, -1)
	if err != nil {
		return err
	}
	strict := !c.Arg(4).Truthy()
	if from < 1 || from > int64(len(s))+1 {
		return c.ArgError(2, "initial position out of bounds")
	}
	if to > int64(len(s)) {
		return c.ArgError(3, "final position out of bounds")
	}
	if err := c.Step(int(max(to-from, 0)) / 8); err != nil {
		return err
	}
	n := int64(0)
	for k := int(from) - 1; k < int(to); n++ {
		_, length := decodeUTF8(s[k:], strict)
		if length == 0 {
			return c.Return(Nil, Int(int64(k)+1))
		}
		k += length
	}
	return c.Return(Int(n))
}

// checkRange reads a string and two positions in it, with their defaults.
func (c *Call) checkRange(from, to int64) (s string, i, j int64, err error) {
	if s, err = c.CheckString(1); err != nil {
		return s, 0, 0, err
	}
	if i, err = c.OptInt(2, from); err != nil {
		return s, 0, 0, err
	}
	if j, err = c.OptInt(3, to); err != nil {
		return s, 0, 0, err
	}
	return s, fromEnd(i, len(s)), fromEnd(j, len(s)), nil
}

func utf8Codepoint(c *Call) error {
	first, err := c.OptInt(2, 1)
	if err != nil {
		return err
	}
	s, from, to, err := c.checkRange(first, first)
	if err != nil {
		return err
	}
	if c.Arg(3).IsNil() {
		to = from
	}
	strict := !c.Arg(4).Truthy()
	if from < 1 {
		return c.ArgError(2, "out of bounds")
	}
	if to > int64(len(s)) {
		return c.ArgError(3, "out of bounds")
	}
	if from > to {
		return nil
	}
	if err := c.reserve(int(to-from)+1, "stack overflow (string slice too long)"); err != nil {
		return err
	}
	for k := int(from) - 1; k < int(to); {
		code, length := decodeUTF8(s[k:], strict)
		if length == 0 {
			return c.Errorf(errUTF8)
		}
		c.Push(Int(int64(code)))
		k += length
	}
	return nil
}

func utf8Char(c *Call) error {
	out := textBuffer{c: c}
	if err := out.grow(6 * c.NArgs()); err != nil {
		return err
	}
	for i := 1; i <= c.NArgs(); i++ {
		code, err := c.CheckInt(i)
		if err != nil {
			return err
		}
		if uint64(code) > maxCodepoint {
			return c.ArgError(i, "value out of range")
		}
		out.b = appendUTF8(out.b, uint32(code))
	}
	return out.finish()
}

func utf8Offset(c *Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	n, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	byDefault := int64(1)
	if n < 0 {
		byDefault = int64(len(s)) + 1
	}
	pos, err := c.OptInt(3, byDefault)
	if err != nil {
		return err
	}
	pos = fromEnd(pos, len(s)) - 1
	if pos < 0 || pos > int64(len(s)) {
		return c.ArgError(3, "position out of bounds")
	}
	if err := c.Step(len(s) / 8); err != nil {
		return err
	}
	k := int(pos)
	if n == 0 {
		for k > 0 && continues(s, k) {
			k--
		}
		return c.Return(Int(int64(k) + 1))
	}
	if continues(s, k) {
		return c.Errorf("initial position is a continuation byte")
	}
	if k, ok := moveCharacters(s, k, n); ok {
		return c.Return(Int(int64(k) + 1))
	}
	return c.Return(Nil)
}

// moveCharacters goes from the character at k to the one that is n-1 behind
// it, or -n before it when n is negative.
func moveCharacters(s string, k int, n int64) (int, bool) {
	for ; n < 0 && k > 0; n++ {
		for k--; k > 0 && continues(s, k); {
			k--
		}
	}
	if n < 0 {
		return 0, false
	}
	if n > 0 {
		n--
	}
	for ; n > 0 && k < len(s); n-- {
		for k++; continues(s, k); {
			k++
		}
	}
	return k, n == 0
}

// The iterators that utf8.codes returns.
var (
	utf8Strict = newShared("utf8.codes.strict", func(c *Call) error { return nextCode(c, true) })
	utf8Lax    = newShared("utf8.codes.lax", func(c *Call) error { return nextCode(c, false) })
)

func utf8Codes(c *Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	if continues(s, 0) {
		return c.ArgError(1, errUTF8)
	}
	iterator := utf8Strict
	if c.Arg(2).Truthy() {
		iterator = utf8Lax
	}
	return c.Return(iterator.Value(), c.Arg(1), Int(0))
}

// nextCode gives the position and the code of the character that follows the
// one at the position given last.
func nextCode(c *Call, strict bool) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	pos, _ := toInteger(c.Arg(2))
	if uint64(pos) >= uint64(len(s)) {
		return nil
	}
	k := int(pos)
	for continues(s, k) {
		k++
	}
	if k >= len(s) {
		return nil
	}
	code, length := decodeUTF8(s[k:], strict)
	if length == 0 || continues(s, k+length) {
		return c.Errorf(errUTF8)
	}
	return c.Return(Int(int64(k)+1), Int(int64(code)))
}
