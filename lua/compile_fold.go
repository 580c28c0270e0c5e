package lua

import "math"

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
