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
	if err := p.verifyDebug(); err != nil {
		return err
	}
	for _, q := range p.protos {
		if !p.canCapture(q) {
			return errors.New("corrupted upvalue")
		}
	}
	return p.verifyFlow()
}

// verifyDebug checks what messages are made from.
func (p *Proto) verifyDebug() error {
	if len(p.lines) != 0 && len(p.lines) != len(p.code) {
		return errors.New("corrupted line information")
	}
	for i := range p.locals {
		if p.locals[i].reg >= p.maxStack {
			return errors.New("corrupted variable information")
		}
	}
	return nil
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
	if !p.code[len(p.code)-1].op().leaves() {
		return errors.New("code without end")
	}
	if p.vararg != (p.code[0].op() == opVarargPrep) {
		return errors.New("corrupted variable arguments")
	}
	for pc, i := range p.code {
		if !v.instruction(pc, i) {
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

// leaves reports the instructions after which the next one never runs.
func (op opcode) leaves() bool {
	return op == opReturn || op == opReturn0 || op == opReturn1 || op == opJump
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

// instruction checks one instruction by itself.
func (v *verifier) instruction(pc int, i instruction) bool {
	return i.op() < opTrap && v.operands(pc, i) && v.jumps(pc, i)
}

// operands checks registers, constants and the like of one instruction.
func (v *verifier) operands(pc int, i instruction) bool {
	op := i.op()
	if op != opSetTabUp && op != opVarargPrep && op != opJump && !v.reg(i.a()) {
		return false
	}
	switch {
	case op < opGetUpval:
		return v.loadOperands(i)
	case op <= opSetTabUp:
		return v.upvalueOperands(i)
	case op <= opSelf:
		return v.tableOperands(i)
	case op <= opLen:
		return v.arithOperands(i)
	case op == opConcat:
		return i.b() > 0 && v.reg(i.a()+i.b()-1)
	case op < opCall:
		return v.testOperands(i)
	}
	return v.callOperands(pc, i)
}

// loadOperands checks those of instructions that set registers.
func (v *verifier) loadOperands(i instruction) bool {
	switch i.op() {
	case opMove:
		return v.reg(i.b())
	case opLoadK:
		return v.konst(i.j())
	case opLoadNil:
		return v.reg(i.a() + i.b())
	}
	return true
}

// upvalueOperands checks those of instructions that use upvalues.
func (v *verifier) upvalueOperands(i instruction) bool {
	switch i.op() {
	case opGetTabUp:
		return v.upval(i.b()) && v.field(i, i.c())
	case opSetTabUp:
		return v.upval(i.a()) && v.field(i, i.b()) && v.rk(i.c())
	}
	return v.upval(i.b())
}

// tableOperands checks those of instructions that use tables in registers.
func (v *verifier) tableOperands(i instruction) bool {
	switch i.op() {
	case opGetField:
		return v.reg(i.b()) && v.field(i, i.c())
	case opSelf:
		return v.reg(i.b()) && v.field(i, i.c()) && v.reg(i.a()+1)
	case opSetField:
		return v.field(i, i.b()) && v.rk(i.c())
	case opSetTable:
		return v.reg(i.b()) && v.rk(i.c())
	case opSetInt:
		return v.rk(i.c())
	case opGetTable:
		return v.reg(i.b()) && v.reg(i.c())
	case opGetInt:
		return v.reg(i.b())
	}
	return true
}

// field checks the key and the hint of an instruction that uses a named field.
func (v *verifier) field(i instruction, key int) bool { return v.str(key) && v.hint(i.d()) }

// arithOperands checks those of arithmetic, from opAdd to opLen.
func (v *verifier) arithOperands(i instruction) bool {
	switch op := i.op(); {
	case op <= opShr:
		return v.reg(i.b()) && v.reg(i.c())
	case op <= opShrK:
		return v.reg(i.b()) && v.konst(i.c())
	}
	return v.reg(i.b())
}

// testOperands checks those of jumps and conditions.
func (v *verifier) testOperands(i instruction) bool {
	switch op := i.op(); {
	case op == opJump, op == opTest, op == opTestNot:
		return true
	case op >= opEqK && op <= opNotGeK:
		return v.konst(i.b())
	}
	return v.reg(i.b())
}

// span checks the registers from A on, as many as an operand counts; count 0
// stands for those up to the top.
func (v *verifier) span(i instruction, count int) bool { return count == 0 || v.reg(i.a()+count-1) }

// callOperands checks those of calls, returns, loops and constructors.
func (v *verifier) callOperands(pc int, i instruction) bool {
	switch i.op() {
	case opCall:
		return v.span(i, i.b()) && v.span(i, max(i.c()-1, 0))
	case opTailCall:
		return v.span(i, i.b())
	case opReturn:
		return v.span(i, max(i.b()-1, 0))
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
		return v.vararg && v.span(i, max(i.c()-1, 0))
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
