package lua

import (
	"math"
	"strings"
)

// equals is a == b for host functions.
func (s *State) equals(a, b Value) (bool, error) {
	if RawEqual(a, b) {
		return true, nil
	}
	h := s.equalHandler(a, b)
	if h.p == nil {
		return false, nil
	}
	r, err := s.callBack(h, a, b)
	return r.Truthy(), err
}

// equalHandler returns the __eq of two different objects of one type, or Nil.
func (s *State) equalHandler(a, b Value) Value {
	k := a.Kind()
	if k != b.Kind() || k != KindTable && k != KindUserdata || a.p == b.p {
		return Nil
	}
	return s.binaryHandler(evEq, a, b)
}

// less is a < b for host functions.
func (s *State) less(a, b Value) (bool, error) {
	if r, ok := rawLess(a, b); ok {
		return r, nil
	}
	return s.compareHandled(evLt, a, b)
}

func (s *State) compareHandled(ev event, a, b Value) (bool, error) {
	h := s.binaryHandler(ev, a, b)
	if h.p == nil {
		return false, s.compareError(a, b)
	}
	r, err := s.callBack(h, a, b)
	return r.Truthy(), err
}

func (s *State) compareError(a, b Value) error {
	x, y := s.typeName(a), s.typeName(b)
	if x == y {
		return s.runtimeError("attempt to compare two %s values", x)
	}
	return s.runtimeError("attempt to compare %s with %s", x, y)
}

// rawLess compares two numbers or two strings; ok is false for others.
func rawLess(a, b Value) (less, ok bool) {
	if a.isString() && b.isString() {
		return a.str().s < b.str().s, true
	}
	if !a.isNumber() || !b.isNumber() {
		return false, false
	}
	switch {
	case a.isInt() && b.isInt():
		return a.int() < b.int(), true
	case a.isFloat() && b.isFloat():
		return a.float() < b.float(), true
	case a.isInt():
		return intLessFloat(a.int(), b.float()), true
	default:
		return floatLessInt(a.float(), b.int()), true
	}
}

func rawLessEqual(a, b Value) (lessEqual, ok bool) {
	if a.isString() && b.isString() {
		return strings.Compare(a.str().s, b.str().s) <= 0, true
	}
	if !a.isNumber() || !b.isNumber() {
		return false, false
	}
	switch {
	case a.isInt() && b.isInt():
		return a.int() <= b.int(), true
	case a.isFloat() && b.isFloat():
		return a.float() <= b.float(), true
	case a.isInt():
		return !math.IsNaN(b.float()) && !floatLessInt(b.float(), a.int()), true
	default:
		return !math.IsNaN(a.float()) && !intLessFloat(b.int(), a.float()), true
	}
}

// intLessFloat compares exactly: large integers have no float of their own.
func intLessFloat(i int64, f float64) bool {
	switch {
	case math.IsNaN(f):
		return false
	case f >= 0x1p63:
		return true
	case f <= -0x1p63:
		return false
	}
	// i < f is i < ceil(f) for integers.
	return i < int64(math.Ceil(f)) || math.Ceil(f) == 0x1p63
}

func floatLessInt(f float64, i int64) bool {
	switch {
	case math.IsNaN(f):
		return false
	case f >= 0x1p63:
		return false
	case f < -0x1p63:
		return true
	}
	// f < i is floor(f) < i for integers.
	return int64(math.Floor(f)) < i
}

// equalOp tells whether two values are equal that are not plainly the same. It is not
// decided when a metamethod was called, which says so later.
func (s *State) equalOp(t *Thread, x, y Value) (yes, decided bool, err error) {
	if h := s.equalHandler(x, y); h.p != nil {
		return false, false, s.invoke(t, contCompare, 0, h, x, y)
	}
	return RawEqual(x, y), true, nil
}

// orderOp compares as an instruction says, where numbers of different kinds, strings
// or metamethods are involved; decided as in equalOp.
func (s *State) orderOp(t *Thread, x, y Value, i instruction) (yes, decided bool, err error) {
	ev := evLt
	switch i.op() {
	case opLe, opNotLe, opLeK, opNotLeK, opGeK, opNotGeK:
		ev = evLe
		yes, decided = rawLessEqual(x, y)
	default:
		yes, decided = rawLess(x, y)
	}
	if decided {
		return yes, true, nil
	}
	h := s.binaryHandler(ev, x, y)
	if h.p == nil {
		return false, false, s.compareError(x, y)
	}
	return false, false, s.invoke(t, contCompare, 0, h, x, y)
}

// finishCompare takes the conditional jump of the running function's last
// instruction as a metamethod decided.
func (s *State) finishCompare(t *Thread, yes bool) {
	f := t.frame()
	i := t.function(f).proto.code[f.pc-1]
	if yes != i.negated() {
		f.pc += int32(i.j())
	}
}
