package wire

import (
	"bytes"
	"encoding/json"
	"errors"
)

// The functions here read and edit a JSON object as text. What they do not touch
// keeps its bytes: order, spacing, big integers, unknown keys. They take text
// that was parsed before; given anything but an object, reading finds nothing
// and deleting changes nothing.

var errStop = errors.New("stop")

// Get finds the value of key. Of repeated keys the last one counts, as in
// encoding/json and in JavaScript.
func Get(object json.RawMessage, key string) (json.RawMessage, bool) {
	var found json.RawMessage
	walk(object, func(m member) error {
		if string(keyText(m.key)) == key {
			found = m.value
		}
		return nil
	})
	return found, found != nil
}

// Lacks tells at a glance that there is surely no key that begins so in an object,
// nor in what it holds. It may fail to see that, but costs next to nothing.
func Lacks(object json.RawMessage, prefix string) bool {
	return !bytes.Contains(object, []byte(prefix)) && !bytes.Contains(object, []byte(`\u`))
}

// GetText finds the string value of key.
func GetText(object json.RawMessage, key string) (string, bool) {
	raw, ok := Get(object, key)
	if !ok {
		return "", false
	}
	return Text(raw)
}

// Text is what a JSON string says; ok is false for any other value.
func Text(raw json.RawMessage) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return string(keyText(raw)), true
}

// GetBool finds the boolean value of key; anything else is false.
func GetBool(object json.RawMessage, key string) bool {
	if Lacks(object, key) {
		return false
	}
	raw, _ := Get(object, key)
	return string(raw) == "true"
}

// Each calls do for every member in order, until it returns false.
func Each(object json.RawMessage, do func(key string, value json.RawMessage) bool) {
	walk(object, func(m member) error {
		if !do(string(keyText(m.key)), m.value) {
			return errStop
		}
		return nil
	})
}

// Items takes an array apart. ok is false when raw is none.
func Items(raw json.RawMessage) (items []json.RawMessage, ok bool) {
	s := scanner{data: raw, known: true}
	if s.peek() != '[' {
		return nil, false
	}
	err := s.array(func(value []byte) error {
		items = append(items, value)
		return nil
	})
	return items, err == nil
}

// IsObject tells whether raw is an object.
func IsObject(raw json.RawMessage) bool {
	s := scanner{data: raw}
	return s.peek() == '{'
}

// IsNull tells whether raw is null or nothing at all.
func IsNull(raw json.RawMessage) bool {
	trimmed := bytes.TrimSpace(raw)
	return len(trimmed) == 0 || string(trimmed) == "null"
}

// Set returns object with key set to value: in its place when it was there,
// else at the end. Anything but an object becomes a new one. object itself is
// not changed.
func Set(object json.RawMessage, key string, value json.RawMessage) json.RawMessage {
	var hits []member
	count := 0
	closed := walk(object, func(m member) error {
		count++
		if string(keyText(m.key)) == key {
			hits = append(hits, m)
		}
		return nil
	})
	out := make([]byte, 0, len(object)+len(key)+len(value)+8)
	switch {
	case closed < 0:
		out = append(out, '{')
		out = append(append(AppendText(out, key), ':'), value...)
		return append(out, '}')
	case len(hits) > 1:
		return Set(Delete(object, key), key, value)
	case len(hits) == 1:
		keep := hits[0].end - len(hits[0].value)
		out = append(append(out, object[:keep]...), value...)
		return append(out, object[hits[0].end:]...)
	}
	out = append(out, object[:closed]...)
	if count > 0 {
		out = append(out, ',')
	}
	out = append(append(AppendText(out, key), ':'), value...)
	return append(out, object[closed:]...)
}

// Extend returns object with members at its end, which are text as it stands
// between braces. It does not look whether a key is there already, as Set does.
// Anything but an object becomes a new one.
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
		if !isEmptyObject(object) {
			out = append(out, ',')
		}
	}
	return append(append(out, members...), '}')
}

// AppendMembers writes the members of object after an opening brace, without those
// drop says yes to, and leaves the closing brace to whoever adds more. Anything but
// an object has none.
func AppendMembers(out []byte, object json.RawMessage, drop func(key []byte) bool) []byte {
	out = append(out, '{')
	first := len(out)
	walk(object, func(m member) error {
		if !drop(keyText(m.key)) {
			if len(out) > first {
				out = append(out, ',')
			}
			out = append(out, object[m.start:m.end]...)
		}
		return nil
	})
	return out
}

// AppendKey begins a member of an object that is being written. What follows is its
// value.
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

// DeleteFunc returns object without the keys drop says yes to; the same slice
// when there are none.
func DeleteFunc(object json.RawMessage, drop func(key []byte) bool) json.RawMessage {
	var out []byte // nil as long as nothing is dropped
	kept := 0      // up to here the members before the first that is
	closed := walk(object, func(m member) error {
		switch dropped := drop(keyText(m.key)); {
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
		return nil
	})
	if closed < 0 || out == nil {
		return object
	}
	return append(out, '}')
}

// walk visits the members and returns where the closing brace stands, or -1
// when raw is no object or each stopped the walk.
func walk(raw []byte, each func(member) error) int {
	s := scanner{data: raw, known: true}
	if s.peek() != '{' {
		return -1
	}
	if err := s.object(each); err != nil {
		return -1
	}
	return s.pos - 1
}
