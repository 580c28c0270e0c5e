package lua

import "math"

// ArithOp is an arithmetic or bitwise operator.
type ArithOp uint8

// The operators of Call.Arith.
const (
	OpAdd ArithOp = iota
	OpSub
	OpMul
	OpMod
	OpPow
	OpDiv
	OpIDiv
	OpBand
	OpBor
	OpBxor
	OpShl
	OpShr
	OpUnm
	OpBnot
)

func (op ArithOp) event() event  { return evAdd + event(op) }
func (op ArithOp) bitwise() bool { return op >= OpBand && op <= OpShr || op == OpBnot }

// arith computes a op b for host functions.
func (s *State) arith(op ArithOp, a, b Value) (Value, error) {
	if op >= OpUnm {
		b = a
	}
	if r, ok, err := s.rawArith(op, a, b); ok || err != nil {
		return r, err
	}
	h := s.binaryHandler(op.event(), a, b)
	if h.p == nil {
		return Nil, s.arithError(op, a, b)
	}
	return s.callBack(h, a, b)
}

func (s *State) binaryHandler(ev event, a, b Value) Value {
	if h := s.metamethod(a, ev); h.p != nil {
		return h
	}
	return s.metamethod(b, ev)
}

// rawArith computes a op b when both are numbers, and strings are not
// converted; ok is false when a metamethod has to decide.
func (s *State) rawArith(op ArithOp, a, b Value) (r Value, ok bool, err error) {
	if !a.isNumber() || !b.isNumber() {
		return Nil, false, nil
	}
	if op.bitwise() {
		r, ok := rawBitwise(op, a, b)
		return r, ok, nil
	}
	if a.isInt() && b.isInt() && op != OpDiv && op != OpPow {
		if b.n == 0 {
			if err := s.checkDivision(op); err != nil {
				return Nil, false, err
			}
		}
		return Int(intArith(op, a.int(), b.int())), true, nil
	}
	x, _ := a.AsFloat()
	y, _ := b.AsFloat()
	return Float(floatArith(op, x, y)), true, nil
}

// rawBitwise is rawArith for the operators that take integers only.
func rawBitwise(op ArithOp, a, b Value) (Value, bool) {
	x, ok1 := a.AsInt()
	y, ok2 := b.AsInt()
	if !ok1 || !ok2 {
		return Nil, false
	}
	return Int(intBitwise(op, x, y)), true
}

// checkDivision reports an operation on integers that cannot have the divisor 0.
func (s *State) checkDivision(op ArithOp) error {
	switch op {
	case OpMod:
		return s.runtimeError("attempt to perform 'n%%0'")
	case OpIDiv:
		return s.runtimeError("attempt to divide by zero")
	}
	return nil
}

// intArith computes on integers; divisors are not zero.
func intArith(op ArithOp, x, y int64) int64 {
	switch op {
	case OpAdd:
		return x + y
	case OpSub:
		return x - y
	case OpMul:
		return x * y
	case OpMod:
		return intMod(x, y)
	case OpIDiv:
		return intDiv(x, y)
	}
	return -x // OpUnm
}

func intBitwise(op ArithOp, x, y int64) int64 {
	switch op {
	case OpBand:
		return x & y
	case OpBor:
		return x | y
	case OpBxor:
		return x ^ y
	case OpShl:
		return shiftLeft(x, y)
	case OpShr:
		return shiftRight(x, y)
	}
	return ^x // OpBnot
}

func floatArith(op ArithOp, x, y float64) float64 {
	switch op {
	case OpAdd:
		return x + y
	case OpSub:
		return x - y
	case OpMul:
		return x * y
	case OpMod:
		return floatMod(x, y)
	case OpPow:
		return floatPow(x, y)
	case OpDiv:
		return x / y
	case OpIDiv:
		return math.Floor(x / y)
	}
	return -x // OpUnm
}

// intDiv rounds towards minus infinity; y is not 0.
func intDiv(x, y int64) int64 {
	if y == -1 {
		return -x // also for the smallest integer, whose quotient wraps
	}
	q := x / y
	if x%y != 0 && (x^y) < 0 {
		q--
	}
	return q
}

// intMod has the sign of y, which is not 0.
func intMod(x, y int64) int64 {
	if y == -1 {
		return 0
	}
	m := x % y
	if m != 0 && (m^y) < 0 {
		m += y
	}
	return m
}

func floatMod(x, y float64) float64 {
	m := settleNaN(eitherNaN(x, y), math.Mod(x, y))
	if m > 0 && y < 0 || m < 0 && y > 0 {
		m += y
	}
	return m
}

func floatPow(x, y float64) float64 {
	if y == 2 {
		return x * x
	}
	return power(x, y)
}

func shiftLeft(x, n int64) int64 {
	switch {
	case n <= -64 || n >= 64:
		return 0
	case n >= 0:
		return int64(uint64(x) << uint(n))
	default:
		return int64(uint64(x) >> uint(-n))
	}
}

func shiftRight(x, n int64) int64 {
	if n == math.MinInt64 {
		return 0
	}
	return shiftLeft(x, -n)
}

