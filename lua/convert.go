package lua

import (
	"fmt"
	"strconv"
	"strings"
)

// Null is JSON's null where Lua's nil would not do: tables cannot hold nil.
// It is one userdata shared by all states, counts as true in conditions, is
// equal only to itself, and prints as "null".
var Null = newNull()

func newNull() Value {
	meta := NewTable(0, 3)
	tostring := NewFunc("null.tostring", func(c *Call) error { return c.Return(nullName.value()) })
	tostring.bits |= bitShared
	meta.SetString("__tostring", tostring.Value())
	meta.SetString("__name", nullName.value())
	meta.SetString("__metatable", Bool(false))
	meta.bits |= bitShared
	u := NewUserdata(null{}, meta)
	u.bits |= bitShared
	u.id = libraryID("null", 0)
	return u.Value()
}

type null struct{}

var nullName = newConstant("null")

// bitArray marks tables that stand for JSON arrays even when they are empty.
const bitArray uint8 = 1 << 7

// NewArray returns an empty table marked as an array, with room for n
// elements. As JSON it is [] where an unmarked empty table is {}.
func NewArray(n int) *Table {
	t := NewTable(n, 0)
	t.bits |= bitArray
	return t
}

// MarkArray says whether t stands for an array even when it is empty.
func (t *Table) MarkArray(array bool) {
	if array {
		t.bits |= bitArray
	} else {
		t.bits &^= bitArray
	}
}

// IsArray tells whether t was decoded from a JSON array or marked as one.
func (t *Table) IsArray() bool { return t.bits&bitArray != 0 }

// maxConvertDepth bounds how deep converted values may be nested.
const maxConvertDepth = 200

// ConvertError tells which part of a value has no counterpart on the other
// side.
type ConvertError struct {
	// Path leads from the value to the part, as in "tracks[2].name"; "" is
	// the value itself.
	Path string
	// Problem says what is wrong with it.
	Problem string
}

func (e *ConvertError) Error() string {
	if e.Path == "" {
		return "value " + e.Problem
	}
	return e.Path + " " + e.Problem
}

// walk is a position in a tree of tables: the tables from the root to here,
// and the keys that lead from each to the next.
type walk struct {
	tables []*Table
	keys   []Value
}

// enter goes down into t.
func (w *walk) enter(t *Table) error {
	for _, above := range w.tables {
		if above == t {
			return w.fail("contains itself")
		}
	}
	if len(w.tables) >= maxConvertDepth {
		return w.fail("is nested deeper than " + strconv.Itoa(maxConvertDepth) + " levels")
	}
	w.tables = append(w.tables, t)
	w.keys = append(w.keys, Nil)
	return nil
}

// at says which element of the current table comes next.
func (w *walk) at(key Value) { w.keys[len(w.keys)-1] = key }

// leave goes back up.
func (w *walk) leave() {
	w.tables = w.tables[:len(w.tables)-1]
	w.keys = w.keys[:len(w.keys)-1]
}

// fail makes the error for the current position.
func (w *walk) fail(problem string) error {
	var path strings.Builder
	for _, key := range w.keys {
		name, isString := key.AsString()
		switch {
		case key.IsNil():
		case isString && isIdentifier(name):
			if path.Len() > 0 {
				path.WriteByte('.')
			}
			path.WriteString(name)
		case isString:
			fmt.Fprintf(&path, "[%q]", name)
		default:
			fmt.Fprintf(&path, "[%s]", key)
		}
	}
	return &ConvertError{Path: path.String(), Problem: problem}
}

func isIdentifier(s string) bool {
	for k := 0; k < len(s); k++ {
		if c := s[k]; !isAlpha(c) && c != '_' && (k == 0 || !isDecimalDigit(c)) {
			return false
		}
	}
	return s != ""
}

// isList tells whether the current table is an array (keys 1 to n) or an
// object (string keys). It is an error to be neither.
func (w *walk) isList(t *Table) (bool, error) {
	numbers, names, length := 0, 0, int64(t.Len())
	for key := range t.All() {
		switch {
		case key.isInt() && (key.int() < 1 || key.int() > length):
			return false, w.fail("is an array with holes")
		case key.isInt():
			numbers++
		case key.isString():
			names++
		default:
			return false, w.fail("has a key that is a " + key.TypeName())
		}
	}
	switch {
	case numbers == 0 && names == 0:
		return t.IsArray(), nil
	case numbers > 0 && names > 0:
		return false, w.fail("mixes array elements and named fields")
	case names > 0 && t.IsArray():
		return false, w.fail("is an array but has named fields")
	case names > 0:
		return false, nil
	case int64(numbers) != length:
		return false, w.fail("is an array with holes")
	}
	return true, nil
}

// problemOf says why a value that is no table cannot be converted.
func problemOf(v Value) string {
	return "is a " + v.TypeName() + ", which has no counterpart outside Lua"
}
