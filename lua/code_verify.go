package lua

import "errors"

// The verifier checks code that was read from outside. The machine reads
// registers, constants and jump targets without asking whether they exist, so
// whatever it takes for granted is established here. Compiled code always
// passes.

// verify checks p and the functions inside it, which must form a tree.
func (p *Proto) verify() error {
	if err := p.verifyCode(); err != nil {
		return err
	}
	for _, q := range p.protos {
		if err := q.verify(); err != nil {
			return err
		}
	}
	return nil
}

// verifyCode checks p itself and what closures made by it capture.
func (p *Proto) verifyCode() error {
	if len(p.code) == 0 || p.maxStack < 2 || p.params >= p.maxStack || len(p.hints) == 0 || len(p.hints) > len(p.code)+1 {
		return errors.New("corrupted function")
	}
	if len(p.lines) != 0 && len(p.lines) != len(p.code) {
		return errors.New("corrupted line information")
	}
	for i := range p.locals {
		if p.locals[i].reg >= p.maxStack {
			return errors.New("corrupted variable information")
		}
	}
	for _, q := range p.protos {
		if !p.canCapture(q) {
			return errors.New("corrupted upvalue")
		}
	}
	return p.verifyFlow()
}

// canCapture checks that the variables q captures exist in p.
func (p *Proto) canCapture(q *Proto) bool {
	for _, u := range q.upvalues {
		if u.inStack && u.index >= p.maxStack || !u.inStack && int(u.index) >= len(p.upvalues) {
			return false
		}
	}
	return true
}

// verifyFlow checks the instructions one by one and how they follow each
// other.
func (p *Proto) verifyFlow() error {
	v := verifier{Proto: p, targets: make([]bool, len(p.code)+1)}
	last := p.code[len(p.code)-1].op()
	if last != opReturn && last != opReturn0 && last != opReturn1 && last != opJump {
		return errors.New("code without end")
	}
	if p.vararg != (p.code[0].op() == opVarargPrep) {
		return errors.New("corrupted variable arguments")
	}
	for pc, i := range p.code {
		if i.op() >= opTrap || !v.operands(pc, i) || !v.jumps(pc, i) {
			return errors.New("corrupted instruction")
		}
	}
	if p.vararg && v.targets[0] {
		return errors.New("corrupted variable arguments")
	}
	for pc, i := range p.code {
		if i.takesOpen() && !v.followsOpen(pc, i) {
			return errors.New("corrupted argument list")
		}
	}
	return nil
}

// verifier checks one function.
type verifier struct {
	*Proto
	// targets are the instructions that others jump to.
	targets []bool
}

func (v *verifier) reg(r int) bool   { return r >= 0 && r < int(v.maxStack) }
func (v *verifier) konst(k int) bool { return k >= 0 && k < len(v.constants) }
func (v *verifier) str(k int) bool   { return v.konst(k) && v.constants[k].isString() }
func (v *verifier) upval(u int) bool { return u < len(v.upvalues) }
func (v *verifier) hint(h int) bool  { return h < len(v.hints) }
func (v *verifier) rk(x int) bool {
	if x < rkBase {
		return v.reg(x)
	}
	return v.konst(x - rkBase)
}

