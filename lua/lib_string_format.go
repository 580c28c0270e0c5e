package lua

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"weak"
)

// Flags that conversions of string.format accept.
const (
	flagsFloat    = "-+#0 "
	flagsHex      = "-#0"
	flagsInteger  = "-+0 "
	flagsUnsigned = "-0"
	flagsText     = "-"
)

// formatting is one call of string.format.
type formatting struct {
	c *Call
	textBuffer
}

func stringFormat(c *Call) error {
	format, err := c.CheckString(1)
	if err != nil {
		return err
	}
	var room [128]byte
	f := formatting{c, textBuffer{c, room[:0]}}
	for arg := 1; format != ""; {
		k := strings.IndexByte(format, '%')
		if k < 0 {
			k = len(format)
		}
		if err := f.add(format[:k]); err != nil {
			return err
		}
		format = format[k:]
		if format == "" {
			break
		}
		if strings.HasPrefix(format, "%%") {
			f.b = append(f.b, '%')
			format = format[2:]
			continue
		}
		arg++
		if arg > c.NArgs() {
			return c.ArgError(arg, "no value")
		}
		conv, rest, ok := scanConversion(format[1:])
		if !ok {
			return c.Errorf("invalid format (too long)")
		}
		if err := f.item(&conv, arg); err != nil {
			return err
		}
		format = rest
	}
	return f.finish()
}

// item appends one argument as its conversion says.
func (f *formatting) item(conv *conversion, arg int) error {
	if err := f.c.Step(1); err != nil {
		return err
	}
	switch conv.verb {
	case 'd', 'i':
		return f.integer(conv, arg, flagsInteger)
	case 'u':
		return f.integer(conv, arg, flagsUnsigned)
	case 'o', 'x', 'X':
		return f.integer(conv, arg, flagsHex)
	case 'a', 'A', 'e', 'E', 'f', 'g', 'G':
		return f.float(conv, arg)
	case 'c':
		return f.char(conv, arg)
	case 's':
		return f.text(conv, arg)
	case 'q':
		return f.literal(conv, arg)
	case 'p':
		return f.pointer(conv, arg)
	}
	return f.c.Errorf("invalid conversion '%s' to 'format'", conv.text)
}

// parse reads the flags of a conversion.
func (f *formatting) parse(conv *conversion, flags string, precision bool) error {
	if !conv.parse(flags, precision) {
		return f.c.Errorf("invalid conversion specification: '%s'", conv.text)
	}
	return nil
}

func (f *formatting) integer(conv *conversion, arg int, flags string) error {
	n, err := f.c.CheckInt(arg)
	if err != nil {
		return err
	}
	if err := f.parse(conv, flags, true); err != nil {
		return err
	}
	f.b = conv.appendInt(f.b, n)
	return nil
}

func (f *formatting) float(conv *conversion, arg int) error {
	n, err := f.c.CheckFloat(arg)
	if err != nil {
		return err
	}
	if err := f.parse(conv, flagsFloat, true); err != nil {
		return err
	}
	f.b = conv.appendFloat(f.b, n)
	return nil
}

func (f *formatting) char(conv *conversion, arg int) error {
	if err := f.parse(conv, flagsText, false); err != nil {
		return err
	}
	n, err := f.c.CheckInt(arg)
	if err != nil {
		return err
	}
	f.b = conv.appendText(f.b, string([]byte{byte(n)}))
	return nil
}

func (f *formatting) text(conv *conversion, arg int) error {
	s, err := f.c.ToString(f.c.Arg(arg))
	if err != nil {
		return err
	}
	if conv.plain() {
		return f.add(s)
	}
	if strings.IndexByte(s, 0) >= 0 {
		return f.c.ArgError(arg, "string contains zeros")
	}
	if err := f.parse(conv, flagsText, true); err != nil {
		return err
	}
	if conv.precision < 0 && len(s) >= 100 {
		return f.add(s)
	}
	f.b = conv.appendText(f.b, s)
	return nil
}

