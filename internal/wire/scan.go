package wire

import (
	"bytes"
	"errors"
	"fmt"
)

// MaxDepth is how deeply arrays and objects may nest in one message, the same as
// in encoding/json. What nests deeper is refused; Depth tells for stricter readers.
const MaxDepth = 10_000

var (
	errEnd   = errors.New("unexpected end of JSON")
	errDepth = fmt.Errorf("JSON nested deeper than %d", MaxDepth)
)

// scanner walks JSON text without building anything. It checks the grammar
// strictly and leaves positions behind, from which raw parts are cut.
type scanner struct {
	data  []byte
	pos   int
	depth int
	known bool // the text was checked before: what is skipped is not checked again
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// peek is the next byte that is not space, or 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos >= len(s.data) {
		return 0
	}
	return s.data[s.pos]
}

func (s *scanner) unexpected(want string) error {
	if s.pos >= len(s.data) {
		return errEnd
	}
	return fmt.Errorf("unexpected %q at byte %d, want %s", s.data[s.pos], s.pos, want)
}

// raw skips one value and returns its bytes.
func (s *scanner) raw() ([]byte, error) {
	s.space()
	start := s.pos
	if err := s.value(); err != nil {
		return nil, err
	}
	return s.data[start:s.pos:s.pos], nil
}

func (s *scanner) value() error {
	c := s.peek()
	if s.known && (c == '{' || c == '[') {
		return s.nested()
	}
	switch c {
	case '{':
		return s.object(nil)
	case '[':
		return s.array(nil)
	case '"':
		_, err := s.text()
		return err
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		if c == '-' || isDigit(c) {
			return s.number()
		}
		return s.unexpected("a value")
	}
}

// nested skips an array or object that is known to be one, by its brackets.
func (s *scanner) nested() error {
	for depth := 0; s.pos < len(s.data); {
		switch s.data[s.pos] {
		case '"':
			if _, err := s.text(); err != nil {
				return err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.pos++
		if depth == 0 {
			return nil
		}
	}
	return errEnd
}

// member is one key and value of an object, with where they stand in its text.
type member struct {
	start, end int    // from the key's quote to the end of the value
	key        []byte // with its quotes
	value      []byte
}

// object walks an object. each sees every member in turn, and may stop the walk
// with an error; nil skips them.
func (s *scanner) object(each func(member) error) error {
	if err := s.enter('{'); err != nil {
		return err
	}
	if s.peek() == '}' {
		return s.leave()
	}
	for {
		s.space()
		m := member{start: s.pos}
		var err error
		if m.key, err = s.text(); err != nil {
			return err
		}
		if s.peek() != ':' {
			return s.unexpected("a colon")
		}
		s.pos++
		if m.value, err = s.raw(); err != nil {
			return err
		}
		m.end = s.pos
		if each != nil {
			if err := each(m); err != nil {
				return err
			}
		}
		switch s.peek() {
		case ',':
			s.pos++
		case '}':
			return s.leave()
		default:
			return s.unexpected("a comma or a closing brace")
		}
	}
}

// array walks an array as object walks an object.
func (s *scanner) array(each func(value []byte) error) error {
	if err := s.enter('['); err != nil {
		return err
	}
	if s.peek() == ']' {
		return s.leave()
	}
	for {
		value, err := s.raw()
		if err != nil {
			return err
		}
		if each != nil {
			if err := each(value); err != nil {
				return err
			}
		}
		switch s.peek() {
		case ',':
			s.pos++
		case ']':
			return s.leave()
		default:
			return s.unexpected("a comma or a closing bracket")
		}
	}
}

func (s *scanner) enter(open byte) error {
	if s.peek() != open {
		return s.unexpected(string(open))
	}
	if s.depth++; s.depth > MaxDepth {
		return errDepth
	}
	s.pos++
	return nil
}

func (s *scanner) leave() error {
	s.depth--
	s.pos++
	return nil
}

// text skips a string and returns it with its quotes.
func (s *scanner) text() ([]byte, error) {
	if s.pos >= len(s.data) || s.data[s.pos] != '"' {
		return nil, s.unexpected("a string")
	}
	if s.known {
		return s.knownText()
	}
	start := s.pos
	for s.pos++; s.pos < len(s.data); s.pos++ {
		c := s.data[s.pos]
		switch {
		case unescaped[c]:
		case c == '"':
			s.pos++
			return s.data[start:s.pos:s.pos], nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		default:
			return nil, s.unexpected("no control character in a string")
		}
	}
	return nil, errEnd
}

// knownText is text for what was checked before: only its end is looked for.
func (s *scanner) knownText() ([]byte, error) {
	start := s.pos
	for s.pos++; ; s.pos++ {
		at := bytes.IndexByte(s.data[s.pos:], '"')
		if at < 0 {
			s.pos = len(s.data)
			return nil, errEnd
		}
		s.pos += at
		slashes := 0
		for s.data[s.pos-1-slashes] == '\\' { // never beyond the quote it begins with
			slashes++
		}
		if slashes%2 == 0 {
			s.pos++
			return s.data[start:s.pos:s.pos], nil
		}
	}
}

// unescaped are the bytes that stand for themselves in a string.
var unescaped = func() (table [256]bool) {
	for c := range table {
		table[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return table
}()

// escape skips what follows a backslash, up to its last byte.
func (s *scanner) escape() error {
	s.pos++
	if s.pos >= len(s.data) {
		return errEnd
	}
	switch s.data[s.pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		for range 4 {
			s.pos++
			if s.pos >= len(s.data) || !isHex(s.data[s.pos]) {
				return s.unexpected("four hexadecimal digits")
			}
		}
		return nil
	}
	return s.unexpected("an escape")
}

func (s *scanner) number() error {
	s.skip('-', '-')
	if !s.skip('0', '0') {
		if err := s.digits(); err != nil {
			return err
		}
	}
	if s.skip('.', '.') {
		if err := s.digits(); err != nil {
			return err
		}
	}
	if !s.skip('e', 'E') {
		return nil
	}
	s.skip('+', '-')
	return s.digits()
}

// skip passes over one of two characters, if it is there.
func (s *scanner) skip(a, b byte) bool {
	if s.pos >= len(s.data) || s.data[s.pos] != a && s.data[s.pos] != b {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) digits() error {
	start := s.pos
	for s.pos < len(s.data) && isDigit(s.data[s.pos]) {
		s.pos++
	}
	if s.pos == start {
		return s.unexpected("a digit")
	}
	return nil
}

func (s *scanner) literal(word string) error {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return s.unexpected(word)
	}
	s.pos += len(word)
	return nil
}

// end says that nothing but space may follow.
func (s *scanner) end() error {
	if s.peek(); s.pos < len(s.data) {
		return s.unexpected("the end")
	}
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
