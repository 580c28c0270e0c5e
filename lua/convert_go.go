package lua

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// maxConverted is how many values one call of ToGo makes. Tables that appear
// more than once are copied each time; see maxJSON.
const maxConverted = 4 << 20

// ToGo converts a value to what encoding/json would decode its JSON form to,
// except that integers stay int64: nil, bool, int64, float64, string, []any
// and map[string]any. It fails for the same values as ToJSON, except NaN,
// infinities and strings that are not UTF-8, which Go can hold.
func ToGo(v Value) (any, error) {
	return new(goMaker).value(v)
}

type goMaker struct {
	walk
	made int
}

func (m *goMaker) value(v Value) (any, error) {
	if m.made++; m.made > maxConverted {
		return nil, m.fail("has too many parts")
	}
	switch v.Kind() {
	case KindNil:
		return nil, nil
	case KindBool:
		return v.Truthy(), nil
	case KindInt:
		return v.int(), nil
	case KindFloat:
		return v.float(), nil
	case KindString:
		return v.str().s, nil
	case KindTable:
		return m.table(v.table())
	}
	if v == Null {
		return nil, nil
	}
	return nil, m.fail(problemOf(v))
}

func (m *goMaker) table(t *Table) (any, error) {
	if err := m.enter(t); err != nil {
		return nil, err
	}
	defer m.leave()
	list, err := m.isList(t)
	if err != nil {
		return nil, err
	}
	if list {
		return m.slice(t)
	}
	object := make(map[string]any)
	for key, v := range t.All() {
		m.at(key)
		if object[key.str().s], err = m.value(v); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func (m *goMaker) slice(t *Table) (any, error) {
	list := make([]any, t.Len())
	for i := range list {
		key := int64(i) + 1
		m.at(Int(key))
		var err error
		if list[i], err = m.value(t.getInt(key)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// FromGo converts a Go value to one of s, charging its memory to s. Nil
// becomes Null, slices tables marked as arrays, maps tables with their keys in
// sorted order, and Values stay as they are. Types without an own rule are
// converted by way of their JSON form.
func FromGo(s *State, v any) (Value, error) {
	return fromGo(s, v, 0)
}

func fromGo(s *State, v any, depth int) (Value, error) {
	if depth > maxConvertDepth {
		return Nil, fmt.Errorf("converting a Go value: nested deeper than %d levels", maxConvertDepth)
	}
	switch v := v.(type) {
	case nil:
		return Null, nil
	case Value:
		return v, nil
	case *Table:
		return v.Value(), nil
	case bool:
		return Bool(v), nil
	case int, int64, int32, uint64, float64, float32:
		return fromNumber(v), nil
	case string:
		d := jsonDecoder{state: s}
		return d.newString(v)
	case []byte:
		d := jsonDecoder{state: s}
		return d.newString(string(v))
	case json.RawMessage:
		return FromJSON(s, v)
	case []any:
		return fromSlice(s, v, depth)
	case []string:
		return fromSlice(s, v, depth)
	case []map[string]any:
		return fromSlice(s, v, depth)
	case map[string]any:
		return fromMap(s, v, depth)
	case map[string]string:
		return fromMap(s, v, depth)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return Nil, fmt.Errorf("converting a Go value: %w", err)
	}
	return FromJSON(s, data)
}

func fromNumber(v any) Value {
	switch v := v.(type) {
	case int:
		return Int(int64(v))
	case int64:
		return Int(v)
	case int32:
		return Int(int64(v))
	case uint64:
		if v > math.MaxInt64 {
			return Float(float64(v))
		}
		return Int(int64(v))
	case float32:
		return Float(float64(v))
	}
	return Float(v.(float64))
}

func fromSlice[E any](s *State, list []E, depth int) (Value, error) {
	if err := s.alloc(tableSize + len(list)*int(valueSize)); err != nil {
		return Nil, err
	}
	t := NewArray(len(list))
	for i, e := range list {
		v, err := fromGo(s, e, depth+1)
		if err != nil {
			return Nil, err
		}
		if err := t.setInt(s, int64(i)+1, v); err != nil {
			return Nil, err
		}
	}
	return t.Value(), nil
}

func fromMap[E any](s *State, object map[string]E, depth int) (Value, error) {
	if err := s.alloc(tableSize + entriesSize(entryCap(len(object)))); err != nil {
		return Nil, err
	}
	t := NewTable(0, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		v, err := fromGo(s, object[key], depth+1)
		if err != nil {
			return Nil, err
		}
		k, err := fromGo(s, key, depth)
		if err != nil {
			return Nil, err
		}
		if err := t.set(s, k, v); err != nil {
			return Nil, err
		}
	}
	return t.Value(), nil
}
