// Package rawjson reads and edits JSON without decoding it: members are found,
// replaced and removed in the raw bytes, and everything else stays as it came.
package rawjson

import "errors"

// Members iterates over the members of an object. Next moves to the next one.
type Members struct {
	text       text
	known      bool   // the text is known to be valid and is not checked again
	pos        int    // the current position
	start, end int    // the position of the member, from its key's quote to the end of its value
	Key        []byte // with its quotes
	Value      []byte
	Closed     bool  // the closing brace was read
	Err        error // why the iteration stopped, unless it reached the end
}

var errNoObject = errors.New("not an object")

// Walk iterates over the members of a valid object. Anything else has no members.
func Walk(object []byte) (m Members) {
	m.text, m.known = object, true
	m.begin()
	return m
}

// WalkChecked iterates over the members of text that was not validated yet, and
// validates it on the way: see End.
func WalkChecked(object []byte) (m Members) {
	m.text = object
	m.begin()
	return m
}

// End returns the error that ended the iteration, or the error of the text behind the
// object.
func (m *Members) End() error {
	if m.Err != nil {
		return m.Err
	}
	return m.text.end(m.pos)
}

// begin skips the opening brace.
func (m *Members) begin() {
	m.pos = m.text.space(0)
	if m.text.at(m.pos) != '{' {
		m.Err = errNoObject
	}
	m.pos++
}

func (m *Members) Next() bool {
	if m.Err != nil || m.Closed {
		return false
	}
	i := m.text.space(m.pos)
	switch c := m.text.at(i); {
	case c == '}':
		m.pos, m.Closed = i+1, true
		return false
	case m.Value == nil: // the first
	case c == ',':
		i = m.text.space(i + 1)
	default:
		m.Err = m.text.unexpected(i, "a comma or a closing brace")
		return false
	}
	m.Err = m.member(i)
	return m.Err == nil
}

// member reads the member at i.
func (m *Members) member(i int) error {
	if m.text.at(i) != '"' {
		return m.text.unexpected(i, "a string")
	}
	end, err := m.skip(i)
	if err != nil {
		return err
	}
	m.start, m.Key = i, m.text[i:end:end]
	if i, err = m.text.colon(end); err != nil {
		return err
	}
	if end, err = m.skip(i); err != nil {
		return err
	}
	m.Value, m.end, m.pos = m.text[i:end:end], end, end
	return nil
}

// skip skips a key or a value.
func (m *Members) skip(i int) (int, error) {
	if m.known {
		return m.text.knownValue(i)
	}
	return m.text.value(i, 1)
}

// Name returns the decoded key.
func (m *Members) Name() []byte { return Unquote(m.Key) }

// Span returns where the member is in the object: from its key's quote to the end of
// its value.
func (m *Members) Span() (start, end int) { return m.start, m.end }
