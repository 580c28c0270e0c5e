package lua

import (
	"math"
	"strconv"
	"testing"
)

func TestParseNumeral(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		want any // int64, float64 or nil
	}{
		{"0", int64(0)}, {"-0", int64(0)}, {"10", int64(10)}, {" \t10\n\v\f\r", int64(10)}, {"+7", int64(7)},
		{"9223372036854775807", int64(math.MaxInt64)}, {"-9223372036854775808", int64(math.MinInt64)},
		{"9223372036854775808", float64(1 << 63)}, {"-9223372036854775809", -float64(1 << 63)},
		{"99999999999999999999", 1e20}, {"0x10", int64(16)}, {"-0xA", int64(-10)}, {"0Xff", int64(255)},
		{"0xffffffffffffffff", int64(-1)}, {"0x1ffffffffffffffff", int64(-1)}, {"0x", nil}, {"x", nil},
		{"", nil}, {" ", nil}, {"-", nil}, {"- 1", nil}, {"1 1", nil}, {"1e", nil}, {"1e+", nil}, {"e1", nil}, {".", nil}, {".e1", nil},
		{"1.", 1.0}, {".5", 0.5}, {"1e1", 10.0}, {"1E-2", 0.01}, {"-1.5e+3", -1500.0}, {"0x.8", 0.5}, {"0x1.8p3", 12.0}, {"0xA.", 10.0},
		{"0x1p-1", 0.5}, {"0x1p", nil}, {"0x.p1", nil}, {"0x1P+4", 16.0}, {"1_000", nil}, {"0x1_0p1", nil}, {"inf", nil}, {"nan", nil}, {"-inf", nil},
		{"infinity", nil}, {"1e999", math.Inf(1)}, {"-1e999", math.Inf(-1)}, {"1e-999", 0.0}, {"0b1", nil}, {"1\x00", nil}, {"1f", nil},
	} {
		i, f, isInt, ok := parseNumeral(test.in)
		var got any
		switch {
		case ok && isInt:
			got = i
		case ok:
			got = f
		}
		if got != test.want {
			t.Errorf("parseNumeral(%q) = %v (%T), want %v (%T)", test.in, got, got, test.want, test.want)
		}
	}
}

func TestFormatFloat(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   float64
		want string
	}{
		{0, "0.0"}, {math.Copysign(0, -1), "-0.0"}, {1, "1.0"}, {-3, "-3.0"}, {0.1, "0.1"}, {1e13, "10000000000000.0"},
		{99999999999999, "99999999999999.0"}, {1e14, "1e+14"}, {1e15, "1e+15"}, {1e100, "1e+100"}, {1e-5, "1e-05"}, {0.0001, "0.0001"},
		{math.Pi, "3.1415926535898"}, {1.0 / 3, "0.33333333333333"}, {-1.5e300, "-1.5e+300"}, {5e-324, "4.9406564584125e-324"},
		{math.Inf(1), "inf"}, {math.Inf(-1), "-inf"}, {math.Float64frombits(0x7ff8 << 48), "nan"}, {math.Float64frombits(0xfff8 << 48), "-nan"},
		{123456789012345.6, "1.2345678901235e+14"}, {1 << 53, "9.007199254741e+15"}, {-(1 << 63), "-9.2233720368548e+18"},
	} {
		if got := formatFloat(test.in); got != test.want {
			t.Errorf("formatFloat(%v) = %q, want %q", test.in, got, test.want)
		}
	}
}

func TestFloatToInt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   float64
		want int64
		ok   bool
	}{
		{0, 0, true}, {-2, -2, true}, {1.5, 1, false}, {1 << 62, 1 << 62, true}, {1 << 63, 0, false}, {-(1 << 63), math.MinInt64, true},
		{math.Inf(1), 0, false}, {math.NaN(), 0, false},
	} {
		got, ok := floatToInt(test.in)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("floatToInt(%v) = %d, %v", test.in, got, ok)
		}
	}
}

// FuzzParseNumber compares the reader of numerals with the writers: what is
// read must be written in a form that reads back as the same number.
func FuzzParseNumber(f *testing.F) {
	for _, seed := range []string{"0", "-1", "0x1p4", "1e308", "0xffffffffffffffffff", " .5 ", "9223372036854775808", "1e", "0x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		i, x, isInt, ok := parseNumeral(s)
		switch {
		case !ok:
		case isInt:
			if back, _, isInt, ok := parseNumeral(formatInt(i)); !ok || !isInt || back != i {
				t.Fatalf("%q reads as %d, which reads back as %d", s, i, back)
			}
		case math.IsNaN(x):
			t.Fatalf("%q reads as NaN", s)
		case !math.IsInf(x, 0):
			exact := strconv.FormatFloat(x, 'x', -1, 64)
			if _, back, isInt, ok := parseNumeral(exact); !ok || isInt || back != x {
				t.Fatalf("%q reads as %v, which reads back as %v", s, x, back)
			}
		}
	})
}
