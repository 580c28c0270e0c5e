package rawjson

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// InWords returns an error of package json about a value of another type in words that mean
// something to whoever sent the value: its field instead of the names of our types. Other
// errors stay as they are.
func InWords(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	return fmt.Errorf("%s must be %s, not %s", cmp.Or(fieldOf(wrong), "it"), typeInWords(wrong.Type), given(wrong.Value))
}

// fieldOf is the path of the field, without the structs that are embedded: fields of ours
// begin with a small letter.
func fieldOf(wrong *json.UnmarshalTypeError) string {
	path := slices.DeleteFunc(strings.Split(wrong.Field, "."), func(name string) bool {
		first, _ := utf8.DecodeRuneInString(name)
		return unicode.IsUpper(first)
	})
	return strings.Join(path, ".")
}

// typeInWords describes an expected type.
func typeInWords(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch kind := t.Kind(); {
	case kind == reflect.String:
		return "a string"
	case kind == reflect.Bool:
		return "true or false"
	case kind >= reflect.Int && kind <= reflect.Uintptr:
		return "a whole number"
	case kind == reflect.Float32 || kind == reflect.Float64:
		return "a number"
	case kind == reflect.Slice || kind == reflect.Array:
		return "an array"
	default:
		return "an object"
	}
}

// given describes a value as package json names it: "bool", "array", or "number 1.5".
func given(value string) string {
	switch kind, number, _ := strings.Cut(value, " "); {
	case number != "":
		return number
	case kind == "bool":
		return "true or false"
	case kind == "array" || kind == "object":
		return "an " + kind
	default:
		return "a " + kind
	}
}
