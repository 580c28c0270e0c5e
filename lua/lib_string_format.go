package lua

import (
	"fmt"
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
