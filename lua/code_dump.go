package lua

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Binary chunks: the header of the reference (so that tools know what they
// see), a version of our own, then one function. Integers are varints, strings
// and lists carry their length. The content is private to this engine and
// checked when read.
const (
	binarySignature = "\x1bLua"
	binaryVersion   = "\x54\x00\x19\x93\r\n\x1a\n\x04\x08\x08" +
		"\x78\x56\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x28\x77\x40" + "Luanette\x01"
)

// dumper writes code.
type dumper struct {
	buf   []byte
	strip bool
}

// dump returns p as a binary chunk; strip leaves out what only messages need.
func (p *Proto) dump(strip bool) []byte {
	d := dumper{buf: []byte(binarySignature + binaryVersion), strip: strip}
	d.proto(p, "")
	return d.buf
}

func (d *dumper) int(n int)     { d.buf = binary.AppendVarint(d.buf, int64(n)) }
func (d *dumper) word(n uint64) { d.buf = binary.LittleEndian.AppendUint64(d.buf, n) }

func (d *dumper) string(s string) {
	d.int(len(s))
	d.buf = append(d.buf, s...)
}

func (d *dumper) bool(b bool) {
	if b {
		d.buf = append(d.buf, 1)
	} else {
		d.buf = append(d.buf, 0)
	}
}

func (d *dumper) proto(p *Proto, outer string) {
	source := p.source
	if d.strip || source == outer {
		source = ""
	}
	d.string(source)
	d.int(int(p.line))
	d.int(int(p.lastLine))
	d.int(int(p.params))
	d.bool(p.vararg)
	d.int(int(p.maxStack))
	d.int(len(p.hints))
	d.int(len(p.code))
	for _, i := range p.code {
		d.word(uint64(i))
	}
	d.int(len(p.constants))
	for _, v := range p.constants {
		d.constant(v)
	}
	d.int(len(p.upvalues))
	for _, u := range p.upvalues {
		d.bool(u.inStack)
		d.int(int(u.index))
		d.int(int(u.kind))
		if d.strip {
			u.name = ""
		}
		d.string(u.name)
	}
	d.int(len(p.protos))
	for _, q := range p.protos {
		d.proto(q, p.source)
	}
	d.debug(p)
}

func (d *dumper) debug(p *Proto) {
	if d.strip {
		d.int(0)
		d.int(0)
		return
	}
	d.int(len(p.lines))
	for _, n := range p.lines {
		d.int(int(n))
	}
	d.int(len(p.locals))
	for _, l := range p.locals {
		d.string(l.name)
		d.int(int(l.start))
		d.int(int(l.end))
		d.int(int(l.reg))
	}
}

func (d *dumper) constant(v Value) {
	d.buf = append(d.buf, byte(v.Kind()))
	switch v.Kind() {
	case KindBool:
		d.bool(v.n != 0)
	case KindInt, KindFloat:
		d.word(v.n)
	case KindString:
		d.string(v.str().s)
	}
}

// undumper reads code. The first problem sticks.
type undumper struct {
	src   string
	pos   int
	bad   bool
	state *State
}

// undump reads a binary chunk.
func (s *State) undump(src, chunkname string) (*Proto, error) {
	u := undumper{src: src, state: s}
	header := binarySignature + binaryVersion
	if len(src) < len(header) || src[:len(header)] != header {
		return nil, Throw(String(chunkID(chunkname) + ": bad binary format (truncated chunk)"))
	}
	if err := s.alloc(len(src) * 2); err != nil {
		return nil, err
	}
	u.pos = len(header)
	p := u.proto("=?", 0)
	if u.bad {
		return nil, Throw(String(chunkID(chunkname) + ": bad binary format (truncated chunk)"))
	}
	if err := p.verify(); err != nil {
		return nil, Throw(String(chunkID(chunkname) + ": bad binary format (" + err.Error() + ")"))
	}
	return p, nil
}

func (u *undumper) int() int {
	n, size := binary.Varint([]byte(u.src[u.pos:min(len(u.src), u.pos+binary.MaxVarintLen64)]))
	if size <= 0 {
		u.bad = true
		return 0
	}
	u.pos += size
	return int(n)
}

// count reads the length of a list whose elements take at least size bytes.
func (u *undumper) count(size int) int {
	n := u.int()
	if n < 0 || n > (len(u.src)-u.pos)/size {
		u.bad = true
		return 0
	}
	return n
}

func (u *undumper) byte() byte {
	if u.pos >= len(u.src) {
		u.bad = true
		return 0
	}
	u.pos++
	return u.src[u.pos-1]
}

func (u *undumper) word() uint64 {
	if len(u.src)-u.pos < 8 {
		u.bad = true
		return 0
	}
	u.pos += 8
	return binary.LittleEndian.Uint64([]byte(u.src[u.pos-8 : u.pos]))
}

func (u *undumper) string() string {
	n := u.count(1)
	u.pos += n
	return u.src[u.pos-n : u.pos]
}

func (u *undumper) proto(outer string, depth int) *Proto {
	p := &Proto{source: u.string()}
	if p.source == "" {
		p.source = outer
	}
	p.line, p.lastLine = int32(u.int()), int32(u.int())
	p.params, p.vararg, p.maxStack = uint8(u.int()), u.byte() != 0, uint8(u.int())
	hints := u.int()
	if hints < 1 || hints > 1<<16 || depth > maxNesting {
		u.bad = true
		return p
	}
	for range u.count(8) {
		p.code = append(p.code, instruction(u.word()))
	}
	p.hints = make([]uint32, min(hints, len(p.code)+1))
	for range u.count(1) {
		p.constants = append(p.constants, u.constant())
	}
	for range u.count(4) {
		d := upvalueDesc{inStack: u.byte() != 0, index: uint8(u.int()), kind: varKind(u.int())}
		d.name = u.string()
		p.upvalues = append(p.upvalues, d)
	}
	for range u.count(10) {
		if u.bad {
			return p
		}
		p.protos = append(p.protos, u.proto(p.source, depth+1))
	}
	u.debug(p)
	return p
}

// debug reads what only messages need.
func (u *undumper) debug(p *Proto) {
	for range u.count(1) {
		p.lines = append(p.lines, int32(u.int()))
	}
	for range u.count(4) {
		l := localVar{name: u.string(), start: int32(u.int()), end: int32(u.int()), reg: uint8(u.int())}
		p.locals = append(p.locals, l)
	}
}

func (u *undumper) constant() Value {
	switch Kind(u.byte()) {
	case KindNil:
		return Nil
	case KindBool:
		return Bool(u.byte() != 0)
	case KindInt:
		return Int(int64(u.word()))
	case KindFloat:
		return Float(math.Float64frombits(u.word()))
	case KindString:
		return Value{unsafe.Pointer(u.state.intern(u.string())), 0}
	}
	u.bad = true
	return Nil
}
