package lua

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"syscall"
)

// maxNumeral is the length of the longest numeral that read accepts.
const maxNumeral = 200

// readFormats reads from a stream what the formats ask for and pushes it. The
// first format is argument number first, for error messages.
func readFormats(c *Call, s *stream, formats []Value, first int) error {
	if err := s.beginRead(); err != nil {
		return c.Return(fileResult(err, "")...)
	}
	if len(formats) == 0 {
		formats = []Value{lineFormat.value()}
	}
	if err := c.reserve(len(formats), "stack overflow (too many arguments)"); err != nil {
		return err
	}
	for i, format := range formats {
		v, ok, err := readFormat(c, s, format, first+i)
		if err != nil {
			return err
		}
		if s.failure != nil {
			return c.Return(fileResult(s.failure, "")...)
		}
		if !ok {
			c.Push(Nil)
			return nil
		}
		c.Push(v)
	}
	return nil
}

var lineFormat = newConstant("l")

// readFormat reads one value; ok is false at the end of the file.
func readFormat(c *Call, s *stream, format Value, arg int) (v Value, ok bool, err error) {
	kind, n := byte('c'), int64(0)
	if format.isNumber() {
		if n, ok = toInteger(format); !ok {
			return Nil, false, c.ArgError(arg, "number has no integer representation")
		}
	} else if kind, err = formatKind(c, format, arg); err != nil {
		return Nil, false, err
	}
	if s.in == nil {
		s.note(syscall.EBADF)
		return Nil, false, nil
	}
	switch kind {
	case 'l', 'L':
		return readLine(c, s, kind == 'l')
	case 'n':
		v, ok = readNumber(s)
		return v, ok, nil
	case 'a':
		v, _, err = readChars(c, s, -1)
		return v, true, err
	}
	if n == 0 {
		return String(""), s.peek() >= 0, nil
	}
	return readChars(c, s, n)
}

// formatKind gives the letter of a format that is no number of bytes.
func formatKind(c *Call, format Value, arg int) (byte, error) {
	text, ok := format.AsString()
	if !ok {
		return 0, c.ArgError(arg, "string expected, got "+c.state.typeName(format))
	}
	text = strings.TrimPrefix(text, "*") // older versions had it
	if text == "" || strings.IndexByte("lLna", text[0]) < 0 {
		return 0, c.ArgError(arg, "invalid format")
	}
	return text[0], nil
}

// readLine reads up to the end of the line, which chop leaves out.
func readLine(c *Call, s *stream, chop bool) (Value, bool, error) {
	line, err := s.in.ReadSlice('\n')
	if err == nil {
		if chop {
			line = line[:len(line)-1]
		}
		v, err := c.NewString(line)
		return v, true, err
	}
	out := textBuffer{c: c}
	for {
		if err := out.add(string(line)); err != nil {
			return Nil, false, err
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		line, err = s.in.ReadSlice('\n')
	}
	s.note(err)
	some := len(out.b) > 0
	if err == nil && chop {
		out.b = out.b[:len(out.b)-1]
	}
	v, err := out.value()
	return v, some, err
}

// readChunk is how many bytes are asked for at once.
const readChunk = 64 << 10

// readChars reads n bytes, or all that is left when n is negative. It makes
// room as the bytes come, not for what was asked.
func readChars(c *Call, s *stream, n int64) (Value, bool, error) {
	out := textBuffer{c: c}
	for n < 0 || int64(len(out.b)) < n {
		want := readChunk
		if n >= 0 {
			want = int(min(n-int64(len(out.b)), readChunk))
		}
		if room := cap(out.b) - len(out.b); room < min(want, 512) {
			if err := out.grow(want); err != nil {
				return Nil, false, err
			}
		}
		want = min(want, cap(out.b)-len(out.b))
		got, err := io.ReadFull(s.in, out.b[len(out.b):len(out.b)+want])
		out.b = out.b[:len(out.b)+got]
		if err != nil {
			if err != io.ErrUnexpectedEOF {
				s.note(err)
			}
			break
		}
	}
	some := len(out.b) > 0
	v, err := out.value()
	return v, some, err
}

// numeralReader takes from a stream the longest prefix of a numeral.
type numeralReader struct {
	s    *stream
	text []byte
	over bool // the numeral is too long
}

// take takes the next byte when it is one of those wanted.
func (r *numeralReader) take(wanted func(c byte) bool) bool {
	c := r.s.peek()
	if c < 0 || !wanted(byte(c)) || r.over {
		return false
	}
	if len(r.text) >= maxNumeral {
		r.over = true
		return false
	}
	r.s.skip()
	r.text = append(r.text, byte(c))
	return true
}

func (r *numeralReader) takeOne(of string) bool {
	return r.take(func(c byte) bool { return strings.IndexByte(of, c) >= 0 })
}

func (r *numeralReader) takeDigits(isDigit func(c byte) bool) (n int) {
	for r.take(isDigit) {
		n++
	}
	return n
}

// readNumber reads a numeral. What it took stays taken even when it turns out
// to be no number.
func readNumber(s *stream) (Value, bool) {
	r := numeralReader{s: s}
	for c := s.peek(); c >= 0 && isSpaceByte(byte(c)); c = s.peek() {
		s.skip()
	}
	r.takeOne("+-")
	digits, isDigit, exponent := 0, isDecimalDigit, "eE"
	if r.takeOne("0") {
		if r.takeOne("xX") {
			isDigit, exponent = isHexDigit, "pP"
		} else {
			digits = 1
		}
	}
	digits += r.takeDigits(isDigit)
	if r.takeOne(".") {
		digits += r.takeDigits(isDigit)
	}
	if digits > 0 && r.takeOne(exponent) {
		r.takeOne("+-")
		r.takeDigits(isDecimalDigit)
	}
	if r.over {
		return Nil, false
	}
	return parseNumber(string(r.text))
}
