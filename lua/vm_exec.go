package lua

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// This file is the interpreter loop and nothing else. It is one function on purpose:
// the loop keeps its state in local variables, which a call per opcode would spill.
// Whatever a case can hand over without a cost stands in another vm_ file.

// exec runs the current thread until the innermost frame entered from Go
// returns. It starts by raising err if that is not nil.
//
// The loop keeps what it needs of the running frame in variables: the base of
// the registers (regs), constants (consts), code and pc. Whatever may push or
// pop a frame, move the stack or switch threads goes to reload, which reads
// them anew; before that, pc is stored in the frame. Operands are addressed by
// offsets in bytes, cut out of the instruction with one shift and one mask. That
// is spelled out: a call, though inlined, leaves an instruction behind that does
// nothing but take time.
//
// After a Go call within a case, the instruction and the register pointer are
// taken anew from memory: keeping them alive across calls would make the
// compiler save them for every instruction, called or not.
//
// The register an instruction's first operand names is addressed before it is
// known whether it names one; where it does not, the pointer may lie outside of
// the stack and is never used. Instrumented builds must not take that for an
// error, hence the directive; in all others it does nothing.
//
//go:nocheckptr
func (s *State) exec(err error) error {
	var (
		t       *Thread
		fr      *frame
		fn      *Function
		regs    unsafe.Pointer
		consts  unsafe.Pointer
		code    unsafe.Pointer
		hints   unsafe.Pointer
		pc      int
		i       instruction
		exit    bool
		x, y    Value
		yes, ok bool
	)
	if err != nil {
		goto fail
	}
reload:
	t = s.cur
	fr = &t.frames[len(t.frames)-1]
	if fr.flags&frameHost != 0 {
		exit, err = s.resumeBuiltin(t)
		if err != nil {
			goto fail
		}
		if exit {
			return nil
		}
		goto reload
	}
	fn = (*Function)(t.stack[fr.fn].p)
	regs = unsafe.Pointer(&t.stack[fr.fn+1])
	consts = unsafe.Pointer(unsafe.SliceData(fn.proto.constants))
	hints = unsafe.Pointer(unsafe.SliceData(fn.proto.hints))
	code = unsafe.Pointer(unsafe.SliceData(fn.proto.code))
	if t.hook != nil {
		code = s.trapCode(t, fn.proto)
	}
	pc = int(fr.pc)
	// Calls and returns between Lua functions set these variables themselves
	// and come here. Inside the loop they never change, so that the compiler
	// need not save them in every turn.
enter:
	for {
		i = *(*instruction)(unsafe.Add(code, pc*8))
		pc++
	dispatch:
		ra := (*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0))
		switch opcode(i) {
		case opMove:
			*ra = *(*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
		case opLoadI:
			ra.putInt(uint64(int64(int32(i >> 32))))
		case opLoadK:
			*ra = *(*Value)(unsafe.Add(consts, uintptr(i>>32)*valueSize))
		case opLoadNil:
			for n := uintptr(i>>16) & 0xffff; ; n-- {
				*ra = Value{}
				if n == 0 {
					break
				}
				ra = (*Value)(unsafe.Add(unsafe.Pointer(ra), valueSize))
			}
		case opLoadTrue:
			*ra = Value{unsafe.Pointer(&boolHeader), 1}
		case opLoadFalse:
			*ra = Value{unsafe.Pointer(&boolHeader), 0}
		case opFalseSkip:
			*ra = Value{unsafe.Pointer(&boolHeader), 0}
			pc++
		case opGetUpval:
			*ra = *fn.upvalues[uint8(i>>16)].v
		case opSetUpval:
			*fn.upvalues[uint8(i>>16)].v = *ra
		case opGetTabUp:
			b := fn.upvalues[uint8(i>>16)].v
			k := (*Str)((*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0)).p)
			if b.isTable() {
				tb := (*Table)(b.p)
				hint := (*uint32)(unsafe.Add(hints, uintptr(i>>48)*4))
				if at := atomic.LoadUint32(hint); at < tb.elen {
					if e := (*entry)(unsafe.Add(tb.ents, uintptr(at)*entrySize)); e.k.p == unsafe.Pointer(k) && e.v.p != nil {
						*ra = e.v
						continue
					}
				}
				fr.pc = int32(pc)
				v, ok := tb.field(k, hint)
				i = fn.proto.code[fr.pc-1]
				if ok {
					*(*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0)) = v
					continue
				}
			}
			fr.pc = int32(pc)
			if err = s.indexOp(t, *b, Value{unsafe.Pointer(k), 0}, i.a()); err != nil {
				goto fail
			}
			goto reload
		case opGetField:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			k := (*Str)((*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0)).p)
			if b.isTable() {
				tb := (*Table)(b.p)
				hint := (*uint32)(unsafe.Add(hints, uintptr(i>>48)*4))
				if at := atomic.LoadUint32(hint); at < tb.elen {
					if e := (*entry)(unsafe.Add(tb.ents, uintptr(at)*entrySize)); e.k.p == unsafe.Pointer(k) && e.v.p != nil {
						*ra = e.v
						continue
					}
				}
				fr.pc = int32(pc)
				v, ok := tb.field(k, hint)
				i = fn.proto.code[fr.pc-1]
				if ok {
					*(*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0)) = v
					continue
				}
			}
			fr.pc = int32(pc)
			if err = s.indexOp(t, *b, Value{unsafe.Pointer(k), 0}, i.a()); err != nil {
				goto fail
			}
			goto reload
		case opSelf:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			k := (*Str)((*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0)).p)
			obj := *b
			if obj.p != nil {
				if (*header)(obj.p).kind == KindTable {
					tb := (*Table)(obj.p)
					hint := (*uint32)(unsafe.Add(hints, uintptr(i>>48)*4))
					fr.pc = int32(pc)
					v, ok := tb.method(k, hint)
					i = fn.proto.code[fr.pc-1]
					ra = (*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0))
					if ok {
						*ra = v
						*(*Value)(unsafe.Add(unsafe.Pointer(ra), valueSize)) = obj
						continue
					}
				} else if m := s.metas[KindString]; (*header)(obj.p).kind == KindString && m != nil {
					fr.pc = int32(pc)
					h := m.handler(evIndex)
					if h.isTable() {
						i = fn.proto.code[fr.pc-1]
						hint := (*uint32)(unsafe.Add(hints, uintptr(i>>48)*4))
						if v, ok := h.table().method(k, hint); ok {
							i = fn.proto.code[fr.pc-1]
							ra = (*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0))
							*ra = v
							*(*Value)(unsafe.Add(unsafe.Pointer(ra), valueSize)) = obj
							continue
						}
					}
					i = fn.proto.code[fr.pc-1]
					ra = (*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0))
				}
			}
			fr.pc = int32(pc)
			*(*Value)(unsafe.Add(unsafe.Pointer(ra), valueSize)) = obj
			if err = s.indexOp(t, obj, Value{unsafe.Pointer(k), 0}, i.a()); err != nil {
				goto fail
			}
			goto reload
		case opGetTable:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			if b.isTable() {
				tb := (*Table)(b.p)
				if c.isInt() {
					if at := c.n - 1; at < uint64(tb.alen) {
						if v := (*Value)(unsafe.Add(tb.arr, at*uint64(valueSize))); v.p != nil {
							*ra = *v
							continue
						}
					}
				}
				fr.pc = int32(pc)
				v := tb.get(*c)
				i = fn.proto.code[fr.pc-1]
				if v.p != nil || tb.meta == nil {
					*(*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0)) = v
					continue
				}
			}
			fr.pc = int32(pc)
			if err = s.indexOp(t, *b, *c, i.a()); err != nil {
				goto fail
			}
			goto reload
		case opGetInt:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			if b.isTable() {
				tb := (*Table)(b.p)
				n := uint64(i>>32) & 0xffff
				if at := n - 1; at < uint64(tb.alen) {
					if v := (*Value)(unsafe.Add(tb.arr, at*uint64(valueSize))); v.p != nil {
						*ra = *v
						continue
					}
				}
				fr.pc = int32(pc)
				v := tb.getInt(int64(n))
				i = fn.proto.code[fr.pc-1]
				if v.p != nil || tb.meta == nil {
					*(*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0)) = v
					continue
				}
			}
			fr.pc = int32(pc)
			if err = s.indexOp(t, *b, Int(int64(i.c())), i.a()); err != nil {
				goto fail
			}
			goto reload
		case opSetTabUp:
			c := (*Value)(nil)
			if i&(0xff00<<32) != 0 {
				c = (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0-rkBase*valueSize))
			} else {
				c = (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			}
			b := fn.upvalues[uint8(i>>8)].v
			k := (*Str)((*Value)(unsafe.Add(consts, uintptr(i>>12)&0xffff0)).p)
			if b.isTable() {
				tb := (*Table)(b.p)
				hint := (*uint32)(unsafe.Add(hints, uintptr(i>>48)*4))
				if at := atomic.LoadUint32(hint); at < tb.elen && tb.bits&bitCopyOnWrite == 0 {
					if e := (*entry)(unsafe.Add(tb.ents, uintptr(at)*entrySize)); e.k.p == unsafe.Pointer(k) && e.v.p != nil {
						e.v.n = c.n
						if e.v.p != c.p {
							e.v.p = c.p
						}
						continue
					}
				}
				fr.pc = int32(pc)
				var done bool
				if done, err = tb.setField(s, k, *c, hint); err != nil {
					goto fail
				}
				if done {
					continue
				}
			}
			fr.pc = int32(pc)
			if err = s.assignOp(t, *b, Value{unsafe.Pointer(k), 0}, *c); err != nil {
				goto fail
			}
			goto reload
		case opSetField:
			c := (*Value)(nil)
			if i&(0xff00<<32) != 0 {
				c = (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0-rkBase*valueSize))
			} else {
				c = (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			}
			b := ra
			k := (*Str)((*Value)(unsafe.Add(consts, uintptr(i>>12)&0xffff0)).p)
			if b.isTable() {
				tb := (*Table)(b.p)
				hint := (*uint32)(unsafe.Add(hints, uintptr(i>>48)*4))
				if at := atomic.LoadUint32(hint); at < tb.elen && tb.bits&bitCopyOnWrite == 0 {
					if e := (*entry)(unsafe.Add(tb.ents, uintptr(at)*entrySize)); e.k.p == unsafe.Pointer(k) && e.v.p != nil {
						e.v.n = c.n
						if e.v.p != c.p {
							e.v.p = c.p
						}
						continue
					}
				}
				fr.pc = int32(pc)
				var done bool
				if done, err = tb.setField(s, k, *c, hint); err != nil {
					goto fail
				}
				if done {
					continue
				}
			}
			fr.pc = int32(pc)
			if err = s.assignOp(t, *b, Value{unsafe.Pointer(k), 0}, *c); err != nil {
				goto fail
			}
			goto reload
		case opSetTable:
			c := (*Value)(nil)
			if i&(0xff00<<32) != 0 {
				c = (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0-rkBase*valueSize))
			} else {
				c = (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			}
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			if ra.isTable() {
				tb := (*Table)(ra.p)
				if b.isInt() && tb.bits&bitCopyOnWrite == 0 {
					at := b.n - 1
					if at < uint64(tb.alen) && c.p != nil {
						if d := (*Value)(unsafe.Add(tb.arr, at*uint64(valueSize))); tb.meta == nil || d.p != nil {
							d.n = c.n
							if d.p != c.p {
								d.p = c.p
							}
							continue
						}
					} else if at == uint64(tb.alen) && at < uint64(tb.acap) && tb.elen == 0 && tb.meta == nil && c.p != nil {
						*(*Value)(unsafe.Add(tb.arr, at*uint64(valueSize))) = *c
						tb.alen++
						continue
					}
				}
			}
			fr.pc = int32(pc)
			if err = s.assignOp(t, *ra, *b, *c); err != nil {
				goto fail
			}
			goto reload
		case opSetInt:
			c := (*Value)(nil)
			if i&(0xff00<<32) != 0 {
				c = (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0-rkBase*valueSize))
			} else {
				c = (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			}
			if ra.isTable() {
				tb := (*Table)(ra.p)
				if at := uint64(uint16(i>>16)) - 1; at < uint64(tb.alen) && c.p != nil && tb.bits&bitCopyOnWrite == 0 {
					if d := (*Value)(unsafe.Add(tb.arr, at*uint64(valueSize))); tb.meta == nil || d.p != nil {
						*d = *c
						continue
					}
				}
			}
			fr.pc = int32(pc)
			if err = s.assignOp(t, *ra, Int(int64(i.b())), *c); err != nil {
				goto fail
			}
			goto reload
		case opNewTable:
			fr.pc = int32(pc)
			tb, size := newTable(uint32(uint16(i>>16)), int(uint16(i>>32)))
			i = fn.proto.code[fr.pc-1]
			*(*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0)) = Value{unsafe.Pointer(tb), 0}
			s.account.memory += int64(size)
			if s.account.memory > s.account.memoryNext {
				if err = s.measure(int64(size)); err != nil {
					goto fail
				}
			}
		case opAdd:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			if b.isInt() && c.isInt() {
				ra.putInt(b.n + c.n)
				continue
			}
			if b.isFloat() {
				if c.isFloat() {
					ra.putFloat(b.float() + c.float())
					continue
				}
				if c.isInt() {
					ra.putFloat(b.float() + float64(c.int()))
					continue
				}
			} else if b.isInt() && c.isFloat() {
				ra.putFloat(float64(b.int()) + c.float())
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opSub:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			if b.isInt() && c.isInt() {
				ra.putInt(b.n - c.n)
				continue
			}
			if b.isFloat() {
				if c.isFloat() {
					ra.putFloat(b.float() - c.float())
					continue
				}
				if c.isInt() {
					ra.putFloat(b.float() - float64(c.int()))
					continue
				}
			} else if b.isInt() && c.isFloat() {
				ra.putFloat(float64(b.int()) - c.float())
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opMul:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			if b.isInt() && c.isInt() {
				ra.putInt(b.n * c.n)
				continue
			}
			if b.isFloat() {
				if c.isFloat() {
					ra.putFloat(b.float() * c.float())
					continue
				}
				if c.isInt() {
					ra.putFloat(b.float() * float64(c.int()))
					continue
				}
			} else if b.isInt() && c.isFloat() {
				ra.putFloat(float64(b.int()) * c.float())
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opDiv:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			var dividend, divisor float64
			if b.isFloat() {
				dividend = b.float()
			} else if b.isInt() {
				dividend = float64(b.int())
			} else {
				x, y = *b, *c
				goto arithmetic
			}
			if c.isFloat() {
				divisor = c.float()
			} else if c.isInt() {
				divisor = float64(c.int())
			} else {
				x, y = *b, *c
				goto arithmetic
			}
			ra.putFloat(dividend / divisor)
			continue
		case opMod:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			if b.isInt() && c.isInt() && c.n != 0 {
				if (b.n|c.n)>>32 == 0 { // dividing half the bits is faster
					ra.putInt(uint64(uint32(b.n) % uint32(c.n)))
				} else {
					ra.putInt(uint64(intMod(b.int(), c.int())))
				}
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opIDiv:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			if b.isInt() && c.isInt() && c.n != 0 {
				ra.putInt(uint64(intDiv(b.int(), c.int())))
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opBand:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			if b.isInt() && c.isInt() {
				ra.putInt(b.n & c.n)
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opBor:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			if b.isInt() && c.isInt() {
				ra.putInt(b.n | c.n)
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opBxor:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			if b.isInt() && c.isInt() {
				ra.putInt(b.n ^ c.n)
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opShl:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			if b.isInt() && c.isInt() {
				ra.putInt(uint64(shiftLeft(b.int(), c.int())))
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opShr:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			if b.isInt() && c.isInt() {
				ra.putInt(uint64(shiftRight(b.int(), c.int())))
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opAddK:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0))
			if b.isInt() && c.isInt() {
				ra.putInt(b.n + c.n)
				continue
			}
			if b.isFloat() {
				if c.isFloat() {
					ra.putFloat(b.float() + c.float())
					continue
				}
				if c.isInt() {
					ra.putFloat(b.float() + float64(c.int()))
					continue
				}
			} else if b.isInt() && c.isFloat() {
				ra.putFloat(float64(b.int()) + c.float())
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opSubK:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0))
			if b.isInt() && c.isInt() {
				ra.putInt(b.n - c.n)
				continue
			}
			if b.isFloat() {
				if c.isFloat() {
					ra.putFloat(b.float() - c.float())
					continue
				}
				if c.isInt() {
					ra.putFloat(b.float() - float64(c.int()))
					continue
				}
			} else if b.isInt() && c.isFloat() {
				ra.putFloat(float64(b.int()) - c.float())
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opMulK:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0))
			if b.isInt() && c.isInt() {
				ra.putInt(b.n * c.n)
				continue
			}
			if b.isFloat() {
				if c.isFloat() {
					ra.putFloat(b.float() * c.float())
					continue
				}
				if c.isInt() {
					ra.putFloat(b.float() * float64(c.int()))
					continue
				}
			} else if b.isInt() && c.isFloat() {
				ra.putFloat(float64(b.int()) * c.float())
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opDivK:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0))
			var dividend, divisor float64
			if b.isFloat() {
				dividend = b.float()
			} else if b.isInt() {
				dividend = float64(b.int())
			} else {
				x, y = *b, *c
				goto arithmetic
			}
			if c.isFloat() {
				divisor = c.float()
			} else if c.isInt() {
				divisor = float64(c.int())
			} else {
				x, y = *b, *c
				goto arithmetic
			}
			ra.putFloat(dividend / divisor)
			continue
		case opModK:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0))
			if b.isInt() && c.isInt() && c.n != 0 {
				if (b.n|c.n)>>32 == 0 { // dividing half the bits is faster
					ra.putInt(uint64(uint32(b.n) % uint32(c.n)))
				} else {
					ra.putInt(uint64(intMod(b.int(), c.int())))
				}
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opIDivK:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0))
			if b.isInt() && c.isInt() && c.n != 0 {
				ra.putInt(uint64(intDiv(b.int(), c.int())))
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opPow:
			x, y = *(*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0)), *(*Value)(unsafe.Add(regs, uintptr(i>>28)&0xff0))
			goto arithmetic
		case opPowK:
			x, y = *(*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0)), *(*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0))
			goto arithmetic
		case opBandK:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0))
			if b.isInt() && c.isInt() {
				ra.putInt(b.n & c.n)
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opBorK:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0))
			if b.isInt() && c.isInt() {
				ra.putInt(b.n | c.n)
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opBxorK:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0))
			if b.isInt() && c.isInt() {
				ra.putInt(b.n ^ c.n)
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opShlK:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0))
			if b.isInt() && c.isInt() {
				ra.putInt(uint64(shiftLeft(b.int(), c.int())))
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opShrK:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			c := (*Value)(unsafe.Add(consts, uintptr(i>>28)&0xffff0))
			if b.isInt() && c.isInt() {
				ra.putInt(uint64(shiftRight(b.int(), c.int())))
				continue
			}
			x, y = *b, *c
			goto arithmetic
		case opUnm:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			if b.isInt() {
				ra.putInt(-b.n)
				continue
			}
			if b.isFloat() {
				ra.putFloat(-b.float())
				continue
			}
			x, y = *b, *b
			goto arithmetic
		case opBnot:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			if b.isInt() {
				ra.putInt(^b.n)
				continue
			}
			x, y = *b, *b
			goto arithmetic
		case opNot:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			*ra = Bool(b.isFalse())
		case opLen:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			if b.p != nil {
				if kind := (*header)(b.p).kind; kind == KindTable {
					if tb := (*Table)(b.p); tb.meta == nil {
						ra.putInt(uint64(tb.alen))
						continue
					}
				} else if kind == KindString {
					ra.putInt(uint64(len((*Str)(b.p).s)))
					continue
				}
			}
			fr.pc = int32(pc)
			if err = s.lengthOp(t, *b, i.a()); err != nil {
				goto fail
			}
			goto reload
		case opConcat:
			fr.pc = int32(pc)
			depth := len(t.frames)
			if err = s.concat(t, i.a(), i.b()); err != nil {
				goto fail
			}
			if s.account.fuel < 0 {
				if err = s.refuel(); err != nil {
					goto fail
				}
			}
			if len(t.frames) != depth || s.cur != t {
				goto reload
			}
		case opJump:
			j := i.j()
			if j < 0 {
				s.account.fuel--
				if s.account.fuel < 0 {
					fr.pc = int32(pc) + int32(j)
					if err = s.refuel(); err != nil {
						fr.pc++ // it is told where the loop begins, not before it
						goto fail
					}
					goto reload
				}
			}
			pc += j
		case opEq:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			var eq bool
			if ra.p == b.p && !ra.isFloat() {
				eq = ra.n == b.n
			} else if ra.p != nil && b.p != nil {
				x, y = *ra, *b
				goto equal
			}
			if eq {
				pc += i.j()
			}
		case opNe:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			var eq bool
			if ra.p == b.p && !ra.isFloat() {
				eq = ra.n == b.n
			} else if ra.p != nil && b.p != nil {
				x, y = *ra, *b
				goto equal
			}
			if !eq {
				pc += i.j()
			}
		case opEqK:
			b := (*Value)(unsafe.Add(consts, uintptr(i>>12)&0xffff0))
			var eq bool
			if ra.p == b.p && !ra.isFloat() {
				eq = ra.n == b.n
			} else if ra.p != nil && b.p != nil {
				fr.pc = int32(pc)
				eq = RawEqual(*ra, *b)
				i = fn.proto.code[fr.pc-1]
			}
			if eq {
				pc += i.j()
			}
		case opNeK:
			b := (*Value)(unsafe.Add(consts, uintptr(i>>12)&0xffff0))
			var eq bool
			if ra.p == b.p && !ra.isFloat() {
				eq = ra.n == b.n
			} else if ra.p != nil && b.p != nil {
				fr.pc = int32(pc)
				eq = RawEqual(*ra, *b)
				i = fn.proto.code[fr.pc-1]
			}
			if !eq {
				pc += i.j()
			}
		case opLt:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			if ra.isInt() && b.isInt() {
				yes = ra.int() < b.int()
			} else if ra.isFloat() && b.isFloat() {
				yes = ra.float() < b.float()
			} else {
				x, y = *ra, *b
				goto order
			}
			if yes {
				pc += i.j()
			}
		case opNotLt:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			if ra.isInt() && b.isInt() {
				yes = ra.int() < b.int()
			} else if ra.isFloat() && b.isFloat() {
				yes = ra.float() < b.float()
			} else {
				x, y = *ra, *b
				goto order
			}
			if !yes {
				pc += i.j()
			}
		case opLe:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			if ra.isInt() && b.isInt() {
				yes = ra.int() <= b.int()
			} else if ra.isFloat() && b.isFloat() {
				yes = ra.float() <= b.float()
			} else {
				x, y = *ra, *b
				goto order
			}
			if yes {
				pc += i.j()
			}
		case opNotLe:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			if ra.isInt() && b.isInt() {
				yes = ra.int() <= b.int()
			} else if ra.isFloat() && b.isFloat() {
				yes = ra.float() <= b.float()
			} else {
				x, y = *ra, *b
				goto order
			}
			if !yes {
				pc += i.j()
			}
		case opLtK:
			b := (*Value)(unsafe.Add(consts, uintptr(i>>12)&0xffff0))
			if ra.isInt() && b.isInt() {
				yes = ra.int() < b.int()
			} else if ra.isFloat() && b.isFloat() {
				yes = ra.float() < b.float()
			} else {
				x, y = *ra, *b
				goto order
			}
			if yes {
				pc += i.j()
			}
		case opNotLtK:
			b := (*Value)(unsafe.Add(consts, uintptr(i>>12)&0xffff0))
			if ra.isInt() && b.isInt() {
				yes = ra.int() < b.int()
			} else if ra.isFloat() && b.isFloat() {
				yes = ra.float() < b.float()
			} else {
				x, y = *ra, *b
				goto order
			}
			if !yes {
				pc += i.j()
			}
		case opLeK:
			b := (*Value)(unsafe.Add(consts, uintptr(i>>12)&0xffff0))
			if ra.isInt() && b.isInt() {
				yes = ra.int() <= b.int()
			} else if ra.isFloat() && b.isFloat() {
				yes = ra.float() <= b.float()
			} else {
				x, y = *ra, *b
				goto order
			}
			if yes {
				pc += i.j()
			}
		case opNotLeK:
			b := (*Value)(unsafe.Add(consts, uintptr(i>>12)&0xffff0))
			if ra.isInt() && b.isInt() {
				yes = ra.int() <= b.int()
			} else if ra.isFloat() && b.isFloat() {
				yes = ra.float() <= b.float()
			} else {
				x, y = *ra, *b
				goto order
			}
			if !yes {
				pc += i.j()
			}
		case opGtK:
			b := (*Value)(unsafe.Add(consts, uintptr(i>>12)&0xffff0))
			if ra.isInt() && b.isInt() {
				yes = ra.int() > b.int()
			} else if ra.isFloat() && b.isFloat() {
				yes = ra.float() > b.float()
			} else {
				x, y = *b, *ra
				goto order
			}
			if yes {
				pc += i.j()
			}
		case opNotGtK:
			b := (*Value)(unsafe.Add(consts, uintptr(i>>12)&0xffff0))
			if ra.isInt() && b.isInt() {
				yes = ra.int() > b.int()
			} else if ra.isFloat() && b.isFloat() {
				yes = ra.float() > b.float()
			} else {
				x, y = *b, *ra
				goto order
			}
			if !yes {
				pc += i.j()
			}
		case opGeK:
			b := (*Value)(unsafe.Add(consts, uintptr(i>>12)&0xffff0))
			if ra.isInt() && b.isInt() {
				yes = ra.int() >= b.int()
			} else if ra.isFloat() && b.isFloat() {
				yes = ra.float() >= b.float()
			} else {
				x, y = *b, *ra
				goto order
			}
			if yes {
				pc += i.j()
			}
		case opNotGeK:
			b := (*Value)(unsafe.Add(consts, uintptr(i>>12)&0xffff0))
			if ra.isInt() && b.isInt() {
				yes = ra.int() >= b.int()
			} else if ra.isFloat() && b.isFloat() {
				yes = ra.float() >= b.float()
			} else {
				x, y = *b, *ra
				goto order
			}
			if !yes {
				pc += i.j()
			}
		case opTest:
			if !ra.isFalse() {
				pc += i.j()
			}
		case opTestNot:
			if ra.isFalse() {
				pc += i.j()
			}
		case opTestSet:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			if !b.isFalse() {
				*ra = *b
				pc += i.j()
			}
		case opTestNotSet:
			b := (*Value)(unsafe.Add(regs, uintptr(i>>12)&0xff0))
			if b.isFalse() {
				*ra = *b
				pc += i.j()
			}
		case opCall:
			at := int(fr.fn) + 1 + i.a()
			nargs := i.b() - 1
			if nargs < 0 {
				nargs = t.top - at - 1
			}
			fr.pc = int32(pc)
			if ra.isFunction() {
				callee := (*Function)(ra.p)
				if p := callee.proto; p != nil {
					if top := at + 1 + int(p.maxStack); top <= t.limit {
						n := len(t.frames)
						s.account.fuel--
						if s.account.fuel < 0 || n == cap(t.frames) {
							if err = s.makeWay(t); err != nil {
								goto fail
							}
							t.frame().pc-- // now there is fuel and room: once more
							goto reload
						}
						t.frames = t.frames[:n+1]
						fr = &t.frames[n]
						fr.fn, fr.ret, fr.top, fr.pc = int32(at), int32(at), int32(top), 0
						fr.want, fr.extra = int32(uint16(i>>32))-1, int32(nargs)
						fr.cont, fr.flags, fr.phase, fr.closing = 0, 0, 0, 0
						fn = callee
						regs = unsafe.Add(unsafe.Pointer(ra), valueSize)
						for ; nargs < int(p.params); nargs++ {
							*(*Value)(unsafe.Add(regs, nargs*int(valueSize))) = Value{}
						}
						consts = unsafe.Pointer(unsafe.SliceData(p.constants))
						hints = unsafe.Pointer(unsafe.SliceData(p.hints))
						code = unsafe.Pointer(unsafe.SliceData(p.code))
						pc = 0
						goto enter
					}
				}
			}
			if _, err = s.call(t, at, nargs, returnTo{want: int32(i.c() - 1)}); err != nil {
				goto fail
			}
			goto reload
		case opTailCall:
			fr.pc = int32(pc)
			at := int(fr.fn) + 1 + i.a()
			nargs := i.b() - 1
			if nargs < 0 {
				nargs = t.top - at - 1
			}
			if i>>48 != 0 {
				t.closeUpvalues(int(fr.fn) + 1)
				i = fn.proto.code[fr.pc-1]
				ra = (*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0))
			}
			if ra.isFunction() {
				callee := (*Function)(ra.p)
				if p := callee.proto; p != nil && int(fr.ret)+1+int(p.maxStack) <= t.limit && !p.hosted() {
					s.account.fuel--
					if s.account.fuel < 0 {
						if err = s.refuel(); err != nil {
							goto fail
						}
						t.frame().pc--
						goto reload
					}
					to := unsafe.Add(regs, (int(fr.ret)-int(fr.fn)-1)*int(valueSize))
					for n := 0; n <= nargs; n++ {
						*(*Value)(unsafe.Add(to, n*int(valueSize))) = *(*Value)(unsafe.Add(unsafe.Pointer(ra), n*int(valueSize)))
					}
					fr.fn, fr.top, fr.pc = fr.ret, fr.ret+1+int32(p.maxStack), 0
					fr.extra, fr.closing = int32(nargs), 0
					fr.flags |= frameTail
					fn = callee
					regs = unsafe.Add(to, valueSize)
					for ; nargs < int(p.params); nargs++ {
						*(*Value)(unsafe.Add(regs, nargs*int(valueSize))) = Value{}
					}
					consts = unsafe.Pointer(unsafe.SliceData(p.constants))
					hints = unsafe.Pointer(unsafe.SliceData(p.hints))
					code = unsafe.Pointer(unsafe.SliceData(p.code))
					pc = 0
					goto enter
				}
			}
			if err = s.tailCall(t, at, nargs); err != nil {
				goto fail
			}
			goto reload
		case opReturn:
			first := int(fr.fn) + 1 + i.a()
			n := i.b() - 1
			if n < 0 {
				n = t.top - first
			}
			fr.pc = int32(pc)
			if fr.closing != 0 {
				n = int(fr.closing) - 1
			}
			if i>>48 != 0 {
				if len(t.pending) != 0 {
					fr.closing = int32(n) + 1
					var again bool
					if again, err = s.closeOne(t, int(fr.fn)+1, max(first+n, int(fr.top))); err != nil {
						goto fail
					}
					if again {
						goto reload
					}
				} else if t.open != nil {
					t.closeUpvalues(int(fr.fn) + 1)
				}
				i = fn.proto.code[fr.pc-1]
				ra = (*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0))
			}
			if fr.flags&^frameTail != 0 || fr.cont != 0 || t.hook != nil || len(t.frames) == 1 {
				exit, err = s.ret(t, first, n)
				if err != nil {
					goto fail
				}
				if exit {
					return nil
				}
				goto reload
			}
			dst := unsafe.Add(regs, (int(fr.ret)-int(fr.fn)-1)*int(valueSize))
			want := int(fr.want)
			if want < 0 {
				want = n
				t.top = int(fr.ret) + n
			}
			for k := 0; k < want; k++ {
				if k < n {
					*(*Value)(unsafe.Add(dst, k*int(valueSize))) = *(*Value)(unsafe.Add(unsafe.Pointer(ra), k*int(valueSize)))
				} else {
					*(*Value)(unsafe.Add(dst, k*int(valueSize))) = Value{}
				}
			}
			t.frames = t.frames[:len(t.frames)-1]
			back := (*frame)(unsafe.Add(unsafe.Pointer(fr), -int(frameSize)))
			regs = unsafe.Add(regs, (int(back.fn)-int(fr.fn))*int(valueSize))
			fr = back
			fn = (*Function)((*Value)(unsafe.Add(regs, -int(valueSize))).p)
			consts = unsafe.Pointer(unsafe.SliceData(fn.proto.constants))
			hints = unsafe.Pointer(unsafe.SliceData(fn.proto.hints))
			code = unsafe.Pointer(unsafe.SliceData(fn.proto.code))
			pc = int(fr.pc)
			goto enter
		case opReturn0, opReturn1:
			fr.pc = int32(pc)
			n := int(uint8(i>>16)) - 1
			if fr.flags&^frameTail != 0 || fr.cont != 0 || t.hook != nil || len(t.frames) == 1 {
				exit, err = s.ret(t, int(fr.fn)+1+i.a(), n)
				if err != nil {
					goto fail
				}
				if exit {
					return nil
				}
				goto reload
			}
			dst := (*Value)(unsafe.Add(regs, (int(fr.ret)-int(fr.fn)-1)*int(valueSize)))
			if n != 0 {
				*dst = *ra
			}
			if want := int(fr.want); want != n {
				if want < 0 {
					t.top = int(fr.ret) + n
				} else {
					for ; n < want; n++ {
						*(*Value)(unsafe.Add(unsafe.Pointer(dst), n*int(valueSize))) = Value{}
					}
				}
			}
			t.frames = t.frames[:len(t.frames)-1]
			back := (*frame)(unsafe.Add(unsafe.Pointer(fr), -int(frameSize)))
			regs = unsafe.Add(regs, (int(back.fn)-int(fr.fn))*int(valueSize))
			fr = back
			fn = (*Function)((*Value)(unsafe.Add(regs, -int(valueSize))).p)
			consts = unsafe.Pointer(unsafe.SliceData(fn.proto.constants))
			hints = unsafe.Pointer(unsafe.SliceData(fn.proto.hints))
			code = unsafe.Pointer(unsafe.SliceData(fn.proto.code))
			pc = int(fr.pc)
			goto enter
		case opForPrep:
			fr.pc = int32(pc)
			var skip bool
			if skip, err = s.forPrep(t, ra); err != nil {
				goto fail
			}
			i = fn.proto.code[fr.pc-1]
			if skip {
				pc += i.j()
			}
		case opForLoop:
			s.account.fuel--
			if s.account.fuel < 0 {
				fr.pc = int32(pc)
				if err = s.refuel(); err != nil {
					goto fail
				}
				t.frame().pc--
				goto reload
			}
			limit := (*Value)(unsafe.Add(unsafe.Pointer(ra), valueSize))
			step := (*Value)(unsafe.Add(unsafe.Pointer(ra), 2*valueSize))
			v := (*Value)(unsafe.Add(unsafe.Pointer(ra), 3*valueSize))
			if step.isInt() {
				if limit.n > 0 {
					limit.n--
					ra.n += step.n
					v.putInt(ra.n)
					pc += i.j()
				}
				continue
			}
			x, d := ra.float()+step.float(), step.float()
			if l := limit.float(); d > 0 && x <= l || d <= 0 && l <= x {
				ra.n = math.Float64bits(x)
				*v = Float(x)
				pc += i.j()
			}
		case opTForPrep:
			fr.pc = int32(pc)
			if err = s.markPending(t, int(fr.fn)+1+i.a()+3); err != nil {
				goto fail
			}
			i = fn.proto.code[fr.pc-1]
			pc += i.j()
		case opTForCall:
			fr.pc = int32(pc)
			if ra.isFunction() && t.hook == nil {
				if host := (*Function)(ra.p).host; host != nil && host.builtin != builtinNone && host.builtin < firstFrameBuiltin && i.c() <= 2 {
					if tb := (*Value)(unsafe.Add(unsafe.Pointer(ra), valueSize)); tb.isTable() {
						if host.builtin == builtinNext {
							if err = s.iterNext(tb.table(), ra); err != nil {
								goto fail
							}
							continue
						}
						if iterIpairs(tb.table(), ra) {
							continue
						}
						i = fn.proto.code[fr.pc-1]
						ra = (*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0))
					}
				}
			}
			args := (*[3]Value)(unsafe.Pointer(ra))
			call := (*[3]Value)(unsafe.Add(unsafe.Pointer(ra), 4*valueSize))
			*call = *args
			call[0].n = 0
			if _, err = s.call(t, int(fr.fn)+1+i.a()+4, 2, returnTo{want: int32(i.c())}); err != nil {
				goto fail
			}
			goto reload
		case opTForLoop:
			s.account.fuel--
			if s.account.fuel < 0 {
				fr.pc = int32(pc)
				if err = s.refuel(); err != nil {
					goto fail
				}
				t.frame().pc--
				goto reload
			}
			v := (*Value)(unsafe.Add(unsafe.Pointer(ra), 4*valueSize))
			if v.p != nil {
				*(*Value)(unsafe.Add(unsafe.Pointer(ra), 2*valueSize)) = *v
				pc += i.j()
			}
		case opSetList:
			fr.pc = int32(pc)
			if err = s.setList(t, i); err != nil {
				goto fail
			}
		case opClosure:
			fr.pc = int32(pc)
			f := s.newClosure(t, fn, fn.proto.protos[i>>32], int(fr.fn)+1)
			i = fn.proto.code[fr.pc-1]
			*(*Value)(unsafe.Add(regs, uintptr(i>>4)&0xff0)) = f.Value()
			if s.account.memory > s.account.memoryNext {
				if err = s.measure(int64(closureSize)); err != nil {
					goto fail
				}
			}
		case opVararg:
			fr.pc = int32(pc)
			if err = s.varargs(t, i.a(), i.c()-1); err != nil {
				goto fail
			}
			goto reload
		case opVarargPrep:
			fr.pc = int32(pc)
			if err = s.prepareVarargs(t, fn.proto); err != nil {
				goto fail
			}
			goto reload
		case opClose:
			fr.pc = int32(pc)
			if t.open != nil || len(t.pending) != 0 {
				if _, err = s.closeOne(t, int(fr.fn)+1+i.a(), int(fr.top)); err != nil {
					goto fail
				}
				goto reload
			}
		case opToClose:
			fr.pc = int32(pc)
			if err = s.markPending(t, int(fr.fn)+1+i.a()); err != nil {
				goto fail
			}
		case opTrap:
			if !s.trapped {
				fr.pc = int32(pc)
				if err = s.trap(t); err != nil {
					goto fail
				}
				// The hook may have moved the stack or switched hooks off: load
				// everything anew and come back, this time to go on.
				t.frame().pc--
				s.trapped = t.hook != nil
				goto reload
			}
			s.trapped = false
			fr.pc = int32(pc)
			i = fn.proto.code[fr.pc-1]
			goto dispatch
		}
	}
	// What the cases above do not settle at once, x and y being the operands:
	// numbers of different kinds, strings that stand for numbers, metamethods.
arithmetic:
	fr.pc = int32(pc)
	if err = s.arithOp(t, x, y, i); err != nil {
		goto fail
	}
	goto reload
equal:
	fr.pc = int32(pc)
	yes, ok, err = s.equalOp(t, x, y)
	goto compared
order:
	fr.pc = int32(pc)
	yes, ok, err = s.orderOp(t, x, y, i)
compared:
	if err != nil {
		goto fail
	}
	if !ok { // a metamethod was called, which decides
		goto reload
	}
	if i = fn.proto.code[fr.pc-1]; yes != i.negated() {
		pc += i.j()
	}
	goto enter
fail:
	exit, err = s.unwind(err)
	if err != nil {
		return err
	}
	if exit {
		return nil
	}
	goto reload
}
