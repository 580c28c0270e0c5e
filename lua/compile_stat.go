package lua

func (c *compiler) statements(b *block) {
	for _, s := range b.stats {
		c.statement(s)
		c.free = c.block.base + c.registers()
		if c.err != nil {
			return
		}
	}
}

// registers counts those of the current block's variables.
func (c *compiler) registers() int {
	n := 0
	for _, v := range c.block.vars {
		if v.kind != varConstant {
			n++
		}
	}
	return n
}

func (c *compiler) statement(s stat) {
	switch s := s.(type) {
	case *localStat:
		c.localStatement(s)
	case *assignStat:
		c.assignStatement(s)
	case *callStat:
		c.call(s.call, 0)
	case *doStat:
		c.scope(s.body)
	case *whileStat:
		c.whileStatement(s)
	case *repeatStat:
		c.repeatStatement(s)
	case *ifStat:
		c.ifStatement(s)
	case *forStat:
		c.forStatement(s)
	case *forInStat:
		c.forInStatement(s)
	case *localFuncStat:
		c.reserve(1)
		c.activate(s.v)
		c.closure(s.fn, s.v.reg)
		// The variable is alive only once the closure is in it.
		c.p.locals[c.block.debug[len(c.block.debug)-1]].start = int32(c.pc())
	case *funcStat:
		c.functionStatement(s)
	case *returnStat:
		c.returnStatement(s)
	case *gotoStat:
		c.line = s.line
		c.gotoStatement(s)
	case *labelStat:
		c.label(s)
	}
}

// scope compiles a block of its own.
func (c *compiler) scope(b *block) {
	c.enter(b, false)
	c.statements(b)
	c.line = b.endLine
	c.leave()
}

func (c *compiler) localStatement(s *localStat) {
	c.line = s.line
	vars, exprs := s.vars, s.exprs
	if last := vars[len(vars)-1]; last.kind == varConstant {
		exprs = exprs[:len(exprs)-1]
		c.exprList(exprs, len(vars)-1)
	} else {
		c.exprList(exprs, len(vars))
	}
	c.line = s.end
	for _, v := range vars {
		c.activate(v)
		if v.kind == varClose {
			c.block.close, c.block.insideTBC = true, true
		}
	}
	for _, v := range vars {
		if v.kind == varClose {
			c.emit(abc(opToClose, v.reg, 0, 0))
		}
	}
}

// exprList evaluates a list into exactly want new registers.
func (c *compiler) exprList(list []expr, want int) {
	for i, e := range list {
		last := i == len(list)-1
		switch {
		case last && isMulti(e) && want >= len(list):
			c.multi(e, want-i)
			return
		case i >= want: // evaluated for its effects
			r := c.reserve(1)
			c.toReg(e, r)
			c.free = r
		default:
			c.toReg(e, c.reserve(1))
		}
	}
	if n := want - len(list); n > 0 {
		r := c.reserve(n)
		c.emit(abc(opLoadNil, r, n-1, 0))
	}
}

func isMulti(e expr) bool {
	switch e.(type) {
	case *callExpr, *varargExpr:
		return true
	}
	return false
}

// multi evaluates a call or ... into want new registers; -1 leaves the number
// open.
func (c *compiler) multi(e expr, want int) {
	switch e := e.(type) {
	case *callExpr:
		base := c.free
		c.call(e, want)
		c.free = base
	case *varargExpr:
		c.line = e.line
		c.emit(abc(opVararg, c.free, 0, want+1))
	}
	if want > 0 {
		c.reserve(want)
	} else {
		c.touch(c.free + 1)
	}
}

func (c *compiler) assignStatement(s *assignStat) {
	if len(s.targets) == 1 && len(s.exprs) == 1 {
		c.assignOne(s.targets[0], s.exprs[0], s.end)
		return
	}
	targets := make([]target, len(s.targets))
	for i, t := range s.targets {
		targets[i] = c.target(t, s.targets)
	}
	base := c.free
	c.exprList(s.exprs, len(targets))
	c.line = s.end
	for i := len(targets) - 1; i >= 0; i-- {
		c.store(targets[i], base+i)
	}
}

func (c *compiler) assignOne(to, e expr, line int) {
	switch to := to.(type) {
	case *localExpr:
		c.toLocal(e, to.v)
	case *upvalExpr:
		r := c.anyReg(e)
		c.line = line
		c.emit(abc(opSetUpval, r, to.index, 0))
	default:
		t := c.target(to, nil)
		v := c.rk(e)
		c.line = line
		c.store(t, v)
	}
}

