// Package rawjson reads and edits JSON without decoding it: members are found,
// replaced and removed in the raw bytes, and everything else stays as it came.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// The functions here read and edit a JSON object as text. The rest keeps its bytes:
// order, spacing, big integers, unknown keys. They expect valid text. Given anything
// but an object, reading finds nothing and deleting changes nothing.

// Get returns the value of key. The last of repeated keys counts, as in encoding/json
// and in JavaScript.
func Get(object json.RawMessage, key string) (json.RawMessage, bool) {
	var found json.RawMessage
	for m := Walk(object); m.Next(); {
		if string(m.Name()) == key {
			found = m.Value
		}
	}
	return found, found != nil
}

// Lacks reports that an object and its values certainly have no key with this prefix.
// It may return false although there is none, but is very cheap. The prefix must not
// contain characters that JSON escapes.
func Lacks(object json.RawMessage, prefix string) bool {
	if mentions(object, prefix) || bytes.Contains(object, []byte(`\u`)) {
		return false
	}
	return !strings.Contains(prefix, "/") || !bytes.Contains(object, []byte(`\/`)) // some encoders escape every slash
}

// mentions searches for a name by a rare byte in it, such as a capital letter; if the
// text has many of those, by the whole name.
func mentions(text []byte, name string) bool {
	rare := strings.IndexFunc(name, func(r rune) bool { return r < 'a' && r != '"' })
	for tries := 0; rare >= 0 && rare < len(text); tries++ {
		found := bytes.IndexByte(text[rare:], name[rare])
		switch {
		case found < 0:
			return false
		case bytes.HasPrefix(text[found:], []byte(name)):
			return true
		case tries == 8:
			rare = -1
		}
		text = text[found+1:]
	}
	return bytes.Contains(text, []byte(name))
}

// GetText returns the string value of key.
func GetText(object json.RawMessage, key string) (string, bool) {
	raw, ok := Get(object, key)
	if !ok {
		return "", false
	}
	return Text(raw)
}

// Text decodes a JSON string; ok is false for any other value.
func Text(raw json.RawMessage) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return string(Unquote(raw)), true
}

// GetBool returns the boolean value of key; anything else is false.
func GetBool(object json.RawMessage, key string) bool {
	if Lacks(object, key) {
		return false
	}
	raw, _ := Get(object, key)
	return string(raw) == "true"
}

// Each calls do for every member in order, until do returns false.
func Each(object json.RawMessage, do func(key string, value json.RawMessage) bool) {
	for m := Walk(object); m.Next(); {
		if !do(string(m.Name()), m.Value) {
			return
		}
	}
}

// Items returns the elements of an array. ok is false if raw is not an array.
func Items(raw json.RawMessage) (items []json.RawMessage, ok bool) {
	t := text(raw)
	i := t.space(0)
	if t.at(i) != '[' {
		return nil, false
	}
	if i = t.space(i + 1); t.at(i) == ']' {
		return nil, true
	}
	for {
		end, err := t.knownValue(i)
		if err != nil {
			return items, false
		}
		items = append(items, raw[i:end:end])
		i = t.space(end)
		switch t.at(i) {
		case ',':
			i = t.space(i + 1)
		case ']':
			return items, true
		default:
			return items, false
		}
	}
}

// List is the array of items, which Items would return.
func List(items []json.RawMessage) json.RawMessage {
	size := 2
	for _, item := range items {
		size += len(item) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, ']')
}

// IsObject reports whether raw is an object.
func IsObject(raw json.RawMessage) bool {
	t := text(raw)
	return t.at(t.space(0)) == '{'
}

// IsNull reports whether raw is null or empty.
func IsNull(raw json.RawMessage) bool {
	trimmed := bytes.TrimSpace(raw)
	return len(trimmed) == 0 || string(trimmed) == "null"
}

// Set returns object with key set to value: in place if the key exists, else at the
// end. Anything but an object becomes a new one. object itself is not changed.
func Set(object json.RawMessage, key string, value json.RawMessage) json.RawMessage {
	var at Members // the last member with this key
	hits, empty := 0, true
	m := Walk(object)
	for m.Next() {
		empty = false
		if string(m.Name()) == key {
			at = m
			hits++
		}
	}
	out := make([]byte, 0, len(object)+len(key)+len(value)+8)
	switch {
	case !m.Closed:
		out = append(out, '{')
		out = append(append(AppendText(out, key), ':'), value...)
		return append(out, '}')
	case hits > 1:
		return Set(Delete(object, key), key, value)
	case hits == 1:
		out = append(append(out, object[:at.end-len(at.Value)]...), value...)
		return append(out, object[at.end:]...)
	}
	brace := m.pos - 1
	out = append(out, object[:brace]...)
	if !empty {
		out = append(out, ',')
	}
	out = append(append(AppendText(out, key), ':'), value...)
	return append(out, object[brace:]...)
}

