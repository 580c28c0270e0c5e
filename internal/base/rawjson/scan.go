package rawjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// MaxDepth is how deeply arrays and objects may nest in one message, the same as in
// encoding/json. Deeper text is refused. Callers with a stricter limit use Depth.
const MaxDepth = 10_000

var (
	errEnd   = errors.New("unexpected end of JSON")
	errDepth = fmt.Errorf("JSON nested deeper than %d", MaxDepth)
)

// text is JSON. Its methods scan it without building anything: they skip the element
// at a position and return the position behind it, so that callers can slice raw
// parts. They check the grammar strictly, except the known* methods, which expect
// valid text.
type text []byte

// space skips space.
func (t text) space(i int) int {
	for i < len(t) && t[i] <= ' ' && (t[i] == ' ' || t[i] == '\n' || t[i] == '\r' || t[i] == '\t') {
		i++
	}
	return i
}

// at returns the byte at i, or 0 at the end.
func (t text) at(i int) byte {
	if i < len(t) {
		return t[i]
	}
	return 0
}

func (t text) unexpected(i int, want string) error {
	if i >= len(t) {
		return errEnd
	}
	return fmt.Errorf("unexpected %q at byte %d, want %s", t[i], i, want)
}

// value skips a value at the given nesting depth.
func (t text) value(i, depth int) (int, error) {
	if c := t.at(i); c != '{' && c != '[' {
		return t.scalar(i, c)
	}
	return t.nested(i, depth)
}

// scalar skips a value that begins with c and is not an array or object.
func (t text) scalar(i int, c byte) (int, error) {
	switch c {
	case '"':
		return t.quoted(i)
	case 't':
		return t.literal(i, "true")
	case 'f':
		return t.literal(i, "false")
	case 'n':
		return t.literal(i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return t.number(i)
	}
	return i, t.unexpected(i, "a value")
}

// nested skips an array or object. It is not recursive.
func (t text) nested(i, depth int) (_ int, err error) {
	var buffer [64]byte
	open := buffer[:0] // the closing brackets that are still expected
	for {
		opened := false
		switch c := t.at(i); c {
		case '"':
			i, err = t.quoted(i)
		case '{', '[':
			if depth+len(open) >= MaxDepth {
				return i, errDepth
			}
			open = append(open, c+2) // in ASCII the closing bracket is two after the opening one
			i = t.space(i + 1)
			opened = t.at(i) != c+2
		default:
			i, err = t.scalar(i, c)
		}
		if err != nil {
			return i, err
		}
		if !opened {
			if i, open, err = t.close(i, open); len(open) == 0 || err != nil {
				return i, err
			}
		}
		if open[len(open)-1] == '}' {
			if i, err = t.key(i); err != nil {
				return i, err
			}
		}
	}
}

// close skips the closing brackets behind a value, and a comma. It returns the
// brackets that are still expected.
func (t text) close(i int, open []byte) (int, []byte, error) {
	for len(open) > 0 {
		i = t.space(i)
		last := len(open) - 1
		switch c := t.at(i); {
		case c == ',':
			return t.space(i + 1), open, nil
		case c == open[last]:
			open = open[:last]
		case open[last] == '}':
			return i, open, t.unexpected(i, "a comma or a closing brace")
		default:
			return i, open, t.unexpected(i, "a comma or a closing bracket")
		}
		i++
	}
	return i, open, nil
}

// key skips a key and the colon.
func (t text) key(i int) (_ int, err error) {
	if t.at(i) != '"' {
		return i, t.unexpected(i, "a string")
	}
	if i, err = t.quoted(i); err != nil {
		return i, err
	}
	return t.colon(i)
}

// colon skips the colon behind a key.
func (t text) colon(i int) (int, error) {
	if i = t.space(i); t.at(i) != ':' {
		return i, t.unexpected(i, "a colon")
	}
	return t.space(i + 1), nil
}

// quoted skips a string whose quote is at i, eight bytes at a time if possible.
func (t text) quoted(i int) (_ int, err error) {
	for i++; ; i++ {
		for i+8 <= len(t) {
			found := special(binary.LittleEndian.Uint64(t[i:]))
			if found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		switch c := t.at(i); {
		case c == '"':
			return i + 1, nil
		case c == '\\':
			if i, err = t.escape(i); err != nil {
				return i, err
			}
		case c < 0x20:
			return i, t.unexpected(i, "no control character in a string")
		}
	}
}

// special sets the high bit of the first byte in a word that is a quote, a backslash
// or a control character, and possibly those of bytes after it.
func special(word uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := word^ones*'"', word^ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (word-ones*0x20)&^word) & highs
}

// escape returns the position of the last byte of the escape sequence at a backslash.
func (t text) escape(i int) (int, error) {
	i++
	switch t.at(i) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i, nil
	case 'u':
		for range 4 {
			i++
			if !isHex(t.at(i)) {
				return i, t.unexpected(i, "four hexadecimal digits")
			}
		}
		return i, nil
	}
	return i, t.unexpected(i, "an escape")
}