// literal appends a value in the form in which the Lua reader accepts it.
func (f *formatting) literal(conv *conversion, arg int) error {
	if !conv.plain() {
		return f.c.Errorf("specifier '%%q' cannot have modifiers")
	}
	switch v := f.c.Arg(arg); v.Kind() {
	case KindString:
		s := v.str().s
		if err := f.c.Alloc(2*len(s) + 2); err != nil {
			return err
		}
		if err := f.c.Step(len(s)); err != nil {
			return err
		}
		f.b = appendQuoted(f.b, s)
	case KindInt:
		f.b = appendQuotedInt(f.b, v.int())
	case KindFloat:
		f.b = appendQuotedFloat(f.b, v.float())
	case KindNil, KindBool:
		f.b = append(f.b, v.String()...)
	default:
		return f.c.ArgError(arg, "value has no literal form")
	}
	return nil
}

// pointer appends the identity of an object, which is no address: it is the
// number that tostring shows.
func (f *formatting) pointer(conv *conversion, arg int) error {
	if err := f.parse(conv, flagsText, false); err != nil {
		return err
	}
	text := "(null)"
	switch v := f.c.Arg(arg); {
	case v.isString():
		text = fmt.Sprintf("0x%08x", f.c.state.stringIdentity(v.str()))
	case idSlot(v) != nil:
		text = addressText(f.c.state.identify(v))
	}
	f.b = conv.appendText(f.b, text)
	return nil
}

// internedString is the length up to which the reference keeps equal strings
// as one object.
const internedString = 40

// maxStringNumbers is how many long strings keep their numbers.
const maxStringNumbers = 10000

// stringNumbersKey is where a state keeps the numbers of long strings.
type stringNumbersKey struct{}

// stringIdentity numbers a string for %p. Equal short strings are the same
// object in the reference, so their number comes from their bytes; long
// strings are numbered when they are first asked for.
func (s *State) stringIdentity(str *Str) uint64 {
	if len(str.s) > internedString {
		numbers, ok := s.Stored(stringNumbersKey{}).(map[weak.Pointer[Str]]uint32)
		if !ok {
			numbers = map[weak.Pointer[Str]]uint32{}
			s.Store(stringNumbersKey{}, numbers)
		}
		key := weak.Make(str)
		if numbers[key] == 0 {
			if len(numbers) >= maxStringNumbers {
				clear(numbers)
			}
			s.lastID++
			numbers[key] = s.lastID
		}
		return objectAddress(numbers[key])
	}
	h := uint64(14695981039346656037)
	for _, c := range []byte(str.s) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h>>16 | 1<<48
}

// addressText writes the number of an object as tostring does.
func addressText(id uint32) string { return fmt.Sprintf("0x%08x", objectAddress(id)) }

// objectAddress spreads numbers so that they look like addresses.
func objectAddress(id uint32) uint64 { return uint64(id) * 0x20 }

// A conversion is one item of a format string, such as "%-8.3f", printed as C
// prints it.
type conversion struct {
	text      string // the whole item, from '%' on
	verb      byte   // last byte of text; 0 at the end of the format
	minus     bool
	plus      bool
	space     bool
	alternate bool // '#'
	zero      bool
	width     int
	precision int // -1 when not given
}

// maxConversion is the length from which on a conversion is too long.
const maxConversion = 22

// scanConversion cuts the conversion at the start of format, whose '%' is
// already gone, without looking at what its flags mean.
func scanConversion(format string) (c conversion, rest string, ok bool) {
	n := 0
	for n < len(format) && strings.IndexByte("-+#0 123456789.", format[n]) >= 0 {
		n++
	}
	if n+1 >= maxConversion {
		return c, format, false
	}
	if n < len(format) {
		c.verb = format[n]
		n++
	}
	c.text = "%" + format[:n]
	return c, format[n:], true
}

// plain tells whether there is nothing between the '%' and the verb.
func (c *conversion) plain() bool { return len(c.text) == 2 }

