package lua

import (
	"math"
	"strings"
)

// raise turns a mistake in a format into the error that Lua raises.
func (e *layoutError) raise(c *Call) error {
	if e.argument {
		return c.ArgError(1, e.message)
	}
	return c.Errorf("%s", e.message)
}

func stringPack(c *Call) error {
	format, err := c.CheckString(1)
	if err != nil {
		return err
	}
	p := packer{textBuffer: textBuffer{c: c}, layout: newLayout(format)}
	for arg := 1; !p.done(); {
		opt, mistake := p.next(len(p.b))
		if mistake != nil {
			return mistake.raise(c)
		}
		if err := c.Step(1); err != nil {
			return err
		}
		p.b = appendFill(p.b, 0, opt.pad)
		switch opt.kind {
		case packNothing, packAligning:
		case packPadding:
			p.b = append(p.b, 0)
		default:
			arg++
			if err := p.packValue(opt, arg); err != nil {
				return err
			}
		}
	}
	return p.finish()
}

// packer appends the arguments of string.pack to a buffer.
type packer struct {
	textBuffer
	layout
}

// packValue appends one argument.
func (p *packer) packValue(opt packOption, arg int) error {
	switch opt.kind {
	case packSigned, packUnsigned:
		n, err := p.c.CheckInt(arg)
		if err != nil {
			return err
		}
		return p.packInteger(opt, arg, n)
	case packFloat32:
		f, err := p.c.CheckFloat(arg)
		p.b = p.appendPacked(p.b, uint64(math.Float32bits(float32(f))), 4, 0)
		return err
	case packFloat64:
		f, err := p.c.CheckFloat(arg)
		p.b = p.appendPacked(p.b, math.Float64bits(f), 8, 0)
		return err
	}
	s, err := p.c.CheckString(arg)
	if err != nil {
		return err
	}
	return p.packString(opt, arg, s)
}

func (p *packer) packInteger(opt packOption, arg int, n int64) error {
	if opt.kind == packSigned {
		if opt.size < intSize {
			if limit := int64(1) << (8*opt.size - 1); n < -limit || n >= limit {
				return p.c.ArgError(arg, "integer overflow")
			}
		}
		p.b = p.appendPacked(p.b, uint64(n), opt.size, byte(n>>63))
		return nil
	}
	if opt.size < intSize && uint64(n) >= 1<<(8*opt.size) {
		return p.c.ArgError(arg, "unsigned overflow")
	}
	p.b = p.appendPacked(p.b, uint64(n), opt.size, 0)
	return nil
}

func (p *packer) packString(opt packOption, arg int, s string) error {
	switch opt.kind {
	case packFixed:
		if len(s) > opt.size {
			return p.c.ArgError(arg, "string longer than given size")
		}
		if err := p.c.Alloc(opt.size); err != nil {
			return err
		}
		p.b = appendFill(append(p.b, s...), 0, opt.size-len(s))
		return nil
	case packCounted:
		if opt.size < intSize && uint64(len(s)) >= 1<<(8*opt.size) {
			return p.c.ArgError(arg, "string length does not fit in given size")
		}
		p.b = p.appendPacked(p.b, uint64(len(s)), opt.size, 0)
	case packZero:
		if strings.IndexByte(s, 0) >= 0 {
			return p.c.ArgError(arg, "string contains zeros")
		}
	}
	if err := p.c.Alloc(len(s) + 1); err != nil {
		return err
	}
	p.b = append(p.b, s...)
	if opt.kind == packZero {
		p.b = append(p.b, 0)
	}
	return nil
}

func stringPacksize(c *Call) error {
	format, err := c.CheckString(1)
	if err != nil {
		return err
	}
	l := newLayout(format)
	total := 0
	for !l.done() {
		opt, mistake := l.next(total)
		if mistake != nil {
			return mistake.raise(c)
		}
		if err := c.Step(1); err != nil {
			return err
		}
		if opt.kind == packCounted || opt.kind == packZero {
			return c.ArgError(1, "variable-length format")
		}
		if total > maxPackedSize-opt.size-opt.pad {
			return c.ArgError(1, "format result too large")
		}
		total += opt.size + opt.pad
	}
	return c.Return(Int(int64(total)))
}

