package lua

import "math"

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