// parse reads flags, width and precision. It gives false when a flag is not
// among those allowed, when there is a precision and none is allowed, or when
// a number has more than two digits.
func (c *conversion) parse(flags string, precision bool) bool {
	s := c.text[1 : len(c.text)-1]
	for s != "" && strings.IndexByte(flags, s[0]) >= 0 {
		switch s[0] {
		case '-':
			c.minus = true
		case '+':
			c.plus = true
		case ' ':
			c.space = true
		case '#':
			c.alternate = true
		case '0':
			c.zero = true
		}
		s = s[1:]
	}
	c.precision = -1
	if strings.HasPrefix(s, "0") {
		return false
	}
	c.width, s = twoDigits(s)
	if strings.HasPrefix(s, ".") && precision {
		c.precision, s = twoDigits(s[1:])
	}
	return s == ""
}

// twoDigits reads a number of at most two digits; none is 0.
func twoDigits(s string) (n int, rest string) {
	for k := 0; k < 2 && s != "" && isDecimalDigit(s[0]); k++ {
		n = n*10 + int(s[0]-'0')
		s = s[1:]
	}
	return n, s
}

// pad appends prefix and body in the conversion's width, with zeros between
// the two when zeros is set.
func (c *conversion) pad(dst []byte, prefix, body string, zeros bool) []byte {
	fill := c.width - len(prefix) - len(body)
	if !zeros && !c.minus {
		dst = appendFill(dst, ' ', fill)
	}
	dst = append(dst, prefix...)
	if zeros && !c.minus {
		dst = appendFill(dst, '0', fill)
	}
	dst = append(dst, body...)
	if c.minus {
		dst = appendFill(dst, ' ', fill)
	}
	return dst
}

func appendFill(dst []byte, c byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, c)
	}
	return dst
}

// sign is what stands before a number.
func (c *conversion) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case c.plus:
		return "+"
	case c.space:
		return " "
	}
	return ""
}

// appendText prints a string: cut to the precision, padded to the width.
func (c *conversion) appendText(dst []byte, s string) []byte {
	if c.precision >= 0 && c.precision < len(s) {
		s = s[:c.precision]
	}
	return c.pad(dst, "", s, false)
}

// appendInt prints an integer as d, i, u, o, x or X.
func (c *conversion) appendInt(dst []byte, n int64) []byte {
	prefix, body := c.intDigits(n)
	if c.precision == 0 && n == 0 {
		body = ""
	}
	if short := c.precision - len(body); short > 0 {
		body = strings.Repeat("0", short) + body
	}
	if c.verb == 'o' && c.alternate && !strings.HasPrefix(body, "0") {
		body = "0" + body
	}
	if c.verb == 'X' {
		prefix, body = strings.ToUpper(prefix), strings.ToUpper(body)
	}
	return c.pad(dst, prefix, body, c.zero && c.precision < 0)
}

// intDigits gives the sign or prefix and the digits of an integer, in lower case.
func (c *conversion) intDigits(n int64) (prefix, digits string) {
	switch c.verb {
	case 'd', 'i':
		magnitude := uint64(n)
		if n < 0 {
			magnitude = -magnitude
		}
		return c.sign(n < 0), strconv.FormatUint(magnitude, 10)
	case 'u':
		return "", strconv.FormatUint(uint64(n), 10)
	case 'o':
		return "", strconv.FormatUint(uint64(n), 8)
	}
	if c.alternate && n != 0 {
		prefix = "0x"
	}
	return prefix, strconv.FormatUint(uint64(n), 16)
}

// appendFloat prints a float as a, e, f or g, or their capitals.
func (c *conversion) appendFloat(dst []byte, f float64) []byte {
	prefix := c.sign(math.Signbit(f))
	f = math.Abs(f)
	finite := true
	var body string
	switch {
	case math.IsNaN(f):
		body, finite = "nan", false
	case math.IsInf(f, 0):
		body, finite = "inf", false
	default:
		body = c.magnitude(f)
		if c.verb|0x20 == 'a' {
			prefix += "0x"
		}
	}
	if c.verb < 'a' {
		prefix, body = strings.ToUpper(prefix), strings.ToUpper(body)
	}
	return c.pad(dst, prefix, body, c.zero && finite)
}