func stringUnpack(c *Call) error {
	format, err := c.CheckString(1)
	if err != nil {
		return err
	}
	data, err := c.CheckString(2)
	if err != nil {
		return err
	}
	init, err := c.OptInt(3, 1)
	if err != nil {
		return err
	}
	pos := startPosition(init, len(data)) - 1
	if pos > len(data) {
		return c.ArgError(3, "initial position out of string")
	}
	for l := newLayout(format); !l.done(); {
		opt, mistake := l.next(pos)
		if mistake != nil {
			return mistake.raise(c)
		}
		if opt.pad+opt.size > len(data)-pos {
			return c.ArgError(2, "data string too short")
		}
		if err := c.Step(1); err != nil {
			return err
		}
		pos += opt.pad
		if pos, err = unpackValue(c, &l, opt, data, pos); err != nil {
			return err
		}
	}
	c.Push(Int(int64(pos + 1)))
	return nil
}

// unpackValue pushes the value at pos, if the option has one, and gives the
// position after it.
func unpackValue(c *Call, l *layout, opt packOption, data string, pos int) (int, error) {
	end := pos + opt.size
	switch opt.kind {
	case packSigned, packUnsigned:
		n, ok := l.unpack(data[pos:end], opt.kind == packSigned)
		if !ok {
			return 0, c.Errorf("%d-byte integer does not fit into Lua Integer", opt.size)
		}
		c.Push(Int(n))
	case packFloat32:
		bits, _ := l.unpack(data[pos:end], false)
		c.Push(Float(float64(math.Float32frombits(uint32(bits)))))
	case packFloat64:
		bits, _ := l.unpack(data[pos:end], false)
		c.Push(Float(math.Float64frombits(uint64(bits))))
	case packFixed:
		return end, c.pushString(data[pos:end])
	case packCounted:
		n, ok := l.unpack(data[pos:end], false)
		if !ok {
			return 0, c.Errorf("%d-byte integer does not fit into Lua Integer", opt.size)
		}
		if uint64(n) > uint64(len(data)-end) {
			return 0, c.ArgError(2, "data string too short")
		}
		return end + int(n), c.pushString(data[end : end+int(n)])
	case packZero:
		n := strings.IndexByte(data[pos:], 0)
		if n < 0 {
			return 0, c.ArgError(2, "unfinished string for format 'z'")
		}
		return pos + n + 1, c.pushString(data[pos : pos+n])
	}
	return end, nil
}

// packKind tells how string.pack and string.unpack treat an option.
type packKind uint8

const (
	packNothing packKind = iota // settings and spaces
	packSigned
	packUnsigned
	packFloat32
	packFloat64
	packFixed    // string of a fixed size
	packCounted  // string with its length before it
	packZero     // string with a zero after it
	packPadding  // one byte of padding
	packAligning // padding up to the alignment of the next option
)

const (
	maxIntSize     = 16 // largest integer that can be packed, in bytes
	intSize        = 8  // size of a Lua integer
	maxAlignment   = 8  // alignment that "!" alone asks for
	maxPackedSize  = math.MaxInt32
	littleMachines = true // "=" and the default mean little endian, everywhere
)

// layout reads a format string of pack and unpack option by option.
type layout struct {
	format   string
	little   bool
	maxAlign int
}

// packOption is one option: what it is, its size in bytes, and the padding
// that its alignment needs before it.
type packOption struct {
	kind packKind
	size int
	pad  int
}

// layoutError is a mistake in the format. Those about alignment belong to the
// argument, the others are plain errors.
type layoutError struct {
	message  string
	argument bool
}

func (e *layoutError) Error() string { return e.message }

func newLayout(format string) layout {
	// The reference reads the format as a C string.
	if end := strings.IndexByte(format, 0); end >= 0 {
		format = format[:end]
	}
	return layout{format: format, little: littleMachines, maxAlign: 1}
}

func (l *layout) done() bool { return l.format == "" }

// next reads an option that will stand at offset.
func (l *layout) next(offset int) (packOption, *layoutError) {
	kind, size, err := l.option()
	if err != nil {
		return packOption{}, err
	}
	align := size
	if kind == packAligning {
		if align, err = l.alignmentOfNext(); err != nil {
			return packOption{}, err
		}
	}
	opt := packOption{kind: kind, size: size}
	if align > 1 && kind != packFixed {
		align = min(align, l.maxAlign)
		if align&(align-1) != 0 {
			return opt, &layoutError{"format asks for alignment not power of 2", true}
		}
		opt.pad = (align - offset&(align-1)) & (align - 1)
	}
	return opt, nil
}

