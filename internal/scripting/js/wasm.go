package js

import (
	"errors"
	"fmt"
)

// The parts of the WebAssembly binary format that rewriting needs.
const (
	sectionCustom   = 0
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionGlobal   = 6
	sectionExport   = 7
	sectionElement  = 9
	sectionCode     = 10

	wasmHeader = 8 // magic and version
)

const (
	wasmI32     = 0x7f
	wasmI64     = 0x7e
	wasmFunc    = 0x60
	wasmFuncref = 0x70
)

// section is one section of a module: its kind and its bytes, without the length.
type section struct {
	id   byte
	body []byte
}

// splitSections splits a module into its sections, in order.
func splitSections(module []byte) ([]section, error) {
	if len(module) < wasmHeader || string(module[:4]) != "\x00asm" {
		return nil, errors.New("not a WebAssembly module")
	}
	r := reader{b: module, at: wasmHeader}
	var list []section
	for r.err == nil && r.at < len(r.b) {
		id := r.byte()
		list = append(list, section{id, r.bytes(int(r.u32()))})
	}
	return list, r.err
}

// reader reads module bytes. After the first overrun it stops and records the error, so
// that callers check once at the end.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) byte() byte {
	if r.err != nil || r.at >= len(r.b) {
		r.fail("unexpected end of module")
		return 0
	}
	c := r.b[r.at]
	r.at++
	return c
}

func (r *reader) bytes(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b)-r.at {
		r.fail("unexpected end of module")
		return nil
	}
	b := r.b[r.at : r.at+n]
	r.at += n
	return b
}

// u32 reads an unsigned LEB128 number.
func (r *reader) u32() uint32 {
	var v uint32
	for shift := uint(0); shift < 35; shift += 7 {
		c := r.byte()
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	r.fail("number too long")
	return 0
}

// skipNumber skips a LEB128 number of any width.
func (r *reader) skipNumber() {
	for r.err == nil && r.byte() >= 0x80 {
	}
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("offset %d: "+format, append([]any{r.at}, args...)...)
	}
}

// unsigned encodes v as unsigned LEB128.
func unsigned(v uint32) []byte {
	var b []byte
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// signed encodes v as signed LEB128.
func signed(v int32) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// sized prepends the length of b to it.
func sized(b []byte) []byte { return append(unsigned(uint32(len(b))), b...) }

// extend adds n entries, given as bytes, to a section that is a counted list.
func extend(body []byte, n uint32, entries ...byte) ([]byte, error) {
	r := reader{b: body}
	count := r.u32()
	if r.err != nil {
		return nil, r.err
	}
	out := append(unsigned(count+n), body[r.at:]...)
	return append(out, entries...), nil
}

// Opcodes that have immediates, or that rewriting emits.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableSet     = 0x26
	opI64Load      = 0x29
	opFirstMemory  = 0x28
	opLastMemory   = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Eqz       = 0x45
	opI32LtU       = 0x49
	opI32Add       = 0x6a
	opDrop         = 0x1a
	opSelect       = 0x1b
	opFirstPlain   = 0x45
	opLastPlain    = 0xc4
	opPrefixed     = 0xfc

	blockVoid = 0x40
)

// skipImmediates skips the immediates of the instruction op, which was just read.
func (r *reader) skipImmediates(op byte) {
	switch {
	case op >= opFirstPlain && op <= opLastPlain,
		op == opUnreachable, op == 0x01, op == opElse, op == opEnd, op == opReturn, op == opDrop, op == opSelect:
	case op == opBlock, op == opLoop, op == opIf, op == opBr, op == opBrIf, op == opCall,
		op >= opLocalGet && op <= opTableSet, op == opMemorySize, op == opMemoryGrow, op == opI32Const, op == opI64Const:
		r.skipNumber()
	case op == opCallIndirect, op >= opFirstMemory && op <= opLastMemory:
		r.skipNumber()
		r.skipNumber()
	case op == opBrTable:
		for n := r.u32(); r.err == nil; n-- {
			r.skipNumber()
			if n == 0 {
				break
			}
		}
	case op == opSelectTyped:
		r.bytes(int(r.u32()))
	case op == opF32Const:
		r.bytes(4)
	case op == opF64Const:
		r.bytes(8)
	case op == opPrefixed:
		r.skipPrefixed()
	default:
		r.fail("unknown opcode %#x", op)
	}
}

// skipPrefixed skips a bulk-memory, table or saturating-conversion instruction.
func (r *reader) skipPrefixed() {
	switch sub := r.u32(); sub {
	case 0, 1, 2, 3, 4, 5, 6, 7:
	case 8, 10, 12, 14:
		r.skipNumber()
		r.skipNumber()
	case 9, 11, 13, 15, 16, 17:
		r.skipNumber()
	default:
		r.fail("unknown prefixed opcode %d", sub)
	}
}
