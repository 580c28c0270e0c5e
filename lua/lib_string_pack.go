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
	l := newLayout(format)
	out := textBuffer{c: c}
	for arg := 1; !l.done(); {
		opt, mistake := l.next(len(out.b))
		if mistake != nil {
			return mistake.raise(c)
		}
		if err := c.Step(1); err != nil {
			return err
		}
		out.b = appendFill(out.b, 0, opt.pad)
		switch opt.kind {
		case packNothing, packAligning:
		case packPadding:
			out.b = append(out.b, 0)
		default:
			arg++
			if out.b, err = packValue(c, &l, opt, arg, out.b); err != nil {
				return err
			}
		}
	}
	return out.finish()
}

// packValue appends one argument.
func packValue(c *Call, l *layout, opt packOption, arg int, out []byte) ([]byte, error) {
	switch opt.kind {
	case packSigned, packUnsigned:
		n, err := c.CheckInt(arg)
		if err != nil {
			return out, err
		}
		return packInteger(c, l, opt, arg, out, n)
	case packFloat32:
		f, err := c.CheckFloat(arg)
		return l.appendPacked(out, uint64(math.Float32bits(float32(f))), 4, 0), err
	case packFloat64:
		f, err := c.CheckFloat(arg)
		return l.appendPacked(out, math.Float64bits(f), 8, 0), err
	}
	s, err := c.CheckString(arg)
	if err != nil {
		return out, err
	}
	return packString(c, l, opt, arg, out, s)
}

func packInteger(c *Call, l *layout, opt packOption, arg int, out []byte, n int64) ([]byte, error) {
	if opt.kind == packSigned {
		if opt.size < intSize {
			if limit := int64(1) << (8*opt.size - 1); n < -limit || n >= limit {
				return out, c.ArgError(arg, "integer overflow")
			}
		}
		return l.appendPacked(out, uint64(n), opt.size, byte(n>>63)), nil
	}
	if opt.size < intSize && uint64(n) >= 1<<(8*opt.size) {
		return out, c.ArgError(arg, "unsigned overflow")
	}
	return l.appendPacked(out, uint64(n), opt.size, 0), nil
}

func packString(c *Call, l *layout, opt packOption, arg int, out []byte, s string) ([]byte, error) {
	switch opt.kind {
	case packFixed:
		if len(s) > opt.size {
			return out, c.ArgError(arg, "string longer than given size")
		}
		if err := c.Alloc(opt.size); err != nil {
			return out, err
		}
		return appendFill(append(out, s...), 0, opt.size-len(s)), nil
	case packCounted:
		if opt.size < intSize && uint64(len(s)) >= 1<<(8*opt.size) {
			return out, c.ArgError(arg, "string length does not fit in given size")
		}
		out = l.appendPacked(out, uint64(len(s)), opt.size, 0)
	case packZero:
		if strings.IndexByte(s, 0) >= 0 {
			return out, c.ArgError(arg, "string contains zeros")
		}
	}
	if err := c.Alloc(len(s) + 1); err != nil {
		return out, err
	}
	out = append(out, s...)
	if opt.kind == packZero {
		out = append(out, 0)
	}
	return out, nil
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