func (l *layout) alignmentOfNext() (int, *layoutError) {
	invalid := &layoutError{"invalid next option for option 'X'", true}
	if l.done() {
		return 0, invalid
	}
	kind, size, err := l.option()
	if err == nil && (kind == packFixed || size == 0) {
		err = invalid
	}
	return size, err
}

// option reads the next option without regard to alignment.
func (l *layout) option() (kind packKind, size int, err *layoutError) {
	c := l.format[0]
	l.format = l.format[1:]
	if kind, size = nativeOption(c); size > 0 {
		return kind, size, nil
	}
	switch c {
	case 'i':
		size, err = l.limitedSize(4)
		return packSigned, size, err
	case 'I':
		size, err = l.limitedSize(4)
		return packUnsigned, size, err
	case 's':
		size, err = l.limitedSize(8)
		return packCounted, size, err
	case 'c':
		if size = l.number(-1); size < 0 {
			err = &layoutError{message: "missing size for format option 'c'"}
		}
		return packFixed, size, err
	case 'z':
		return packZero, 0, nil
	case 'X':
		return packAligning, 0, nil
	case ' ':
	case '<':
		l.little = true
	case '>':
		l.little = false
	case '=':
		l.little = littleMachines
	case '!':
		l.maxAlign, err = l.limitedSize(maxAlignment)
	default:
		err = &layoutError{message: "invalid format option '" + string([]byte{c}) + "'"}
	}
	return packNothing, 0, err
}

// nativeOption gives the kind and size of an option whose size is fixed, or size
// 0 for others.
func nativeOption(c byte) (kind packKind, size int) {
	switch c {
	case 'b':
		return packSigned, 1
	case 'B':
		return packUnsigned, 1
	case 'h':
		return packSigned, 2
	case 'H':
		return packUnsigned, 2
	case 'l', 'j':
		return packSigned, 8
	case 'L', 'J', 'T':
		return packUnsigned, 8
	case 'f':
		return packFloat32, 4
	case 'd', 'n':
		return packFloat64, 8
	case 'x':
		return packPadding, 1
	}
	return packNothing, 0
}

// number reads a decimal number, or gives the default when there is none. It
// stops before a digit that could take it past the largest size.
func (l *layout) number(byDefault int) int {
	if l.done() || !isDecimalDigit(l.format[0]) {
		return byDefault
	}
	n := 0
	for !l.done() && isDecimalDigit(l.format[0]) && n <= (maxPackedSize-9)/10 {
		n = n*10 + int(l.format[0]-'0')
		l.format = l.format[1:]
	}
	return n
}

func (l *layout) limitedSize(byDefault int) (int, *layoutError) {
	n := l.number(byDefault)
	if n < 1 || n > maxIntSize {
		return 0, &layoutError{message: "integral size (" + formatInt(int64(n)) + ") out of limits [1,16]"}
	}
	return n, nil
}

// appendPacked writes the low bytes of n; bytes past those of n repeat fill.
func (l *layout) appendPacked(dst []byte, n uint64, size int, fill byte) []byte {
	for k := range size {
		at := k
		if !l.little {
			at = size - 1 - k
		}
		if at < intSize {
			dst = append(dst, byte(n>>(8*at)))
		} else {
			dst = append(dst, fill)
		}
	}
	return dst
}

// unpack reads an integer of len(data) bytes; false when it has more bits
// than a Lua integer.
func (l *layout) unpack(data string, signed bool) (int64, bool) {
	size := len(data)
	at := func(k int) byte {
		if l.little {
			return data[k]
		}
		return data[size-1-k]
	}
	var n uint64
	for k := min(size, intSize) - 1; k >= 0; k-- {
		n = n<<8 | uint64(at(k))
	}
	if size < intSize {
		if signed {
			shift := 64 - 8*uint(size)
			return int64(n<<shift) >> shift, true
		}
		return int64(n), true
	}
	var fill byte
	if signed && int64(n) < 0 {
		fill = 0xff
	}
	for k := intSize; k < size; k++ {
		if at(k) != fill {
			return 0, false
		}
	}
	return int64(n), true
}