// toLocal evaluates e into a variable's register. Expressions that write their
// register before they have read everything go through a new one, in case
// they mention the variable.
func (c *compiler) toLocal(e expr, v *variable) {
	switch x := e.(type) {
	case *binExpr:
		if x.op != binAnd && x.op != binOr {
			c.toReg(e, v.reg)
			return
		}
	case *tableExpr:
	default:
		c.toReg(e, v.reg)
		return
	}
	r := c.reserve(1)
	c.toReg(e, r)
	c.emit(abc(opMove, v.reg, r, 0))
}

// target is where an assignment stores to.
type target struct {
	local   *variable
	upvalue int
	obj     int // register of the table, or upvalue for a global
	key     int // register, constant or integer, by kind
	kind    targetKind
	line    int
}

type targetKind uint8

const (
	targetLocal targetKind = iota
	targetUpvalue
	targetGlobal // upvalue obj, constant key
	targetField  // register obj, constant key
	targetInt    // register obj, integer key
	targetIndex  // register obj, register key
)

// target evaluates the table and key of an assignment target. Variables that
// the same statement assigns to are copied first.
func (c *compiler) target(e expr, all []expr) target {
	switch e := e.(type) {
	case *localExpr:
		return target{kind: targetLocal, local: e.v}
	case *upvalExpr:
		return target{kind: targetUpvalue, upvalue: e.index}
	}
	x := e.(*indexExpr)
	if up, ok := x.obj.(*upvalExpr); ok && !assigns(all, up) {
		if k, ok := c.fieldConstant(x.key); ok {
			return target{kind: targetGlobal, obj: up.index, key: k, line: x.line}
		}
	}
	t := target{kind: targetIndex, obj: c.safeReg(x.obj, all), line: x.line}
	if k, ok := c.fieldConstant(x.key); ok {
		t.kind, t.key = targetField, k
	} else if k, ok := x.key.(*constExpr); ok && k.value.isInt() && k.value.n <= 0xffff {
		t.kind, t.key = targetInt, int(k.value.n)
	} else {
		t.key = c.safeReg(x.key, all)
	}
	return t
}

// fieldConstant returns the index of a key that is a constant string, if it fits
// into an instruction.
func (c *compiler) fieldConstant(key expr) (int, bool) {
	e, ok := key.(*constExpr)
	if !ok || !e.value.isString() {
		return 0, false
	}
	k := c.constant(e.value)
	return k, k <= 0xffff
}

// assigns reports whether an upvalue is among the targets.
func assigns(targets []expr, up *upvalExpr) bool {
	for _, t := range targets {
		if o, ok := t.(*upvalExpr); ok && o.index == up.index {
			return true
		}
	}
	return false
}

// safeReg is anyReg but for variables that are among the targets.
func (c *compiler) safeReg(e expr, targets []expr) int {
	if l, ok := e.(*localExpr); ok {
		for _, t := range targets {
			if o, ok := t.(*localExpr); ok && o.v == l.v {
				r := c.reserve(1)
				c.toReg(e, r)
				return r
			}
		}
	}
	return c.anyReg(e)
}

// store stores the register or constant v.
func (c *compiler) store(t target, v int) {
	switch t.kind {
	case targetLocal:
		c.emit(abc(opMove, t.local.reg, v, 0))
	case targetUpvalue:
		c.emit(abc(opSetUpval, v, t.upvalue, 0))
	case targetGlobal:
		c.emit(withHint(abc(opSetTabUp, t.obj, t.key, v), c.hint()))
	case targetField:
		c.emit(withHint(abc(opSetField, t.obj, t.key, v), c.hint()))
	case targetInt:
		c.emit(abc(opSetInt, t.obj, t.key, v))
	case targetIndex:
		c.emit(abc(opSetTable, t.obj, t.key, v))
	}
}

func (c *compiler) whileStatement(s *whileStat) {
	c.line = s.line
	top := c.pc()
	exit := c.jumpIf(s.cond, false)
	bs := c.enter(s.body, true)
	c.statements(s.body)
	c.line = s.body.endLine
	c.leave()
	c.patch(c.jump(), top)
	c.patchHere(exit)
	c.patchHere(bs.breaks)
}

// repeatStatement evaluates the condition inside the scope of the body.
func (c *compiler) repeatStatement(s *repeatStat) {
	top := c.pc()
	bs := c.enter(s.body, true)
	c.statements(s.body)
	c.line = s.body.endLine // that of until, which evaluating a constant does not set
	// Only plain jumps go backwards: they count steps.
	exit := c.jumpIf(s.cond, true)
	if bs.close {
		c.emit(abc(opClose, bs.base, 0, 0))
	}
	c.patch(c.jump(), top)
	c.patchHere(exit)
	c.leave()
	c.patchHere(bs.breaks)
}