// operands checks registers, constants and the like of one instruction.
func (v *verifier) operands(pc int, i instruction) bool {
	op := i.op()
	if op != opSetTabUp && op != opVarargPrep && op != opJump && !v.reg(i.a()) {
		return false
	}
	switch {
	case op == opLoadK:
		return v.konst(i.j())
	case op == opLoadNil:
		return v.reg(i.a() + i.b())
	case op == opGetUpval, op == opSetUpval:
		return v.upval(i.b())
	case op == opGetTabUp:
		return v.upval(i.b()) && v.str(i.c()) && v.hint(i.d())
	case op == opSetTabUp:
		return v.upval(i.a()) && v.str(i.b()) && v.rk(i.c()) && v.hint(i.d())
	case op == opGetField:
		return v.reg(i.b()) && v.str(i.c()) && v.hint(i.d())
	case op == opSelf:
		return v.reg(i.b()) && v.str(i.c()) && v.hint(i.d()) && v.reg(i.a()+1)
	case op == opSetField:
		return v.str(i.b()) && v.rk(i.c()) && v.hint(i.d())
	case op == opSetTable:
		return v.reg(i.b()) && v.rk(i.c())
	case op == opSetInt:
		return v.rk(i.c())
	case op == opGetTable, op >= opAdd && op <= opShr:
		return v.reg(i.b()) && v.reg(i.c())
	case op >= opAddK && op <= opShrK:
		return v.reg(i.b()) && v.konst(i.c())
	case op == opMove, op >= opUnm && op <= opLen, op == opGetInt:
		return v.reg(i.b())
	case op >= opEq && op <= opNotLe, op == opTestSet, op == opTestNotSet:
		return v.reg(i.b())
	case op >= opEqK && op <= opNotGeK:
		return v.konst(i.b())
	case op == opConcat:
		return i.b() > 0 && v.reg(i.a()+i.b()-1)
	}
	return v.callOperands(pc, i)
}

// callOperands checks those of calls, returns, loops and constructors.
func (v *verifier) callOperands(pc int, i instruction) bool {
	switch i.op() {
	case opCall:
		return (i.b() == 0 || v.reg(i.a()+i.b()-1)) && (i.c() < 2 || v.reg(i.a()+i.c()-2))
	case opTailCall:
		return i.b() == 0 || v.reg(i.a()+i.b()-1)
	case opReturn:
		return i.b() < 2 || v.reg(i.a()+i.b()-2)
	case opReturn0:
		return i.b() == 1
	case opReturn1:
		return i.b() == 2
	case opForPrep, opForLoop, opTForPrep:
		return v.reg(i.a() + 3)
	case opTForCall:
		return v.reg(i.a()+6) && v.reg(i.a()+3+i.c())
	case opTForLoop:
		return v.reg(i.a() + 4)
	case opSetList:
		return i.j() >= 0 && (i.b() == 0 || v.reg(i.a()+i.b()))
	case opClosure:
		return i.j() >= 0 && i.j() < len(v.protos)
	case opVararg:
		return v.vararg && (i.c() < 2 || v.reg(i.a()+i.c()-2))
	case opVarargPrep:
		return pc == 0
	}
	return true
}

// jumps checks where an instruction may lead to and notes it. Only those that
// count steps may lead back, or code could run without its budget noticing.
func (v *verifier) jumps(pc int, i instruction) bool {
	op := i.op()
	to := pc + 1 + i.j()
	switch {
	case op == opJump, op == opForLoop, op == opTForLoop:
	case op >= opEq && op <= opTestNotSet, op == opForPrep, op == opTForPrep:
		if i.j() < 0 {
			return false
		}
	case op == opFalseSkip:
		to = pc + 2
	default:
		return true
	}
	if to < 0 || to >= len(v.code) {
		return false
	}
	v.targets[to] = true
	return true
}

// takesOpen reports instructions that take values up to the top.
func (i instruction) takesOpen() bool {
	switch i.op() {
	case opCall, opTailCall, opReturn, opSetList:
		return i.b() == 0
	}
	return false
}

// leavesOpen reports instructions that leave values up to the top.
func (i instruction) leavesOpen() bool {
	switch i.op() {
	case opCall, opVararg:
		return i.c() == 0
	}
	return i.op() == opTailCall
}

// followsOpen checks that the instruction right before one that takes values
// up to the top has left them, above what else it takes.
func (v *verifier) followsOpen(pc int, i instruction) bool {
	if pc == 0 || v.targets[pc] {
		return false
	}
	before := v.code[pc-1]
	first := i.a() + 1
	if i.op() == opReturn {
		first = i.a()
	}
	return before.leavesOpen() && before.a() >= first
}
