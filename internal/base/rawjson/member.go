// Package rawjson reads and edits JSON without decoding it: members are found,
// replaced and removed in the raw bytes, and everything else stays as it came.
package rawjson

import "errors"

// Members iterates over the members of an object. Next moves to the next one.
type Members struct {
	text       text
	known      bool   // the text was checked before: what is skipped is not checked again
	pos        int    // up to where the walk has come
	start, end int    // where the member stands, from its key's quote to the end of its value
	Key        []byte // with its quotes
	Value      []byte
	Closed     bool  // the walk has passed the closing brace
	Err        error // why there is no next, unless the walk is at its end
}

var errNoObject = errors.New("no object")

// Walk begins a walk through an object that was checked before. In anything else
// there is none.
func Walk(object []byte) (m Members) {
	m.text, m.known = object, true
	m.begin()
	return m
}

// WalkChecked iterates over the members of text that nobody has checked yet, and
// checks it on the way: see End.
func WalkChecked(object []byte) (m Members) {
	m.text = object
	m.begin()
	return m
}

// End is the error that ended the iteration, or what is wrong behind the object.
func (m *Members) End() error {
	if m.Err != nil {
		return m.Err
	}
	return m.text.end(m.pos)
}

// begin passes over the opening brace.
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

// member reads the one that begins at i.
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

// Name is what the key says.
func (m *Members) Name() []byte { return Unquote(m.Key) }