// Extend returns object with members appended, which are text as between braces.
// Unlike Set it does not check whether a key exists already. Anything but an object
// becomes a new one.
func Extend(object json.RawMessage, members []byte) json.RawMessage {
	text := bytes.TrimRight(object, " \t\r\n")
	if len(members) == 0 {
		return object
	}
	out := make([]byte, 0, len(text)+len(members)+2)
	if len(text) < 2 || text[len(text)-1] != '}' {
		out = append(out, '{')
	} else {
		out = append(out, text[:len(text)-1]...)
		if !IsEmptyObject(object) {
			out = append(out, ',')
		}
	}
	return append(append(out, members...), '}')
}

// AppendMembers writes the members of object after an opening brace, except those for
// which drop returns true. The caller writes the closing brace. Anything but an object
// has no members.
func AppendMembers(out []byte, object json.RawMessage, drop func(key []byte) bool) []byte {
	out = append(out, '{')
	first := len(out)
	for m := Walk(object); m.Next(); {
		if drop(m.Name()) {
			continue
		}
		if len(out) > first {
			out = append(out, ',')
		}
		out = append(out, object[m.start:m.end]...)
	}
	return out
}

// AppendKey writes the key of a member and the colon. The caller writes the value.
func AppendKey(out []byte, key string) []byte {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	return append(append(append(out, '"'), key...), `":`...)
}

// SetText is Set with a string value.
func SetText(object json.RawMessage, key, value string) json.RawMessage {
	return Set(object, key, AppendText(nil, value))
}

// Delete returns object without key.
func Delete(object json.RawMessage, key string) json.RawMessage {
	return DeleteFunc(object, func(k []byte) bool { return string(k) == key })
}

// DeleteFunc returns object without the keys for which drop returns true; it is the
// same slice if there are none.
func DeleteFunc(object json.RawMessage, drop func(key []byte) bool) json.RawMessage {
	return Without(object, func(key, _ []byte) bool { return drop(key) })
}

// Without is DeleteFunc with a function that gets the value too.
func Without(object []byte, drop func(key, value []byte) bool) []byte {
	var out []byte // nil until a member is dropped
	kept := 0      // end of the members copied so far
	m := Walk(object)
	for m.Next() {
		switch dropped := drop(m.Name(), m.Value); {
		case dropped && out == nil:
			out = append(append(make([]byte, 0, len(object)), '{'), bytes.TrimLeft(object[:kept], " \t\r\n{")...)
		case dropped:
		case out == nil:
			kept = m.end
		default:
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, object[m.start:m.end]...)
		}
	}
	if !m.Closed || out == nil {
		return object
	}
	return append(out, '}')
}

// IsEmptyObject reports whether raw is an object without members, or empty.
func IsEmptyObject(raw json.RawMessage) bool {
	t := text(raw)
	i := t.space(0)
	return len(raw) == 0 || t.at(i) == '{' && t.at(t.space(i+1)) == '}'
}

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

// Pick finds the values of several keys in one pass over object: out[i] becomes
// the value of keys[i], or nil when it is missing. It allocates nothing. Of
// repeated keys the last one counts.
func Pick(object json.RawMessage, keys []string, out []json.RawMessage) {
	clear(out)
	for m := Walk(object); m.Next(); {
		name := m.Name()
		for i, key := range keys {
			if string(name) == key {
				out[i] = m.Value
			}
		}
	}
}

var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// UnescapeToken decodes one reference token of a JSON pointer (RFC 6901): ~1 is a
// slash, ~0 a tilde.
func UnescapeToken(token string) string { return pointerEscapes.Replace(token) }

// Descend returns the part of a value that one reference token of a JSON pointer names:
// the member of an object, or the item of a list, counted from 0.
func Descend(value json.RawMessage, token string) (json.RawMessage, bool) {
	name := UnescapeToken(token)
	items, ok := Items(value)
	if !ok {
		return Get(value, name)
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(items) {
		return nil, false
	}
	return items[i], true
}

// Path is what the names of a path such as meta/next lead to.
func Path(value json.RawMessage, path string) (json.RawMessage, bool) {
	for _, name := range strings.Split(path, "/") {
		var ok bool
		if value, ok = Get(value, name); !ok {
			return nil, false
		}
	}
	return value, true
}
