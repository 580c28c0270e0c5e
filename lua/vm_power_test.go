package lua

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestPowerSpecialCases(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	for _, test := range []struct{ x, y, want float64 }{
		{2, 10, 1024}, {2, -1, 0.5}, {2, 0.5, math.Sqrt2}, {-2, 3, -8}, {-2, 2, 4}, {-8, 1.0 / 3, nan}, {0, 0, 1}, {0, -1, inf}, {nan, 0, 1}, {1, nan, 1},
		{inf, 2, inf}, {2, inf, inf}, {0.5, inf, 0}, {2, 1023, 0x1p1023}, {2, 1024, inf}, {2, -1074, 5e-324}, {2, -1076, 0}, {10, 15, 1e15}, {10, 22, 1e22},
		{10, -3, 0.001}, {-1, 1 << 53, 1}, {1.0000001, 1e10, inf}, {0.9999999, 1e11, 0}, {5e-324, 1, 5e-324}, {5e-324, -1, inf}, {3, 1, 3}, {-3, -1, -1.0 / 3},
	} {
		if got := power(test.x, test.y); got != test.want && !(got != got && test.want != test.want) {
			t.Errorf("power(%v, %v) = %v, want %v", test.x, test.y, got, test.want)
		}
	}
}

// TestFractionalPowers compares powers with roots, which Go computes exactly.
func TestFractionalPowers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(1e-300, 1e300).Draw(t, "x")
		want := math.Sqrt(math.Sqrt(x))
		if got := power(x, 0.25); math.Abs(got-want) > want*0x1p-50 {
			t.Fatalf("power(%v, 0.25) = %v, want %v", x, got, want)
		}
		if got, want := power(x, -0.75), 1/(want*want*want); math.Abs(got-want) > want*0x1p-49 {
			t.Fatalf("power(%v, -0.75) = %v, want %v", x, got, want)
		}
	})
}

// TestPowerIsAccurate compares with powers computed with 500 bits.
func TestPowerIsAccurate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(0.01, 100).Draw(t, "x")
		n := rapid.IntRange(-150, 150).Draw(t, "n")
		exact := big.NewFloat(1).SetPrec(500)
		factor := new(big.Float).SetPrec(500).SetFloat64(x)
		for range max(n, -n) {
			exact.Mul(exact, factor)
		}
		if n < 0 {
			exact.Quo(big.NewFloat(1).SetPrec(500), exact)
		}
		want, _ := exact.Float64()
		if got := power(x, float64(n)); math.Abs(got-want) > math.Abs(want)*0x1p-52 {
			t.Fatalf("power(%v, %d) = %v, want %v", x, n, got, want)
		}
	})
}
