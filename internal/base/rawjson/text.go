package rawjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

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
