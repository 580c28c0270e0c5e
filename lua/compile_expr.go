package lua

import "math"

// toReg evaluates e into register dst.
func (c *compiler) toReg(e expr, dst int) {
	switch e := e.(type) {
	case *constExpr:
		c.line = e.line
		c.loadConst(e.value, dst)
	case *constName:
		c.toReg(e.constExpr, dst)
	case *varargExpr:
		c.line = e.line
		c.emit(abc(opVararg, dst, 0, 2))
		c.touch(dst + 1)
	case *localExpr:
		if e.v.reg != dst {
			c.line = e.line
			c.emit(abc(opMove, dst, e.v.reg, 0))
		}
	case *upvalExpr:
		c.line = e.line
		c.emit(abc(opGetUpval, dst, e.index, 0))
	case *indexExpr:
		c.index(e, dst)
	case *callExpr:
		free := c.free
		base := c.buildAt(dst)
		c.call(e, 1)
		c.free = free
		if base != dst {
			c.emit(abc(opMove, dst, base, 0))
		}
	case *funcExpr:
		c.closure(e.fn, dst)
	case *binExpr:
		c.binary(e, dst)
	case *unExpr:
		c.unary(e, dst)
	case *tableExpr:
		c.table(e, dst)
	case *parenExpr:
		c.toReg(e.e, dst)
	}
}

// buildAt returns the register from which on an expression for dst may be
// built: dst itself if it is the last one taken and no variable.
func (c *compiler) buildAt(dst int) int {
	if dst == c.free-1 && dst >= c.block.base+c.registers() {
		c.free = dst
	}
	return c.free
}

// anyReg evaluates e into some register: that of a local variable, or a new
// one.
func (c *compiler) anyReg(e expr) int {
	switch x := e.(type) {
	case *localExpr:
		return x.v.reg
	case *parenExpr:
		return c.anyReg(x.e)
	}
	r := c.reserve(1)
	c.toReg(e, r)
	return r
}

// leftReg is anyReg for the left operand of an operator: a variable or field
// is read when the operator is seen, and counts to its line.
func (c *compiler) leftReg(e expr, line int) int {
	r := c.anyReg(e)
	switch e.(type) {
	case *indexExpr, *upvalExpr:
		c.p.lines[c.pc()-1] = int32(line)
	}
	return r
}

// rk evaluates e into an RK operand.
func (c *compiler) rk(e expr) int {
	if x, ok := e.(*constExpr); ok {
		if k := c.constant(x.value); k+rkBase <= 0xffff {
			return k + rkBase
		}
	}
	return c.anyReg(e)
}

func (c *compiler) loadConst(v Value, dst int) {
	switch {
	case v.p == nil:
		c.emit(abc(opLoadNil, dst, 0, 0))
	case v.Kind() == KindBool && v.n != 0:
		c.emit(abc(opLoadTrue, dst, 0, 0))
	case v.Kind() == KindBool:
		c.emit(abc(opLoadFalse, dst, 0, 0))
	case v.isInt() && v.int() == int64(int32(v.int())):
		c.emit(abj(opLoadI, dst, 0, int(v.int())))
	default:
		c.emit(abj(opLoadK, dst, 0, c.constant(v)))
	}
}

func (c *compiler) index(e *indexExpr, dst int) {
	free := c.free
	c.buildAt(dst)
	key, isConst := e.key.(*constExpr)
	if isConst && key.value.isString() {
		if k := c.constant(key.value); k <= 0xffff {
			if up, ok := e.obj.(*upvalExpr); ok {
				c.line = e.line
				c.emit(withHint(abc(opGetTabUp, dst, up.index, k), c.hint()))
				c.free = free
				return
			}
			obj := c.anyReg(e.obj)
			c.line = e.line
			c.emit(withHint(abc(opGetField, dst, obj, k), c.hint()))
			c.free = free
			return
		}
	}
	obj := c.anyReg(e.obj)
	if isConst && key.value.isInt() && key.value.n <= 0xffff {
		c.line = e.line
		c.emit(abc(opGetInt, dst, obj, int(key.value.n)))
	} else {
		k := c.anyReg(e.key)
		c.line = e.line
		c.emit(abc(opGetTable, dst, obj, k))
	}
	c.free = free
}