func (c *compiler) ifStatement(s *ifStat) {
	var ends []int
	for i, cond := range s.conds {
		c.line = s.lines[i]
		next := c.jumpIf(cond, false)
		if pc := c.pc() - 1; pc >= 0 {
			if op := c.p.code[pc].op(); op == opTest || op == opTestNot {
				c.p.lines[pc] = int32(s.thens[i])
			}
		}
		c.scope(s.blocks[i])
		if i < len(s.blocks)-1 {
			ends = append(ends, c.jump())
		}
		c.patchHere(next)
	}
	if len(s.blocks) > len(s.conds) {
		c.scope(s.blocks[len(s.conds)])
	}
	c.patchHere(ends)
}

func (c *compiler) forStatement(s *forStat) {
	c.line = s.line
	hidden := c.enter(&block{}, true)
	base := c.reserve(3)
	c.toReg(s.first, base)
	c.toReg(s.limit, base+1)
	if s.step != nil {
		c.toReg(s.step, base+2)
	} else {
		c.emit(abj(opLoadI, base+2, 0, 1))
	}
	for range 3 {
		c.activate(&variable{name: "(for state)"})
	}
	c.line = s.line
	prep := c.emit(abj(opForPrep, base, 0, 0))
	c.enter(s.body, false)
	c.reserve(1)
	c.activate(s.v)
	c.statements(s.body)
	c.line = s.body.endLine
	c.leave()
	c.line = s.line
	loop := c.emit(abj(opForLoop, base, 0, 0))
	c.patch(loop, prep+1)
	c.patch(prep, c.pc())
	c.leave()
	c.patchHere(hidden.breaks)
}

func (c *compiler) forInStatement(s *forInStat) {
	c.line = s.line
	hidden := c.enter(&block{}, true)
	base := c.free
	c.exprList(s.exprs, 4)
	for range 4 {
		c.activate(&variable{name: "(for state)"})
	}
	c.touch(base + 7) // the iterator is called with two arguments
	c.line = s.line
	prep := c.emit(abj(opTForPrep, base, 0, 0))
	hidden.insideTBC, hidden.close = true, true // for the fourth value
	c.enter(s.body, false)
	c.reserve(len(s.vars))
	for _, v := range s.vars {
		c.activate(v)
	}
	c.statements(s.body)
	c.line = s.body.endLine
	c.leave()
	c.patch(prep, c.pc())
	c.line = s.line
	c.emit(abc(opTForCall, base, 0, len(s.vars)))
	loop := c.emit(abj(opTForLoop, base, 0, 0))
	c.patch(loop, prep+1)
	c.patchHere(hidden.breaks)
	c.leave()
}

func (c *compiler) functionStatement(s *funcStat) {
	switch to := s.target.(type) {
	case *localExpr:
		c.closure(s.fn, to.v.reg)
	default:
		t := target{kind: targetUpvalue}
		if up, ok := to.(*upvalExpr); ok {
			t.upvalue = up.index
		} else {
			t = c.target(to, nil)
		}
		r := c.reserve(1)
		c.closure(s.fn, r)
		c.line = s.line
		c.store(t, r)
	}
}

func (c *compiler) returnStatement(s *returnStat) {
	if len(s.exprs) == 1 {
		switch e := s.exprs[0].(type) {
		case *callExpr:
			if !c.block.insideTBC {
				c.tailCall(e, s.line)
				return
			}
		case *localExpr:
			c.line = s.line
			c.emitReturn(e.v.reg, 2)
			return
		}
	}
	base := c.free
	n := len(s.exprs)
	if n > 0 && isMulti(s.exprs[n-1]) {
		c.exprList(s.exprs[:n-1], n-1)
		c.multi(s.exprs[n-1], -1)
		n = -1
	} else {
		c.exprList(s.exprs, n)
	}
	c.line = s.line
	c.emitReturn(base, n+1)
}

func (c *compiler) tailCall(e *callExpr, line int) {
	base := c.free
	c.call(e, -1)
	i := &c.p.code[c.pc()-1]
	*i = abc(opTailCall, i.a(), i.b(), 0)
	if c.fn.close {
		*i = withHint(*i, 1)
	}
	c.line = line
	c.emitReturn(base, 0)
}
