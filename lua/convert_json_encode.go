package lua

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// maxJSON is how long the result of ToJSON may be. Tables that appear more
// than once are written each time, so that a small value could otherwise
// become a text of any length.
const maxJSON = 64 << 20

// ToJSON writes a value as JSON. Integers are written as integers and floats
// as numbers with a point or exponent, so that FromJSON gives back the same
// kinds. The keys of objects keep the order of the table. Nil and Null are
// null; tables with the keys 1 to n are arrays, those with string keys
// objects, and an empty one is {} unless marked as an array (NewArray).
//
// What has no JSON form is a *ConvertError that tells where it is: functions,
// NaN and infinities, strings that are not UTF-8, arrays with holes, tables
// with both kinds of keys, tables that contain themselves, nesting deeper than
// 200, and results longer than 64 MiB.
func ToJSON(v Value) ([]byte, error) {
	e := jsonEncoder{}
	if err := e.value(v); err != nil {
		return nil, err
	}
	return e.out, nil
}

// ToJSON is the function [ToJSON], and charges the memory of the text to s. It
// returns a *BudgetError if there is none.
func (s *State) ToJSON(v Value) ([]byte, error) {
	e := jsonEncoder{state: s}
	if err := e.value(v); err != nil {
		return nil, err
	}
	return e.out, nil
}

type jsonEncoder struct {
	walk
	out     []byte
	state   *State // is charged; may be nil
	charged int    // bytes of out
}

// charge charges the growth of the text by n bytes to the state.
func (e *jsonEncoder) charge(n int) error {
	more := max(cap(e.out), len(e.out)+n) - e.charged
	if e.state == nil || more <= 0 {
		return nil
	}
	e.charged += more
	return e.state.alloc(more)
}

func (e *jsonEncoder) value(v Value) error {
	if len(e.out) > maxJSON {
		return e.fail("is longer than 64 MiB as JSON")
	}
	if err := e.charge(0); err != nil {
		return err
	}
	switch v.Kind() {
	case KindNil:
		e.out = append(e.out, "null"...)
	case KindBool:
		e.out = strconv.AppendBool(e.out, v.Truthy())
	case KindInt:
		e.out = strconv.AppendInt(e.out, v.int(), 10)
	case KindFloat:
		return e.float(v.float())
	case KindString:
		return e.text(v.str().s)
	case KindTable:
		return e.table(v.table())
	default:
		if v != Null {
			return e.fail(problemOf(v))
		}
		e.out = append(e.out, "null"...)
	}
	return nil
}

func (e *jsonEncoder) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return e.fail("is " + formatFloat(f) + ", which JSON cannot express")
	}
	start := len(e.out)
	e.out = strconv.AppendFloat(e.out, f, 'g', -1, 64)
	for _, c := range e.out[start:] {
		if c == '.' || c == 'e' {
			return nil
		}
	}
	e.out = append(e.out, ".0"...)
	return nil
}

func (e *jsonEncoder) table(t *Table) error {
	if err := e.enter(t); err != nil {
		return err
	}
	list, err := e.isList(t)
	if err != nil {
		return err
	}
	if list {
		err = e.array(t)
	} else {
		err = e.object(t)
	}
	e.leave()
	return err
}

func (e *jsonEncoder) array(t *Table) error {
	e.out = append(e.out, '[')
	for i := int64(1); i <= int64(t.Len()); i++ {
		if i > 1 {
			e.out = append(e.out, ',')
		}
		e.at(Int(i))
		if err := e.value(t.getInt(i)); err != nil {
			return err
		}
	}
	e.out = append(e.out, ']')
	return nil
}

func (e *jsonEncoder) object(t *Table) error {
	e.out = append(e.out, '{')
	first := true
	for key, v := range t.All() {
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		e.at(key)
		if err := e.text(key.str().s); err != nil {
			return err
		}
		e.out = append(e.out, ':')
		if err := e.value(v); err != nil {
			return err
		}
	}
	e.out = append(e.out, '}')
	return nil
}

func (e *jsonEncoder) text(s string) error {
	if err := e.charge(len(s)); err != nil {
		return err
	}
	if !utf8.ValidString(s) {
		return e.fail("is a string that is not UTF-8 text")
	}
	const hex = "0123456789abcdef"
	e.out = append(e.out, '"')
	for k := 0; k < len(s); k++ {
		switch c := s[k]; {
		case c == '"' || c == '\\':
			e.out = append(e.out, '\\', c)
		case c == '\n':
			e.out = append(e.out, '\\', 'n')
		case c == '\t':
			e.out = append(e.out, '\\', 't')
		case c == '\r':
			e.out = append(e.out, '\\', 'r')
		case c < ' ' || c == 127:
			e.out = append(e.out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			e.out = append(e.out, c)
		}
	}
	e.out = append(e.out, '"')
	return nil
}