// call calls with the function in the next free register and leaves want
// results from there on; -1 leaves their number open.
func (c *compiler) call(e *callExpr, want int) {
	base := c.free
	if e.method != "" {
		c.method(e, base)
	} else {
		c.toReg(e.fn, c.reserve(1))
	}
	nargs := c.arguments(e.args)
	if nargs >= 0 && e.method != "" {
		nargs++
	}
	c.line = e.line
	c.emit(abc(opCall, base, nargs+1, want+1))
	c.free = base
	c.touch(base + max(want, 1))
}

// method puts function and self into registers base and base+1.
func (c *compiler) method(e *callExpr, base int) {
	obj := c.anyReg(e.fn)
	c.free = base
	c.reserve(2)
	name := c.state.intern(e.method).value()
	c.line = e.line
	if k := c.constant(name); k <= 0xffff {
		c.emit(withHint(abc(opSelf, base, obj, k), c.hint()))
		return
	}
	key := c.reserve(1)
	c.emit(abc(opMove, base+1, obj, 0))
	c.loadConst(name, key)
	c.emit(abc(opGetTable, base, base+1, key))
	c.free = key
}

// arguments evaluates arguments into new registers and returns their number,
// or -1 when it is open.
func (c *compiler) arguments(args []expr) int {
	n := len(args)
	if n > 0 && isMulti(args[n-1]) {
		c.exprList(args[:n-1], n-1)
		c.multi(args[n-1], -1)
		return -1
	}
	c.exprList(args, n)
	return n
}

func (c *compiler) closure(fn *function, dst int) {
	sub := &compiler{state: c.state, chunk: c.chunk, parent: c}
	p, err := sub.function(fn)
	if err != nil && c.err == nil {
		c.err = err
	}
	c.p.protos = append(c.p.protos, p)
	c.line = fn.endLine
	c.emit(abj(opClosure, dst, 0, len(c.p.protos)-1))
}

func (c *compiler) unary(e *unExpr, dst int) {
	free := c.free
	c.buildAt(dst)
	r := c.anyReg(e.e)
	c.line = e.line
	op := [...]opcode{unMinus: opUnm, unBnot: opBnot, unNot: opNot, unLen: opLen}[e.op]
	c.emit(abc(op, dst, r, 0))
	c.free = free
}

func (c *compiler) binary(e *binExpr, dst int) {
	switch {
	case e.op <= binShr:
		c.arith(e, dst)
	case e.op == binConcat:
		c.concat(e, dst)
	case e.op == binAnd:
		c.and(e, dst)
	case e.op == binOr:
		c.or(e, dst)
	default: // a comparison
		c.boolean(e, dst)
	}
}

// boolean evaluates a condition into true or false.
func (c *compiler) boolean(e expr, dst int) {
	yes := c.jumpIf(e, true)
	c.emit(abc(opFalseSkip, dst, 0, 0))
	c.patchHere(yes)
	c.emit(abc(opLoadTrue, dst, 0, 0))
}

func (c *compiler) arith(e *binExpr, dst int) {
	free := c.free
	c.buildAt(dst)
	defer func() { c.free = free }()
	if k, ok := c.numericConst(e.r); ok {
		l := c.leftReg(e.l, e.line)
		c.line = e.line
		c.emit(abc(opAddK+opcode(e.op), dst, l, k))
		return
	}
	if k, ok := c.numericConst(e.l); ok && (e.op == binAdd || e.op == binMul) {
		r := c.anyReg(e.r)
		c.line = e.line
		c.emit(withHint(abc(opAddK+opcode(e.op), dst, r, k), 1))
		return
	}
	l := c.leftReg(e.l, e.line)
	r := c.anyReg(e.r)
	c.line = e.line
	c.emit(abc(opAdd+opcode(e.op), dst, l, r))
}

// numericConst returns the index of a numeric constant operand.
func (c *compiler) numericConst(e expr) (int, bool) {
	x, ok := e.(*constExpr)
	if !ok || !x.value.isNumber() {
		return 0, false
	}
	k := c.constant(x.value)
	return k, k <= 0xffff
}

// concat evaluates a chain a .. b .. c, which associates to the right, in one
// instruction.
func (c *compiler) concat(e *binExpr, dst int) {
	free := c.free
	base := c.buildAt(dst)
	n := 0
	var rest expr = e
	for {
		x, ok := rest.(*binExpr)
		if !ok || x.op != binConcat || n > 100 {
			break
		}
		c.toReg(x.l, c.reserve(1))
		n++
		rest = x.r
	}
	c.toReg(rest, c.reserve(1))
	c.line = e.line
	c.emit(abc(opConcat, base, n+1, 0))
	c.free = free
	if dst != base {
		c.emit(abc(opMove, dst, base, 0))
	}
}

