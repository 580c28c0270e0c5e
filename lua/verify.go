package lua

import "errors"

// verify checks that code read from outside stays within its registers,
// constants and jumps. Compiled code always does.
func (p *Proto) verify() error {
	if len(p.code) == 0 || p.maxStack < 2 || int(p.params) >= int(p.maxStack) {
		return errors.New("corrupted function")
	}
	if len(p.lines) != 0 && len(p.lines) != len(p.code) {
		return errors.New("corrupted line information")
	}
	switch p.code[len(p.code)-1].op() {
	case opReturn, opReturn0, opReturn1, opJump, opForLoop:
	default:
		return errors.New("code without end")
	}
	for pc, i := range p.code {
		if !p.valid(pc, i) {
			return errors.New("corrupted instruction")
		}
	}
	for _, q := range p.protos {
		for _, u := range q.upvalues {
			if u.inStack && u.index >= p.maxStack || !u.inStack && int(u.index) >= len(p.upvalues) {
				return errors.New("corrupted upvalue")
			}
		}
		if err := q.verify(); err != nil {
			return err
		}
	}
	return nil
}

// valid checks the operands of one instruction.
func (p *Proto) valid(pc int, i instruction) bool {
	op := i.op()
	if op >= opTrap {
		return false
	}
	reg := func(r int) bool { return r < int(p.maxStack) }
	str := func(k int) bool { return k < len(p.constants) && p.constants[k].isString() }
	konst := func(k int) bool { return k < len(p.constants) }
	rk := func(x int) bool { return x < rkBase && reg(x) || x >= rkBase && konst(x-rkBase) }
	hint := i.d() < len(p.hints)
	if op != opSetTabUp && op != opVarargPrep && !reg(i.a()) {
		return false
	}
	if op >= opJump && op <= opTestNotSet || op == opForPrep || op == opForLoop || op == opTForPrep || op == opTForLoop {
		if to := pc + 1 + i.j(); to < 0 || to >= len(p.code) {
			return false
		}
	}
	switch {
	case op == opLoadK:
		return i.j() >= 0 && konst(i.j())
	case op == opLoadNil:
		return reg(i.a() + i.b())
	case op == opGetUpval, op == opSetUpval:
		return i.b() < len(p.upvalues)
	case op == opGetTabUp:
		return i.b() < len(p.upvalues) && str(i.c()) && hint
	case op == opSetTabUp:
		return i.a() < len(p.upvalues) && str(i.b()) && rk(i.c()) && hint
	case op == opGetField, op == opSelf:
		return reg(i.b()) && str(i.c()) && hint && reg(i.a()+1)
	case op == opSetField:
		return str(i.b()) && rk(i.c()) && hint
	case op == opSetTable:
		return reg(i.b()) && rk(i.c())
	case op == opSetInt:
		return rk(i.c())
	case op == opGetTable, op >= opAdd && op <= opShr:
		return reg(i.b()) && reg(i.c())
	case op >= opAddK && op <= opShrK:
		return reg(i.b()) && konst(i.c())
	case op == opMove, op >= opUnm && op <= opLen, op == opGetInt:
		return reg(i.b())
	case op >= opEq && op <= opNotLe, op == opTestSet, op == opTestNotSet:
		return reg(i.b())
	case op >= opEqK && op <= opNotGeK:
		return konst(i.b())
	case op == opConcat:
		return i.b() > 0 && reg(i.a()+i.b()-1)
	case op == opCall, op == opTailCall:
		return i.b() == 0 || reg(i.a()+i.b()-1)
	case op == opReturn, op == opReturn0, op == opReturn1:
		return i.b() < 2 || reg(i.a()+i.b()-2)
	case op == opForPrep, op == opForLoop, op == opTForPrep:
		return reg(i.a() + 3)
	case op == opTForCall, op == opTForLoop:
		return reg(i.a()+6) && reg(i.a()+3+i.c())
	case op == opSetList:
		return i.j() >= 0 && (i.b() == 0 || reg(i.a()+i.b()))
	case op == opClosure:
		return i.j() >= 0 && i.j() < len(p.protos)
	case op == opVararg:
		return p.vararg && (i.c() == 0 || reg(i.a()+i.c()-2))
	case op == opVarargPrep:
		return p.vararg && pc == 0
	}
	return true
}
