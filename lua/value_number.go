package lua

import (
	"math"
	"strconv"
)

// parseNumeral reads s as Lua reads a numeral in source text and in tonumber:
// optional white space around, an optional sign, decimal or hexadecimal,
// integer or float. Hexadecimal integers wrap around modulo 2^64; decimal
// integers that do not fit in 64 bits become floats. Exactly one of i and f
// holds the result, told by isInt; ok is false when s is no numeral at all.
func parseNumeral(s string) (i int64, f float64, isInt, ok bool) {
	s = trimSpace(s)
	if i, ok = parseInteger(s); ok {
		return i, 0, true, true
	}
	f, ok = parseReal(s)
	return 0, f, false, ok
}

// parseInteger reads a numeral that denotes an integer; no white space.
func parseInteger(s string) (int64, bool) {
	digits, neg := cutSign(s)
	if digits == "" {
		return 0, false
	}
	if isHexPrefixed(digits) {
		return parseHexInteger(digits[2:], neg)
	}
	var n uint64
	for k := 0; k < len(digits); k++ {
		d := digits[k] - '0'
		if d > 9 {
			return 0, false
		}
		if n > (math.MaxUint64-9)/10 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	switch {
	case neg && n <= 1<<63:
		return int64(-n), true
	case !neg && n <= math.MaxInt64:
		return int64(n), true
	}
	return 0, false
}

func parseHexInteger(digits string, neg bool) (int64, bool) {
	if digits == "" {
		return 0, false
	}
	var n uint64
	for k := 0; k < len(digits); k++ {
		d := hexDigit(digits[k])
		if d < 0 {
			return 0, false
		}
		n = n<<4 | uint64(d)
	}
	if neg {
		n = -n
	}
	return int64(n), true
}

// parseReal reads a numeral that denotes a float; no white space. Names such
// as "inf" and "nan" are not numerals.
func parseReal(s string) (float64, bool) {
	digits, _ := cutSign(s)
	hex := isHexPrefixed(digits)
	hasExponent, ok := scanReal(digits, hex)
	if !ok {
		return 0, false
	}
	if hex && !hasExponent {
		s += "p0" // strconv insists on the exponent that Lua lets one leave out
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) && f != 0 {
		return 0, false
	}
	return f, true
}

// scanReal checks the form of an unsigned float numeral, so that the laxer
// syntax of strconv (underscores, names) does not shine through.
func scanReal(s string, hex bool) (hasExponent, ok bool) {
	isDigit, exponent := isDecimalDigit, byte('e')
	if hex {
		s, isDigit, exponent = s[2:], isHexDigit, 'p'
	}
	digits := leading(s, isDigit)
	s = s[digits:]
	if s != "" && s[0] == '.' {
		fraction := leading(s[1:], isDigit)
		s = s[1+fraction:]
		digits += fraction
	}
	if digits == 0 {
		return false, false
	}
	if s == "" {
		return false, true
	}
	if s[0]|0x20 != exponent {
		return false, false
	}
	power, _ := cutSign(s[1:])
	return true, power != "" && leading(power, isDecimalDigit) == len(power)
}

// leading counts the bytes at the start of s that are digits.
func leading(s string, isDigit func(byte) bool) (n int) {
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func cutSign(s string) (rest string, neg bool) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[1:], s[0] == '-'
	}
	return s, false
}

func isHexPrefixed(s string) bool {
	return len(s) >= 2 && s[0] == '0' && s[1]|0x20 == 'x'
}

func isDecimalDigit(c byte) bool { return c-'0' <= 9 }

func isHexDigit(c byte) bool { return hexDigit(c) >= 0 }

// hexDigit gives the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case c-'0' <= 9:
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

func isSpaceByte(c byte) bool { return c == ' ' || c-'\t' <= '\r'-'\t' }

// trimSpace cuts the white space of C's isspace from both ends.
func trimSpace(s string) string {
	for s != "" && isSpaceByte(s[0]) {
		s = s[1:]
	}
	for s != "" && isSpaceByte(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// formatInt writes an integer as tostring does.
func formatInt(i int64) string { return strconv.FormatInt(i, 10) }

// formatFloat writes a float as tostring does: "%.14g", with ".0" added to
// what would read back as an integer.
func formatFloat(f float64) string {
	var buf [32]byte
	return string(appendFloat(buf[:0], f))
}

func appendFloat(dst []byte, f float64) []byte {
	const short = 1e14 // below, integral floats have at most 14 digits
	if i := int64(f); float64(i) == f && i != 0 && i > -short && i < short {
		return append(strconv.AppendInt(dst, i, 10), ".0"...)
	}
	if f != f || f-f != 0 {
		return appendNonFinite(dst, f)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', 14, 64)
	for _, c := range dst[start:] {
		if c != '-' && !isDecimalDigit(c) {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// appendNonFinite writes infinities and NaNs, the sign of a NaN included, as
// the C library prints them.
func appendNonFinite(dst []byte, f float64) []byte {
	if math.Signbit(f) {
		dst = append(dst, '-')
	}
	if math.IsNaN(f) {
		return append(dst, "nan"...)
	}
	return append(dst, "inf"...)
}

// parseNumber reads s as parseNumeral does and gives an integer or a float.
func parseNumber(s string) (Value, bool) {
	i, f, isInt, ok := parseNumeral(s)
	switch {
	case !ok:
		return Nil, false
	case isInt:
		return Int(i), true
	}
	return Float(f), true
}