// isCondition reports expressions that are true or false by their form.
func isCondition(e expr) bool {
	switch x := e.(type) {
	case *binExpr:
		return x.op >= binEq && x.op <= binGe
	case *unExpr:
		return x.op == unNot
	}
	return false
}

func (c *compiler) and(e *binExpr, dst int) {
	if isCondition(e.l) {
		no := c.jumpIf(e.l, false)
		c.toReg(e.r, dst)
		end := c.jump()
		c.patchHere(no)
		c.emit(abc(opLoadFalse, dst, 0, 0))
		c.patchHere([]int{end})
		return
	}
	end := c.testValue(e.l, dst, false)
	c.toReg(e.r, dst)
	c.patchHere(end)
}

func (c *compiler) or(e *binExpr, dst int) {
	if l, ok := e.l.(*binExpr); ok && l.op == binAnd {
		// cond and a or b: the value of cond itself never matters.
		no := c.jumpIf(l.l, false)
		end := c.testValue(l.r, dst, true)
		c.patchHere(no)
		c.toReg(e.r, dst)
		c.patchHere(end)
		return
	}
	if isCondition(e.l) {
		yes := c.jumpIf(e.l, true)
		c.toReg(e.r, dst)
		end := c.jump()
		c.patchHere(yes)
		c.emit(abc(opLoadTrue, dst, 0, 0))
		c.patchHere([]int{end})
		return
	}
	end := c.testValue(e.l, dst, true)
	c.toReg(e.r, dst)
	c.patchHere(end)
}

// testValue evaluates e into dst and jumps when its truth is as wanted.
func (c *compiler) testValue(e expr, dst int, want bool) []int {
	if k, ok := e.(*constExpr); ok && k.value.Truthy() == want {
		c.toReg(e, dst)
		return []int{c.jump()}
	}
	if l, ok := e.(*localExpr); ok && l.v.reg != dst {
		op := opTestNotSet
		if want {
			op = opTestSet
		}
		c.line = l.line
		return []int{c.emit(abj(op, dst, l.v.reg, 0))}
	}
	c.toReg(e, dst)
	op := opTestNot
	if want {
		op = opTest
	}
	return []int{c.emit(abj(op, dst, 0, 0))}
}

// jumpIf emits jumps, to be patched, that are taken when the truth of e is as
// wanted.
func (c *compiler) jumpIf(e expr, want bool) []int {
	switch x := e.(type) {
	case *constExpr:
		if x.value.Truthy() == want {
			return []int{c.jump()}
		}
		return nil
	case *parenExpr:
		return c.jumpIf(x.e, want)
	case *unExpr:
		if x.op == unNot {
			return c.jumpIf(x.e, !want)
		}
	case *binExpr:
		switch {
		case x.op == binAnd || x.op == binOr:
			return c.jumpLogical(x, want)
		case x.op >= binEq && x.op <= binGe:
			return []int{c.compare(x, want)}
		}
	}
	free := c.free
	r := c.anyReg(e)
	c.free = free
	if want {
		return []int{c.emit(abj(opTest, r, 0, 0))}
	}
	return []int{c.emit(abj(opTestNot, r, 0, 0))}
}

func (c *compiler) jumpLogical(e *binExpr, want bool) []int {
	if (e.op == binOr) == want { // either operand decides alone
		return append(c.jumpIf(e.l, want), c.jumpIf(e.r, want)...)
	}
	past := c.jumpIf(e.l, !want)
	jumps := c.jumpIf(e.r, want)
	c.patchHere(past)
	return jumps
}

// compare emits the conditional jump of a comparison.
func (c *compiler) compare(e *binExpr, want bool) int {
	free := c.free
	op, a, b := c.comparison(e)
	c.free = free
	if e.op == binNe {
		want = !want
	}
	if !want {
		op++ // the jump for the opposite outcome follows each
	}
	c.line = e.line
	return c.emit(abj(op, a, b, 0))
}