// toNumber converts numeric strings; numbers stay as they are.
func toNumber(v Value) (Value, bool) {
	if v.isNumber() {
		return v, true
	}
	if v.isString() {
		return parseNumber(v.str().s)
	}
	return Nil, false
}

// toFloat converts numbers and numeric strings.
func toFloat(v Value) (float64, bool) {
	n, ok := toNumber(v)
	if !ok {
		return 0, false
	}
	return n.AsFloat()
}

// toInteger converts numbers and numeric strings with an exact integer value.
func toInteger(v Value) (int64, bool) {
	if v.isInt() {
		return v.int(), true
	}
	n, ok := toNumber(v)
	if !ok {
		return 0, false
	}
	return n.AsInt()
}

// arithError tells why a op b cannot be.
func (s *State) arithError(op ArithOp, a, b Value) error {
	if op.bitwise() {
		if a.isNumber() && b.isNumber() {
			return s.integerError(a, b)
		}
		return s.operandError("perform bitwise operation on", a, b)
	}
	return s.operandError("perform arithmetic on", a, b)
}

// operandError blames the first operand unless it is a number.
func (s *State) operandError(what string, a, b Value) error {
	if a.isNumber() {
		a = b
	}
	return s.typeError(what, a)
}

func (s *State) integerError(a, b Value) error {
	if _, ok := a.AsInt(); ok {
		a = b
	}
	return s.runtimeError("number%s has no integer representation", s.variableInfo(a))
}

// arithOp does R[A] = b op c as an instruction says, where numbers of different
// kinds or metamethods are involved.
func (s *State) arithOp(t *Thread, b, c Value, i instruction) error {
	op := ArithOp(i.op() - opAdd)
	if op >= OpUnm { // the operators with constants, and behind them those of one operand
		op -= OpUnm
		if op < OpUnm && i.d() == 1 {
			b, c = c, b // the constant was on the left
		}
	}
	r, ok, err := s.rawArith(op, b, c)
	if err != nil {
		return err
	}
	if ok {
		t.stack[int(t.frame().fn)+1+i.a()] = r
		return nil
	}
	h := s.binaryHandler(op.event(), b, c)
	if h.p == nil {
		return s.arithError(op, b, c)
	}
	return s.invoke(t, contStore, i.a(), h, b, c)
}

// power is x^y. The power function of Go multiplies the rounding errors of
// repeated squaring, up to hundreds of units in the last place; here the
// squares carry their errors along.
func power(x, y float64) float64 {
	whole, fraction := math.Modf(math.Abs(y))
	if x <= 0 && fraction != 0 || isSpecial(x) || y != y || whole >= 1<<31 {
		return settleNaN(eitherNaN(x, y), math.Pow(x, y)) // the special cases are the same
	}
	if fraction > 0.5 {
		fraction--
		whole++
	}
	mantissa, exponent := math.Frexp(x)
	result, scale := wholePower(mantissa, exponent, int64(whole))
	switch fraction {
	case 0:
	case 0.5:
		result = result.times(pair{math.Sqrt(x), 0})
	default:
		root, rootScale := fractionalPower(mantissa, exponent, fraction)
		result = result.times(pair{root, 0})
		scale += rootScale
	}
	if y < 0 {
		result, scale = result.inverse(), -scale
	}
	return math.Ldexp(result.high+result.low, scale)
}

func isSpecial(x float64) bool { return x == 0 || x != x || math.IsInf(x, 0) }

// wholePower is (mantissa * 2^exponent)^n, as a pair and the power of two to
// multiply it with.
func wholePower(mantissa float64, exponent int, n int64) (result pair, scale int) {
	result = pair{1, 0}
	square, squareScale := pair{mantissa, 0}, exponent
	for ; n != 0; n >>= 1 {
		if n&1 != 0 {
			result = result.times(square)
			scale += squareScale
		}
		square = square.times(square)
		squareScale *= 2
		if square.high < 0.5 && square.high > 0 {
			square = pair{square.high * 2, square.low * 2}
			squareScale--
		}
	}
	return result, scale
}

// fractionalPower is (mantissa * 2^exponent)^y for |y| <= 0.5, as a float and
// the power of two to multiply it with. The parts are kept apart so that no
// rounding error of a large logarithm gets into the exponential.
func fractionalPower(mantissa float64, exponent int, y float64) (float64, int) {
	if mantissa < math.Sqrt2/2 {
		mantissa *= 2
		exponent--
	}
	e := float64(exponent)
	product := e * y
	whole := math.Round(product)
	rest := product - whole + math.FMA(e, y, -product)
	return math.Exp(y*math.Log(mantissa) + rest*math.Ln2), int(whole)
}

// pair is a number as the sum of two floats, the second a correction of the
// first below its last place.
type pair struct{ high, low float64 }

func (a pair) times(b pair) pair {
	high := a.high * b.high
	low := math.FMA(a.high, b.high, -high) + (a.high*b.low + a.low*b.high)
	sum := high + low
	return pair{sum, low - (sum - high)}
}

func (a pair) inverse() pair {
	high := 1 / a.high
	low := -high * (math.FMA(high, a.high, -1) + high*a.low)
	return pair{high, low}
}
