package toolset

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// field is a field of a struct in JSON.
type field struct {
	reflect.StructField
	name     string
	optional bool
}

// fieldsOf are the fields of a struct that appear in JSON.
func fieldsOf(t reflect.Type) (fields []field) {
	for _, f := range reflect.VisibleFields(t) {
		name, how, more := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" && !more {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields = append(fields, field{f, name, strings.Contains(how, "omitempty") || strings.Contains(how, "omitzero")})
	}
	return fields
}

// append writes what the tags of a field say of its value; without a field, what its
// type says.
func (f *field) append(out []byte, t reflect.Type) []byte {
	if f == nil {
		return appendLength(appendRange(out, t), t)
	}
	if text := f.Tag.Get("jsonschema"); text != "" {
		out = appendMember(out, "description", text)
	}
	if list := f.Tag.Get("enum"); list != "" {
		out = appendMember(out, "enum", strings.Split(list, ","))
	}
	low, high := "minimum", "maximum"
	switch t.Kind() {
	case reflect.Slice:
		low, high = "minItems", "maxItems"
	case reflect.Array:
		return appendLength(out, t)
	case reflect.String:
		low, high = "minLength", "maxLength"
	}
	return f.bound(f.bound(out, low, "min"), high, "max")
}

// bound writes the limit of a tag.
func (f *field) bound(out []byte, name, tag string) []byte {
	text, given := f.Tag.Lookup(tag)
	if !given {
		return out
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("toolset: field %s: %s:%q is not a number", f.Name, tag, text))
	}
	return appendMember(out, name, n)
}

// appendLength writes the length of an array.
func appendLength(out []byte, t reflect.Type) []byte {
	if t.Kind() != reflect.Array {
		return out
	}
	return appendMember(appendMember(out, "minItems", t.Len()), "maxItems", t.Len())
}
