package lua

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// FromJSON reads a JSON text as a value of s, charging its memory to s.
// Numbers written as integers become integers, or floats when they do not fit
// in 64 bits; all others become floats. null becomes Null. Arrays become
// tables marked as arrays (Table.IsArray), objects tables whose keys keep
// their order; of equal keys the last one counts.
func FromJSON(s *State, data []byte) (Value, error) {
	d := jsonDecoder{state: s, text: string(data)}
	v, err := d.value(0)
	if err == nil {
		d.space()
		if d.pos < len(d.text) {
			err = d.unexpected("after the value")
		}
	}
	if err != nil {
		return Nil, fmt.Errorf("reading JSON: %w", err)
	}
	return v, nil
}

type jsonDecoder struct {
	state *State
	text  string
	pos   int
}

func (d *jsonDecoder) space() {
	for d.pos < len(d.text) && strings.IndexByte(" \t\r\n", d.text[d.pos]) >= 0 {
		d.pos++
	}
}

// peek gives the next byte that is no white space, or 0 at the end.
func (d *jsonDecoder) peek() byte {
	d.space()
	if d.pos < len(d.text) {
		return d.text[d.pos]
	}
	return 0
}

// accept takes the next byte when it is c.
func (d *jsonDecoder) accept(c byte) bool {
	if d.peek() != c {
		return false
	}
	d.pos++
	return true
}

func (d *jsonDecoder) unexpected(where string) error {
	if d.pos >= len(d.text) {
		return errors.New("unexpected end " + where)
	}
	r, _ := utf8.DecodeRuneInString(d.text[d.pos:])
	return fmt.Errorf("unexpected %q %s at offset %d", r, where, d.pos)
}

func (d *jsonDecoder) value(depth int) (Value, error) {
	if depth > maxConvertDepth {
		return Nil, fmt.Errorf("nested deeper than %d levels at offset %d", maxConvertDepth, d.pos)
	}
	switch c := d.peek(); {
	case c == '{':
		return d.object(depth)
	case c == '[':
		return d.array(depth)
	case c == '"':
		text, err := d.string()
		if err != nil {
			return Nil, err
		}
		return d.newString(text)
	case c == '-' || isDecimalDigit(c):
		return d.number()
	case d.word("true"):
		return Bool(true), nil
	case d.word("false"):
		return Bool(false), nil
	case d.word("null"):
		return Null, nil
	}
	return Nil, d.unexpected("where a value should be")
}

func (d *jsonDecoder) word(w string) bool {
	if !strings.HasPrefix(d.text[d.pos:], w) {
		return false
	}
	d.pos += len(w)
	return true
}

func (d *jsonDecoder) newString(s string) (Value, error) {
	if err := d.state.alloc(len(s) + strOverhead); err != nil {
		return Nil, err
	}
	str, buf := makeStr(len(s))
	copy(buf, s)
	return str.value(), nil
}

func (d *jsonDecoder) newTable() (*Table, error) {
	if err := d.state.alloc(tableSize); err != nil {
		return nil, err
	}
	return NewTable(0, 0), nil
}

func (d *jsonDecoder) array(depth int) (Value, error) {
	d.pos++
	t, err := d.newTable()
	if err != nil {
		return Nil, err
	}
	t.MarkArray(true)
	if d.accept(']') {
		return t.Value(), nil
	}
	for i := int64(1); ; i++ {
		v, err := d.value(depth + 1)
		if err != nil {
			return Nil, err
		}
		if err := t.setInt(d.state, i, v); err != nil {
			return Nil, err
		}
		if d.accept(']') {
			return t.Value(), nil
		}
		if !d.accept(',') {
			return Nil, d.unexpected("in an array")
		}
	}
}

func (d *jsonDecoder) object(depth int) (Value, error) {
	d.pos++
	t, err := d.newTable()
	if err != nil {
		return Nil, err
	}
	if d.accept('}') {
		return t.Value(), nil
	}
	for {
		if d.peek() != '"' {
			return Nil, d.unexpected("where a key should be")
		}
		if err := d.member(t, depth); err != nil {
			return Nil, err
		}
		if d.accept('}') {
			return t.Value(), nil
		}
		if !d.accept(',') {
			return Nil, d.unexpected("in an object")
		}
	}
}

