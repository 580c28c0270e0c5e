package host

import (
	"encoding/json"
	"math"

	"github.com/luanette/luanette/internal/base/fault"
)

// Args are the arguments of one call. Its methods count from 1, as scripts and
// their error messages do.
type Args struct {
	Func   string // "midi.write", for messages
	Values []Value
}

// Len returns the number of arguments.
func (a Args) Len() int { return len(a.Values) }

// At returns argument i, or nil if it is missing.
func (a Args) At(i int) Value {
	if i < 1 || i > len(a.Values) {
		return nil
	}
	return a.Values[i-1]
}

// String returns argument i, which must be a string or a number.
func (a Args) String(i int) (string, error) {
	switch v := a.At(i).(type) {
	case string:
		return v, nil
	case int64, float64:
		raw, err := json.Marshal(v)
		return string(raw), err
	default:
		return "", a.wrong(i, "string")
	}
}

// OptString returns argument i, or otherwise if it is missing.
func (a Args) OptString(i int, otherwise string) (string, error) {
	if a.At(i) == nil {
		return otherwise, nil
	}
	return a.String(i)
}

// Float returns argument i as a number.
func (a Args) Float(i int) (float64, error) {
	switch v := a.At(i).(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	default:
		return 0, a.wrong(i, "number")
	}
}

// Int returns argument i as an integer.
func (a Args) Int(i int) (int64, error) {
	switch v := a.At(i).(type) {
	case int64:
		return v, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v), nil
		}
		return 0, a.wrong(i, "whole number")
	default:
		return 0, a.wrong(i, "number")
	}
}

// OptInt returns argument i, or otherwise if it is missing.
func (a Args) OptInt(i int, otherwise int64) (int64, error) {
	if a.At(i) == nil {
		return otherwise, nil
	}
	return a.Int(i)
}

// Table returns argument i as the JSON of a table; nil if it is missing.
func (a Args) Table(i int) (json.RawMessage, error) {
	switch v := a.At(i).(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return v, nil
	default:
		return nil, a.wrong(i, "table")
	}
}

// Decode decodes the table in argument i into v; a missing one leaves v unchanged.
func (a Args) Decode(i int, v any) error {
	raw, err := a.Table(i)
	if err != nil || raw == nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fault.New(fault.InvalidParams, "bad argument #%d to '%s' (%v)", i, a.Func, err)
	}
	return nil
}

// wrong words a type error as Lua does, so that errors of host functions and of Lua's
// own functions read the same.
func (a Args) wrong(i int, expected string) error {
	return fault.New(fault.InvalidParams, "bad argument #%d to '%s' (%s expected, got %s)", i, a.Func, expected, a.typeName(i))
}

func (a Args) typeName(i int) string {
	if i > len(a.Values) {
		return "no value"
	}
	switch a.At(i).(type) {
	case nil:
		return "nil"
	case bool:
		return "boolean"
	case int64, float64:
		return "number"
	case string:
		return "string"
	default:
		return "table"
	}
}
