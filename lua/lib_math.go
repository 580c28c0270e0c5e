package lua

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// MathLib is the library "math". Its random numbers start from
// [Options.Seed].
var MathLib = NewLibrary("math", []Reg{
	{"abs", mathAbs},
	{"ceil", mathCeil},
	{"floor", mathFloor},
	{"max", mathMax},
	{"min", mathMin},
	{"fmod", mathFmod},
	{"modf", mathModf},
	{"log", mathLog},
	{"exp", mathFunc(math.Exp)},
	{"sqrt", mathFunc(math.Sqrt)},
	{"sin", mathFunc(math.Sin)},
	{"cos", mathFunc(math.Cos)},
	{"tan", mathFunc(math.Tan)},
	{"asin", mathFunc(positiveNaN(math.Asin))},
	{"acos", mathFunc(positiveNaN(math.Acos))},
	{"atan", mathAtan},
	{"deg", mathFunc(func(x float64) float64 { return x * (180 / math.Pi) })},
	{"rad", mathFunc(func(x float64) float64 { return x * (math.Pi / 180) })},
	{"random", mathRandom},
	{"randomseed", mathRandomseed},
	{"tointeger", mathTointeger},
	{"type", mathType},
	{"ult", mathUlt},
}, []Const{
	{"pi", Float(math.Pi)},
	{"huge", Float(math.Inf(1))},
	{"maxinteger", Int(math.MaxInt64)},
	{"mininteger", Int(math.MinInt64)},
}, seedRandom)

// mathFunc makes a library function of a function of one number.
func mathFunc(f func(float64) float64) Func {
	return func(c *Call) error {
		x, err := c.CheckFloat(1)
		if err != nil {
			return err
		}
		return c.Return(Float(settleNaN(x, f(x))))
	}
}

// settleNaN gives the result y of a function of x. A NaN, whose sign tostring
// shows, is the one that C gives: x itself, or the one processors make.
func settleNaN(x, y float64) float64 {
	const processorNaN = 0xfff8 << 48
	switch {
	case y == y || math.Float64bits(y) == libraryNaN:
		return y
	case x != x:
		return x
	}
	return math.Float64frombits(processorNaN)
}

// eitherNaN gives the operand that is NaN, the first if both are.
func eitherNaN(x, y float64) float64 {
	if x != x {
		return x
	}
	return y
}

// libraryNaN is what the functions give that make a NaN on their own in C.
const libraryNaN = 0x7ff8 << 48

// positiveNaN marks a function as one of those.
func positiveNaN(f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		y := f(x)
		if y != y && x == x {
			return math.Float64frombits(libraryNaN)
		}
		return y
	}
}

// integral gives a float without fraction as an integer where it fits in one.
func integral(f float64) Value {
	if i, ok := floatToInt(f); ok {
		return Int(i)
	}
	return Float(f)
}

func mathAbs(c *Call) error {
	if v := c.Arg(1); v.isInt() {
		return c.Return(Int(max(v.int(), -v.int())))
	}
	x, err := c.CheckFloat(1)
	if err != nil {
		return err
	}
	return c.Return(Float(math.Abs(x)))
}

func mathFloor(c *Call) error { return round(c, math.Floor) }
func mathCeil(c *Call) error  { return round(c, math.Ceil) }

func round(c *Call, f func(float64) float64) error {
	if v := c.Arg(1); v.isInt() {
		return c.Return(v)
	}
	x, err := c.CheckFloat(1)
	if err != nil {
		return err
	}
	return c.Return(integral(f(x)))
}

func mathMax(c *Call) error {
	return c.extreme(func(best, v Value) (bool, error) { return c.Less(best, v) })
}

func mathMin(c *Call) error {
	return c.extreme(func(best, v Value) (bool, error) { return c.Less(v, best) })
}

// extreme returns the argument that no other one beats.
func (c *Call) extreme(beaten func(best, v Value) (bool, error)) error {
	if err := c.CheckAny(1); err != nil {
		return err
	}
	best := c.Arg(1)
	for _, v := range c.Args()[1:] {
		isBeaten, err := beaten(best, v)
		if err != nil {
			return err
		}
		if isBeaten {
			best = v
		}
	}
	return c.Return(best)
}

func mathFmod(c *Call) error {
	if a, b := c.Arg(1), c.Arg(2); a.isInt() && b.isInt() {
		switch b.int() {
		case 0:
			return c.ArgError(2, "zero")
		case -1:
			return c.Return(Int(0)) // the division would overflow
		}
		return c.Return(Int(a.int() % b.int()))
	}
	x, err := c.CheckFloat(1)
	if err != nil {
		return err
	}
	y, err := c.CheckFloat(2)
	if err != nil {
		return err
	}
	return c.Return(Float(settleNaN(eitherNaN(x, y), math.Mod(x, y))))
}