// magnitude prints a finite float that is not negative, in lower case.
func (c *conversion) magnitude(f float64) string {
	precision := c.precision
	if precision < 0 {
		precision = 6
	}
	switch c.verb | 0x20 {
	case 'a':
		return hexMagnitude(f, c.precision, c.alternate)
	case 'f':
		return c.withPoint(strconv.FormatFloat(f, 'f', precision, 64))
	case 'e':
		return c.withPoint(strconv.FormatFloat(f, 'e', precision, 64))
	}
	precision = max(precision, 1)
	if !c.alternate {
		return strconv.FormatFloat(f, 'g', precision, 64)
	}
	scientific := strconv.FormatFloat(f, 'e', precision-1, 64)
	exponent, err := strconv.Atoi(scientific[strings.IndexByte(scientific, 'e')+1:])
	if err != nil || exponent < -4 || exponent >= precision {
		return c.withPoint(scientific)
	}
	return c.withPoint(strconv.FormatFloat(f, 'f', precision-1-exponent, 64))
}

// withPoint adds the decimal point that the flag '#' asks for.
func (c *conversion) withPoint(s string) string {
	if !c.alternate || strings.IndexByte(s, '.') >= 0 {
		return s
	}
	if e := strings.IndexByte(s, 'e'); e >= 0 {
		return s[:e] + "." + s[e:]
	}
	return s + "."
}

// hexMagnitude prints what follows "0x" in the conversion %a. Subnormal
// numbers keep a leading 0 and the exponent -1022, as in the GNU C library.
func hexMagnitude(f float64, precision int, point bool) string {
	const fractionDigits = 13
	bits := math.Float64bits(f)
	exponent := int(bits>>52) - 1023
	fraction := bits & (1<<52 - 1)
	lead := uint64(1)
	if exponent == -1023 {
		lead, exponent = 0, -1022
		if fraction == 0 {
			exponent = 0
		}
	}
	if precision >= 0 && precision < fractionDigits {
		whole := roundToEven(lead<<52|fraction, uint(4*(fractionDigits-precision)))
		lead, fraction = whole>>52, whole&(1<<52-1)
	}
	digits := strconv.FormatUint(1<<52|fraction, 16)[1:]
	if precision < 0 {
		digits = strings.TrimRight(digits, "0")
	} else {
		digits = (digits + strings.Repeat("0", max(precision-fractionDigits, 0)))[:precision]
	}
	var b strings.Builder
	b.WriteString(strconv.FormatUint(lead, 10))
	if digits != "" || point {
		b.WriteByte('.')
	}
	b.WriteString(digits)
	b.WriteByte('p')
	if exponent >= 0 {
		b.WriteByte('+')
	}
	b.WriteString(strconv.Itoa(exponent))
	return b.String()
}

// roundToEven clears the lowest bits of n, at least one, and rounds what is left
// to the nearest value, to the even one when two are as near.
func roundToEven(n uint64, bits uint) uint64 {
	half := uint64(1) << (bits - 1)
	rest := n & (half<<1 - 1)
	n -= rest
	if rest > half || rest == half && n>>bits&1 == 1 {
		n += half << 1
	}
	return n
}

// appendQuoted writes s as a literal that the Lua reader gives back as s.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for k := 0; k < len(s); k++ {
		switch ch := s[k]; {
		case ch == '"' || ch == '\\' || ch == '\n':
			dst = append(dst, '\\', ch)
		case ch < ' ' || ch == 127:
			dst = append(dst, '\\')
			if k+1 < len(s) && isDecimalDigit(s[k+1]) {
				dst = append(dst, '0'+ch/100, '0'+ch/10%10, '0'+ch%10)
			} else {
				dst = strconv.AppendUint(dst, uint64(ch), 10)
			}
		default:
			dst = append(dst, ch)
		}
	}
	return append(dst, '"')
}

// appendQuotedFloat writes floats so that they read back exactly.
func appendQuotedFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "1e9999"...)
	case math.IsInf(f, -1):
		return append(dst, "-1e9999"...)
	case math.IsNaN(f):
		return append(dst, "(0/0)"...)
	}
	hex := conversion{verb: 'a', precision: -1}
	return hex.appendFloat(dst, f)
}

// appendQuotedInt writes integers so that they read back as integers.
func appendQuotedInt(dst []byte, n int64) []byte {
	if n == math.MinInt64 {
		return append(dst, "0x8000000000000000"...)
	}
	return strconv.AppendInt(dst, n, 10)
}
