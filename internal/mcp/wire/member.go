package wire

import "errors"

// members walks an object: next goes on to another member, as long as there is one.
type members struct {
	text       text
	known      bool   // the text was checked before: what is skipped is not checked again
	pos        int    // up to where the walk has come
	start, end int    // where the member stands, from its key's quote to the end of its value
	key        []byte // with its quotes
	value      []byte
	closed     bool  // the walk has passed the closing brace
	err        error // why there is no next, unless the walk is at its end
}

var errNoObject = errors.New("no object")

// walk begins a walk through an object that was checked before. In anything else
// there is none.
func walk(object []byte) (m members) {
	m.text, m.known = object, true
	m.begin()
	return m
}

// begin passes over the opening brace.
func (m *members) begin() {
	m.pos = m.text.space(0)
	if m.text.at(m.pos) != '{' {
		m.err = errNoObject
	}
	m.pos++
}

func (m *members) next() bool {
	if m.err != nil || m.closed {
		return false
	}
	i := m.text.space(m.pos)
	switch c := m.text.at(i); {
	case c == '}':
		m.pos, m.closed = i+1, true
		return false
	case m.value == nil: // the first
	case c == ',':
		i = m.text.space(i + 1)
	default:
		m.err = m.text.unexpected(i, "a comma or a closing brace")
		return false
	}
	m.err = m.member(i)
	return m.err == nil
}

// member reads the one that begins at i.
func (m *members) member(i int) error {
	if m.text.at(i) != '"' {
		return m.text.unexpected(i, "a string")
	}
	end, err := m.skip(i)
	if err != nil {
		return err
	}
	m.start, m.key = i, m.text[i:end:end]
	if i, err = m.text.colon(end); err != nil {
		return err
	}
	if end, err = m.skip(i); err != nil {
		return err
	}
	m.value, m.end, m.pos = m.text[i:end:end], end, end
	return nil
}

// skip skips a key or a value.
func (m *members) skip(i int) (int, error) {
	if m.known {
		return m.text.knownValue(i)
	}
	return m.text.value(i, 1)
}

// name is what the key says.
func (m *members) name() []byte { return keyText(m.key) }