func mathModf(c *Call) error {
	if v := c.Arg(1); v.isInt() {
		return c.Return(v, Float(0))
	}
	x, err := c.CheckFloat(1)
	if err != nil {
		return err
	}
	whole, fraction := math.Trunc(x), 0.0
	if whole != x {
		fraction = x - whole
	}
	return c.Return(integral(whole), Float(fraction))
}

func mathLog(c *Call) error {
	x, err := c.CheckFloat(1)
	if err != nil {
		return err
	}
	if c.Arg(2).IsNil() {
		return c.Return(Float(settleNaN(x, math.Log(x))))
	}
	base, err := c.CheckFloat(2)
	if err != nil {
		return err
	}
	switch base {
	case 2:
		return c.Return(Float(settleNaN(x, math.Log2(x))))
	case 10:
		return c.Return(Float(settleNaN(x, positiveNaN(log10)(x))))
	}
	return c.Return(Float(settleNaN(eitherNaN(x, base), math.Log(x)/math.Log(base))))
}

// log10 is exact for powers of ten, as that of C is.
func log10(x float64) float64 {
	y := math.Log10(x)
	if whole := math.Round(y); whole != y && math.Pow(10, whole) == x {
		return whole
	}
	return y
}

func mathAtan(c *Call) error {
	y, err := c.CheckFloat(1)
	if err != nil {
		return err
	}
	x, err := c.OptFloat(2, 1)
	if err != nil {
		return err
	}
	return c.Return(Float(settleNaN(eitherNaN(y, x), math.Atan2(y, x))))
}

func mathTointeger(c *Call) error {
	if err := c.CheckAny(1); err != nil {
		return err
	}
	if i, ok := toInteger(c.Arg(1)); ok {
		return c.Return(Int(i))
	}
	return c.Return(Nil)
}

func mathType(c *Call) error {
	if err := c.CheckAny(1); err != nil {
		return err
	}
	switch c.Arg(1).Kind() {
	case KindInt:
		return c.Return(integerName.value())
	case KindFloat:
		return c.Return(floatName.value())
	}
	return c.Return(Nil)
}

// The results of math.type.
var (
	integerName = newConstant("integer")
	floatName   = newConstant("float")
)

func mathUlt(c *Call) error {
	a, err := c.CheckInt(1)
	if err != nil {
		return err
	}
	b, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	return c.Return(Bool(uint64(a) < uint64(b)))
}

// random is the generator of math.random, xoshiro256**, which gives the same
// numbers as the reference for the same seed.
type random [4]uint64

// seed starts the sequence that belongs to two numbers.
func (r *random) seed(n1, n2 uint64) {
	*r = random{n1, 0xff, n2, 0} // 0xff because the state must never be zero
	for range 16 {
		r.next()
	}
}

func (r *random) next() uint64 {
	result := bits.RotateLeft64(r[1]*5, 7) * 9
	shifted := r[1] << 17
	r[2] ^= r[0]
	r[3] ^= r[1]
	r[1] ^= r[2]
	r[0] ^= r[3]
	r[2] ^= shifted
	r[3] = bits.RotateLeft64(r[3], 45)
	return result
}

// float gives a number from 0 up to but not including 1.
func (r *random) float() float64 { return float64(r.next()>>11) * 0x1p-53 }

// below gives a number from 0 to limit, limit included, every one equally
// likely: numbers are cut to the bits of limit and drawn anew while too large.
func (r *random) below(limit uint64) uint64 {
	mask := uint64(1)<<bits.Len64(limit) - 1
	for {
		if n := r.next() & mask; n <= limit {
			return n
		}
	}
}

// seedRandom starts the generator of a state as its options say.
func seedRandom(s *State, _ *Table) error {
	if s.opts.Seed != 0 {
		s.random.seed(s.opts.Seed, 0)
	} else {
		s.random.seed(rand.Uint64(), rand.Uint64())
	}
	return nil
}

func mathRandom(c *Call) error {
	r := &c.state.random
	low, up := int64(1), int64(0)
	var err error
	switch c.NArgs() {
	case 0:
		return c.Return(Float(r.float()))
	case 1:
		if up, err = c.CheckInt(1); err != nil {
			return err
		}
		if up == 0 {
			return c.Return(Int(int64(r.next())))
		}
	case 2:
		if low, err = c.CheckInt(1); err != nil {
			return err
		}
		if up, err = c.CheckInt(2); err != nil {
			return err
		}
	default:
		return c.Errorf("wrong number of arguments")
	}
	if low > up {
		return c.ArgError(1, "interval is empty")
	}
	return c.Return(Int(low + int64(r.below(uint64(up)-uint64(low)))))
}

func mathRandomseed(c *Call) error {
	n1, n2 := int64(rand.Uint64()), int64(rand.Uint64())
	if c.NArgs() > 0 {
		var err error
		if n1, err = c.CheckInt(1); err != nil {
			return err
		}
		if n2, err = c.OptInt(2, 0); err != nil {
			return err
		}
	}
	c.state.random.seed(uint64(n1), uint64(n2))
	return c.Return(Int(n1), Int(n2))
}