// member reads a key and its value into t.
func (d *jsonDecoder) member(t *Table, depth int) error {
	text, err := d.string()
	if err != nil {
		return err
	}
	key, err := d.newString(text)
	if err != nil {
		return err
	}
	if !d.accept(':') {
		return d.unexpected("after a key")
	}
	v, err := d.value(depth + 1)
	if err != nil {
		return err
	}
	return t.set(d.state, key, v)
}

func (d *jsonDecoder) number() (Value, error) {
	start := d.pos
	d.skip("-")
	digits := d.pos
	if !d.digits() || d.text[digits] == '0' && d.pos > digits+1 {
		return Nil, fmt.Errorf("malformed number at offset %d", start)
	}
	isInt := true
	if d.skip(".") {
		isInt = false
		if !d.digits() {
			return Nil, d.unexpected("in a number")
		}
	}
	if d.skip("eE") {
		isInt = false
		d.skip("+-")
		if !d.digits() {
			return Nil, d.unexpected("in a number")
		}
	}
	text := d.text[start:d.pos]
	if isInt {
		if i, ok := parseInteger(text); ok {
			return Int(i), nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Nil, fmt.Errorf("number %s at offset %d is too large", text, start)
	}
	return Float(f), nil
}

// skip takes the next byte when it is one of those wanted.
func (d *jsonDecoder) skip(wanted string) bool {
	if d.pos < len(d.text) && strings.IndexByte(wanted, d.text[d.pos]) >= 0 {
		d.pos++
		return true
	}
	return false
}

// digits takes digits; false when there are none.
func (d *jsonDecoder) digits() bool {
	start := d.pos
	for d.pos < len(d.text) && isDecimalDigit(d.text[d.pos]) {
		d.pos++
	}
	return d.pos > start
}

// string reads a string. What is not UTF-8 in it becomes U+FFFD, as it does in
// encoding/json.
func (d *jsonDecoder) string() (string, error) {
	d.pos++
	start := d.pos
	for d.pos < len(d.text) {
		switch c := d.text[d.pos]; {
		case c == '"':
			text := d.text[start:d.pos]
			d.pos++
			return strings.ToValidUTF8(text, "\uFFFD"), nil
		case c == '\\':
			return d.escapedString(start)
		case c < ' ':
			return "", d.unexpected("in a string")
		}
		d.pos++
	}
	return "", d.unexpected("in a string")
}

// escapedString reads on at the first backslash of a string.
func (d *jsonDecoder) escapedString(start int) (string, error) {
	out := []byte(d.text[start:d.pos])
	for d.pos < len(d.text) {
		c := d.text[d.pos]
		switch {
		case c == '"':
			d.pos++
			return strings.ToValidUTF8(string(out), "\uFFFD"), nil
		case c < ' ':
			return "", d.unexpected("in a string")
		case c != '\\':
			out = append(out, c)
			d.pos++
			continue
		}
		d.pos++
		r, err := d.escape()
		if err != nil {
			return "", err
		}
		out = utf8.AppendRune(out, r)
	}
	return "", d.unexpected("in a string")
}

// escape reads what follows a backslash.
func (d *jsonDecoder) escape() (rune, error) {
	if d.pos >= len(d.text) {
		return 0, d.unexpected("in a string")
	}
	c := d.text[d.pos]
	if k := strings.IndexByte(`"\/bfnrt`, c); k >= 0 {
		d.pos++
		return rune("\"\\/\b\f\n\r\t"[k]), nil
	}
	if c != 'u' {
		return 0, d.unexpected("after a backslash")
	}
	r, ok := d.codeUnit()
	if !ok {
		return 0, d.unexpected("in a string")
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	before := d.pos
	if strings.HasPrefix(d.text[d.pos:], `\u`) {
		d.pos++
		if low, ok := d.codeUnit(); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, nil
			}
		}
		d.pos = before
	}
	return utf8.RuneError, nil
}

// codeUnit reads "uXXXX".
func (d *jsonDecoder) codeUnit() (rune, bool) {
	if len(d.text)-d.pos < 5 {
		return 0, false
	}
	n, ok := parseHexInteger(d.text[d.pos+1:d.pos+5], false)
	if ok {
		d.pos += 5
	}
	return rune(n), ok
}
