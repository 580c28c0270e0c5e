package lua

import (
	"math"
	"testing"
)

// printAs prints one value with one conversion; the flags were checked.
func printAs(t *testing.T, format string, value any) string {
	t.Helper()
	c, rest, ok := scanConversion(format[1:])
	if !ok || rest != "" || !c.parse("-+#0 ", true) {
		t.Fatalf("%q is no conversion", format)
	}
	switch v := value.(type) {
	case int:
		return string(c.appendInt(nil, int64(v)))
	case float64:
		return string(c.appendFloat(nil, v))
	}
	return string(c.appendText(nil, value.(string)))
}

func TestConversionsPrintAsInC(t *testing.T) {
	t.Parallel()
	negativeZero := math.Copysign(0, -1)
	for _, test := range []struct {
		format string
		value  any
		want   string
	}{
		{"%d", 42, "42"}, {"%5d", -42, "  -42"}, {"%-5d", 42, "42   "}, {"%+05d", 5, "+0005"}, {"%+.3d", 5, "+005"}, {"% d", 7, " 7"},
		{"%.0d", 0, ""}, {"%08.3d", 5, "     005"}, {"%d", math.MinInt64, "-9223372036854775808"}, {"%u", -1, "18446744073709551615"},
		{"%x", 255, "ff"}, {"%#x", 255, "0xff"}, {"%#x", 0, "0"}, {"%#X", 255, "0XFF"}, {"%#o", 8, "010"}, {"%#o", 0, "0"}, {"%#010x", 255, "0x000000ff"},
		{"%x", -1, "ffffffffffffffff"}, {"%f", 1.5, "1.500000"}, {"%05.1f", negativeZero, "-00.0"}, {"%.0f", 2.5, "2"}, {"%#.0f", 1.0, "1."},
		{"%.20f", 0.1, "0.10000000000000000555"}, {"%e", 12345.678, "1.234568e+04"}, {"%#.0e", 1.0, "1.e+00"}, {"%E", 1e-10, "1.000000E-10"},
		{"%g", 1e15, "1e+15"}, {"%g", 100000.0, "100000"}, {"%g", 1e6, "1e+06"}, {"%g", 0.0001, "0.0001"}, {"%g", 0.00001, "1e-05"}, {"%G", 1e-10, "1E-10"},
		{"%#g", 1.0, "1.00000"}, {"%#.3g", 1e10, "1.00e+10"}, {"%.0g", 123.0, "1e+02"}, {"%.17g", 0.1, "0.10000000000000001"}, {"%.3g", 0.0, "0"},
		{"%020f", math.Inf(1), "                 inf"}, {"%+f", math.Float64frombits(0x7ff8 << 48), "+nan"}, {"%A", math.Float64frombits(0xfff8 << 48), "-NAN"},
		{"%a", 1.0, "0x1p+0"}, {"%a", 0.5, "0x1p-1"}, {"%.0a", 1.9, "0x2p+0"}, {"%.0a", 1.5, "0x2p+0"}, {"%.0a", 2.5, "0x1p+1"}, {"%a", 5e-324, "0x0.0000000000001p-1022"},
		{"%a", 0.0, "0x0p+0"}, {"%.3a", 5e-324, "0x0.000p-1022"}, {"%#.0a", 1.0, "0x1.p+0"}, {"%20.2A", -3.14159, "          -0X1.92P+1"}, {"%.1a", 0x1.98p0, "0x1.ap+0"},
		{"%.15a", 1.0, "0x1.000000000000000p+0"}, {"%+a", 1.0, "+0x1p+0"}, {"%020a", 1.0, "0x000000000000001p+0"}, {"%.1a", 0x1.ffp-1023, "0x1.0p-1022"},
		{"%5s", "ab", "   ab"}, {"%-5s", "ab", "ab   "}, {"%.2s", "abc", "ab"}, {"%5.1s", "abc", "    a"}, {"%.s", "abc", ""},
	} {
		if got := printAs(t, test.format, test.value); got != test.want {
			t.Errorf("format(%q, %v) = %q, want %q", test.format, test.value, got, test.want)
		}
	}
}

func TestConversionsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format, flags string
		precision     bool
	}{{"%#d", "-+0 ", true}, {"%100d", "-+0 ", true}, {"%.100d", "-+0 ", true}, {"%.3c", "-", false}, {"%0s", "-", true}, {"%5-d", "-+0 ", true}, {"%..d", "-+0 ", true}} {
		c, _, ok := scanConversion(test.format[1:])
		if !ok {
			t.Errorf("%q is too long", test.format)
		}
		if c.parse(test.flags, test.precision) {
			t.Errorf("%q is accepted with the flags %q", test.format, test.flags)
		}
	}
	if _, _, ok := scanConversion("0000000000000000000000d"); ok {
		t.Error("a conversion of 23 bytes is accepted")
	}
}

func TestQuotedText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\"b\\c\nd": "\"a\\\"b\\\\c\\\nd\"", "\x00": `"\0"`, "\x001": `"\0001"`, "\r\x7f": `"\13\127"`, "\xff": "\"\xff\"",
	} {
		if got := string(appendQuoted(nil, in)); got != want {
			t.Errorf("quoted %q = %s, want %s", in, got, want)
		}
	}
	for in, want := range map[float64]string{0.1: "0x1.999999999999ap-4", 1: "0x1p+0", math.Inf(1): "1e9999", math.Inf(-1): "-1e9999"} {
		if got := string(appendQuotedFloat(nil, in)); got != want {
			t.Errorf("quoted %v = %s, want %s", in, got, want)
		}
	}
	if got := string(appendQuotedFloat(nil, math.NaN())); got != "(0/0)" {
		t.Errorf("quoted NaN = %s", got)
	}
	if got := string(appendQuotedInt(nil, math.MinInt64)); got != "0x8000000000000000" {
		t.Errorf("quoted smallest integer = %s", got)
	}
}

// FuzzFormat checks that no conversion makes the printer panic or write more
// than its widest result.
func FuzzFormat(f *testing.F) {
	f.Add("-8.3f", 1.5, int64(3), "text")
	f.Add("#020a", math.Copysign(0, -1), int64(-1), "")
	f.Add("+.99g", 1e308, int64(math.MinInt64), "\x00")
	f.Fuzz(func(t *testing.T, format string, x float64, n int64, s string) {
		c, _, ok := scanConversion(format)
		if !ok || c.verb == 0 || !c.parse("-+#0 ", true) {
			return
		}
		const widest = 99 + 309 + 10
		for _, out := range [][]byte{c.appendInt(nil, n), c.appendFloat(nil, x)} {
			if len(out) < c.width || len(out) > widest {
				t.Fatalf("%q wrote %d bytes", c.text, len(out))
			}
		}
		if out := c.appendText(nil, s); len(out) > max(c.width, len(s)) {
			t.Fatalf("%q wrote %d bytes of %d", c.text, len(out), len(s))
		}
	})
}