func (t text) number(i int) (_ int, err error) {
	if t.at(i) == '-' {
		i++
	}
	if t.at(i) == '0' {
		i++
	} else if i, err = t.digits(i); err != nil {
		return i, err
	}
	if t.at(i) == '.' {
		if i, err = t.digits(i + 1); err != nil {
			return i, err
		}
	}
	if c := t.at(i); c != 'e' && c != 'E' {
		return i, nil
	}
	i++
	if c := t.at(i); c == '+' || c == '-' {
		i++
	}
	return t.digits(i)
}

func (t text) digits(i int) (int, error) {
	start := i
	for i < len(t) && isDigit(t[i]) {
		i++
	}
	if i == start {
		return i, t.unexpected(i, "a digit")
	}
	return i, nil
}

func (t text) literal(i int, word string) (int, error) {
	if len(t)-i < len(word) || string(t[i:i+len(word)]) != word {
		return i, t.unexpected(i, word)
	}
	return i + len(word), nil
}

// end checks that only space follows.
func (t text) end(i int) error {
	if i = t.space(i); i < len(t) {
		return t.unexpected(i, "the end")
	}
	return nil
}

// knownValue is value for valid text.
func (t text) knownValue(i int) (int, error) {
	switch c := t.at(i); c {
	case '{', '[':
		return t.knownNested(i)
	case '"':
		return t.knownQuoted(i)
	default:
		return t.scalar(i, c)
	}
}

// knownNested finds the end of an array or object by its brackets.
func (t text) knownNested(i int) (_ int, err error) {
	for depth := 0; i < len(t); i++ {
		switch t[i] {
		case '"':
			if i, err = t.knownQuoted(i); err != nil {
				return i, err
			}
			i--
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, nil
			}
		}
	}
	return i, errEnd
}

// knownQuoted finds the end of a string.
func (t text) knownQuoted(i int) (int, error) {
	for i++; ; i++ {
		at := bytes.IndexByte(t[i:], '"')
		if at < 0 {
			return len(t), errEnd
		}
		i += at
		slashes := 0
		for t[i-1-slashes] == '\\' { // stops at the opening quote at the latest
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1, nil
		}
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// Valid returns nil if data is one JSON value within MaxDepth, else why it is not.
func Valid(data []byte) error {
	t := text(data)
	end, err := t.value(t.space(0), 0)
	if err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	if err := t.end(end); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	return nil
}

// Depth returns how deeply the arrays and objects of a valid value nest.
func Depth(value json.RawMessage) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// Flatten turns valid JSON into a single line, in place. A newline in JSON can only be
// space between tokens, so it becomes a blank.
func Flatten(text []byte) {
	for _, end := range [2]byte{'\n', '\r'} {
		for i := bytes.IndexByte(text, end); i >= 0; {
			text[i] = ' '
			next := bytes.IndexByte(text[i:], end)
			if next < 0 {
				break
			}
			i += next
		}
	}
}

// AppendText writes s as a JSON string. Invalid UTF-8 becomes U+FFFD. Only characters
// that JSON requires to be escaped are escaped.
func AppendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for s != "" {
		plain := 0
		for plain < len(s) && isPlain(s[plain]) {
			plain++
		}
		dst = append(dst, s[:plain]...)
		if s = s[plain:]; s != "" {
			dst, s = appendRune(dst, s)
		}
	}
	return append(dst, '"')
}

// isPlain reports whether a byte needs no escape in a string.
func isPlain(c byte) bool { return c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf }

// appendRune writes the first rune of s, which is not plain, and returns the rest.
func appendRune(dst []byte, s string) ([]byte, string) {
	const hex = "0123456789abcdef"
	switch c := s[0]; {
	case c == '"' || c == '\\':
		dst = append(dst, '\\', c)
	case c == '\n':
		dst = append(dst, '\\', 'n')
	case c < 0x20:
		dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	default:
		r, size := utf8.DecodeRuneInString(s)
		return utf8.AppendRune(dst, r), s[size:]
	}
	return dst, s[1:]
}

// Unquote decodes a quoted string, without a copy if nothing is escaped.
func Unquote(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return inner
	}
	return []byte(text)
}

// Number decodes a JSON number; ok is false for any other value and for one that does
// not fit a float64.
func Number(raw json.RawMessage) (n float64, ok bool) {
	if len(raw) == 0 || raw[0] != '-' && !isDigit(raw[0]) {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return n, err == nil
}

// First returns the first byte of text that is not space, or 0 if there is none.
func First(data []byte) byte {
	t := text(data)
	return t.at(t.space(0))
}
