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
