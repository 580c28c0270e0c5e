package lua

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// stream is an open file of a script. Files read and write through buffers of
// their own; the standard streams write straight to the host's writers, which
// the host may buffer, so that what print writes stays in order.
type stream struct {
	// file is nil when the host's reader or writer is no file.
	file *os.File
	// in and out are nil for what the stream cannot do at all.
	in *bufio.Reader
	// source is what in will read, until something is read: a buffer that few
	// scripts need would be most of what a fresh state costs.
	source  io.Reader
	out     *bufio.Writer
	direct  io.Writer // instead of out: the host's writer
	flushes flushMode
	// finish ends what stands behind the stream and gives the results of
	// close; nil for standard streams, which stay open.
	finish func(failure error) []Value
	closed bool
	// errors tells the error output from the output.
	errors bool
	// failure is the first error of reading since the last read began.
	failure error
}

// flushMode says when what was written leaves the buffer.
type flushMode uint8

const (
	flushFull flushMode = iota
	flushLines
	flushAlways
)

// newFileStream wraps a file, which the stream closes, for reading, writing or
// both.
func newFileStream(f *os.File, reads, writes bool) *stream {
	s := &stream{file: f}
	if reads {
		s.in = bufio.NewReader(f)
	}
	if writes {
		s.out = bufio.NewWriter(f)
	}
	s.finish = func(failure error) []Value {
		return fileResult(errors.Join(failure, f.Close()), "")
	}
	return s
}

// newInputStream wraps the host's standard input.
func newInputStream(r io.Reader) *stream {
	s := &stream{in: new(bufio.Reader), source: r}
	s.file, _ = r.(*os.File)
	return s
}

// newOutputStream wraps the host's standard output or error output.
func newOutputStream(w io.Writer) *stream {
	s := &stream{direct: w}
	s.file, _ = w.(*os.File)
	return s
}

// openFile opens a file in one of C's modes, which was checked.
func openFile(name, mode string) (*stream, error) {
	flags := map[byte]int{'r': os.O_RDONLY, 'w': os.O_WRONLY | os.O_CREATE | os.O_TRUNC, 'a': os.O_WRONLY | os.O_CREATE | os.O_APPEND}[mode[0]]
	both := strings.Contains(mode, "+")
	if both {
		flags = flags&^os.O_WRONLY | os.O_RDWR
	}
	f, err := os.OpenFile(name, flags, 0o666)
	if err != nil {
		return nil, err
	}
	return newFileStream(f, both || mode[0] == 'r', both || mode[0] != 'r'), nil
}

// isFileMode tells whether C accepts the mode: r, w or a, maybe +, any b.
func isFileMode(mode string) bool {
	if mode == "" || strings.IndexByte("rwa", mode[0]) < 0 {
		return false
	}
	return strings.Trim(strings.TrimPrefix(mode[1:], "+"), "b") == ""
}

// beginRead prepares for reading, also after writing.
func (s *stream) beginRead() error {
	s.failure = nil
	if s.source != nil {
		s.in.Reset(s.source)
		s.source = nil
	}
	return s.flush()
}

// flush writes out what is buffered.
func (s *stream) flush() error {
	if s.out != nil {
		return s.out.Flush()
	}
	if w, ok := s.direct.(interface{ Flush() error }); ok {
		return w.Flush()
	}
	return nil
}

// write writes text.
func (s *stream) write(text string) error {
	w := s.direct
	if s.out != nil {
		if err := s.giveBack(); err != nil {
			return err
		}
		w = s.out
	}
	if w == nil {
		return syscall.EBADF
	}
	if _, err := io.WriteString(w, text); err != nil {
		if s.out != nil {
			s.out.Reset(s.file) // C forgets an error once it was reported
		}
		return err
	}
	if s.flushes == flushAlways || s.flushes == flushLines && strings.Contains(text, "\n") {
		return s.flush()
	}
	return nil
}

// giveBack moves the file back to where the script has read to.
func (s *stream) giveBack() error {
	if s.in == nil || s.in.Buffered() == 0 {
		return nil
	}
	_, err := s.file.Seek(int64(-s.in.Buffered()), io.SeekCurrent)
	s.in.Reset(s.file)
	return err
}

// seek moves to an offset from the start, from here or from the end.
func (s *stream) seek(offset int64, whence int) (int64, error) {
	if s.file == nil {
		return 0, syscall.ESPIPE
	}
	if err := s.flush(); err != nil {
		return 0, err
	}
	if s.in != nil {
		if whence == io.SeekCurrent {
			offset -= int64(s.in.Buffered())
		}
		pos, err := s.file.Seek(offset, whence)
		if err == nil {
			s.in.Reset(s.file)
		}
		return pos, err
	}
	return s.file.Seek(offset, whence)
}

// close ends the stream and gives the results of the function close.
func (s *stream) close() []Value {
	if s.finish == nil {
		return []Value{Nil, String("cannot close standard file")}
	}
	s.closed = true
	return s.finish(s.flush())
}

// note keeps the first error of reading; the end of the file is none.
func (s *stream) note(err error) {
	if err != nil && !errors.Is(err, io.EOF) && s.failure == nil {
		s.failure = err
	}
}

// peek gives the next byte without taking it, or -1 at the end.
func (s *stream) peek() int {
	b, err := s.in.Peek(1)
	if len(b) == 0 {
		s.note(err)
		return -1
	}
	return int(b[0])
}

// skip takes the byte that peek gave.
func (s *stream) skip() { _, _ = s.in.Discard(1) }

// fileResult gives true, or nil with the message and number of an error, as
// library functions return them. Name, if any, goes before the message.
func fileResult(err error, name string) []Value {
	if err == nil {
		return []Value{Bool(true)}
	}
	message, number := systemError(err)
	if name != "" {
		message = name + ": " + message
	}
	return []Value{Nil, String(message), Int(int64(number))}
}

// systemError words an error of the operating system as C does.
func systemError(err error) (message string, number int) {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		message = errno.Error()
		return strings.ToUpper(message[:1]) + message[1:], int(errno)
	case errors.Is(err, fs.ErrClosed):
		return "Bad file descriptor", int(syscall.EBADF)
	}
	return err.Error(), 0
}

// bufferedCommand collects what a command writes, for the host's writer.
type bufferedCommand struct {
	bytes.Buffer
	to io.Writer
}

// deliver writes the collected output after the command has ended.
func (b *bufferedCommand) deliver() error {
	_, err := b.WriteTo(b.to)
	return err
}

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