// comparison evaluates the operands of a comparison and returns the
// instruction that jumps when it holds; ~= is left to the caller.
func (c *compiler) comparison(e *binExpr) (op opcode, a, b int) {
	if e.op == binEq || e.op == binNe {
		return c.equality(e.l, e.r)
	}
	if k, ok := c.numericConst(e.r); ok {
		op := [...]opcode{opLtK, opLeK, opGtK, opGeK}[e.op-binLt]
		return op, c.anyReg(e.l), k
	}
	if k, ok := c.numericConst(e.l); ok {
		op := [...]opcode{opGtK, opGeK, opLtK, opLeK}[e.op-binLt]
		return op, c.anyReg(e.r), k
	}
	l := c.leftReg(e.l, e.line)
	r := c.anyReg(e.r)
	switch e.op {
	case binLt:
		return opLt, l, r
	case binLe:
		return opLe, l, r
	case binGt:
		return opLt, r, l
	}
	return opLe, r, l
}

func (c *compiler) equality(l, r expr) (op opcode, a, b int) {
	if _, ok := l.(*constExpr); ok {
		l, r = r, l
	}
	if x, ok := r.(*constExpr); ok {
		if k := c.constant(x.value); k <= 0xffff {
			return opEqK, c.anyReg(l), k
		}
	}
	a = c.anyReg(l)
	return opEq, a, c.anyReg(r)
}

// flushAt is how many list items wait in registers before they are stored.
const flushAt = 50

func (c *compiler) table(e *tableExpr, dst int) {
	free := c.free
	c.buildAt(dst)
	t := c.reserve(1)
	c.line = e.line
	at := c.emit(0)
	stored, waiting, fields := 0, 0, 0
	for i, item := range e.items {
		if item.key != nil {
			fields++
			c.tableField(t, item)
			continue
		}
		if i == len(e.items)-1 && isMulti(item.value) {
			c.multi(item.value, -1)
			c.emit(abj(opSetList, t, 0, stored))
			waiting = 0
			break
		}
		c.toReg(item.value, c.reserve(1))
		waiting++
		if waiting == flushAt {
			c.emit(abj(opSetList, t, waiting, stored))
			stored += waiting
			waiting = 0
			c.free = t + 1
		}
	}
	if waiting > 0 {
		c.emit(abj(opSetList, t, waiting, stored))
		stored += waiting
	}
	c.p.code[at] = abc(opNewTable, t, min(stored, 0xffff), min(fields, 0xffff))
	c.free = free
	if t != dst {
		c.emit(abc(opMove, dst, t, 0))
	}
}

// tableField stores an item with a key; items without wait in registers.
func (c *compiler) tableField(t int, item tableItem) {
	free := c.free
	to := target{kind: targetIndex, obj: t}
	key, isConst := item.key.(*constExpr)
	k := -1
	if isConst && key.value.isString() {
		k = c.constant(key.value)
	}
	if k >= 0 && k <= 0xffff {
		to.kind, to.key = targetField, k
	} else {
		to.key = c.anyReg(item.key)
	}
	v := c.rk(item.value)
	c.line = item.line
	c.store(to, v)
	c.free = free
}

// foldBinary computes an arithmetic operation on two numeric constants, unless
// it would raise an error or give a result constants cannot express (NaN and
// the sign of zero).
func foldBinary(e *binExpr) expr {
	l, ok1 := e.l.(*constExpr)
	r, ok2 := e.r.(*constExpr)
	if !ok1 || !ok2 || e.op > binShr {
		return e
	}
	if v, ok := foldArith(ArithOp(e.op), l.value, r.value); ok {
		return &constExpr{v, e.line}
	}
	return e
}

func foldUnary(e *unExpr) expr {
	c, ok := e.e.(*constExpr)
	if !ok {
		return e
	}
	switch e.op {
	case unNot:
		return &constExpr{Bool(c.value.isFalse()), e.line}
	case unMinus, unBnot:
		op := OpUnm
		if e.op == unBnot {
			op = OpBnot
		}
		if v, ok := foldArith(op, c.value, c.value); ok {
			return &constExpr{v, e.line}
		}
	}
	return e
}

func foldArith(op ArithOp, a, b Value) (Value, bool) {
	if !a.isNumber() || !b.isNumber() {
		return Nil, false
	}
	if f, _ := b.AsFloat(); f == 0 && op.divides() {
		return Nil, false
	}
	v, ok, _ := (*State)(nil).rawArith(op, a, b)
	if ok && v.isFloat() && (math.IsNaN(v.float()) || v.float() == 0) {
		return Nil, false
	}
	return v, ok
}

func (op ArithOp) divides() bool { return op == OpDiv || op == OpIDiv || op == OpMod }
