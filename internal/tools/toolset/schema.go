package toolset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// Object is any JSON object, unparsed.
type Object json.RawMessage

// MarshalJSON writes it as it is, or {} when it is empty.
func (o Object) MarshalJSON() ([]byte, error) {
	if len(o) == 0 {
		return []byte("{}"), nil
	}
	return o, nil
}

// UnmarshalJSON stores a copy; null makes it empty.
func (o *Object) UnmarshalJSON(raw []byte) error {
	switch {
	case string(raw) == "null":
		*o = nil
	case !rawjson.IsObject(raw):
		return fmt.Errorf("expected an object, got %.40s", raw)
	default:
		*o = slices.Clone(raw)
	}
	return nil
}

// JSON is any JSON value, unparsed.
type JSON = json.RawMessage

// derive derives the schema of a tool's arguments, which is closed, or of its structured
// result, which allows further fields, because a later version may add some.
func derive(name string, t reflect.Type, closed bool) json.RawMessage {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("toolset: tool %s: %v is not a struct", name, t))
	}
	d := deriving{closed: closed}
	out, err := d.value(nil, t, nil)
	if err != nil {
		panic(fmt.Sprintf("toolset: tool %s: %v", name, err))
	}
	raw := json.RawMessage(out)
	if _, found := rawjson.Get(raw, "properties"); !found {
		raw = rawjson.Set(raw, "properties", json.RawMessage("{}"))
	}
	if _, found := rawjson.Get(raw, "required"); !found {
		raw = rawjson.Set(raw, "required", json.RawMessage("[]"))
	}
	return raw
}

// deriving writes the schemas of Go types as the strictest clients accept them. Each
// rule is there because some client refused a server that broke it: every place names a
// type, and only one unless it is any JSON; no schema is a bare boolean except
// additionalProperties; no format, default or $schema. Clients may send null for
// omitted arguments; repair handles that, the schemas do not mention it.
//
// Schemas are appended to a buffer directly, because every start writes those of all
// our tools.
type deriving struct {
	closed bool           // objects allow no other fields
	within []reflect.Type // enclosing types, to detect recursion
}

// known are the types with a JSON form of their own.
var known = map[reflect.Type]string{
	reflect.TypeFor[Object]():    `"object"`,
	reflect.TypeFor[JSON]():      `["object","array","string","number","boolean","null"]`,
	reflect.TypeFor[time.Time](): `"string"`,
}

// value writes the schema of a type. f is the field it belongs to, whose tags replace
// the range of the type; nil: none.
func (d *deriving) value(out []byte, t reflect.Type, of *field) ([]byte, error) {
	for t.Kind() == reflect.Pointer { // may be missing
		t = t.Elem()
	}
	if slices.Contains(d.within, t) {
		return nil, fmt.Errorf("%v contains itself", t)
	}
	out = rawjson.AppendKey(append(out, '{'), "type")
	if name, ok := known[t]; ok {
		return append(of.append(append(out, name...), t), '}'), nil
	}
	name, ok := typeNames[t.Kind()]
	if !ok {
		return nil, fmt.Errorf("%v has no JSON type; use JSON or Object for values of unknown type", t)
	}
	d.within = append(d.within, t)
	out, err := d.parts(append(out, name...), t, of)
	d.within = d.within[:len(d.within)-1]
	return append(out, '}'), err
}

// typeNames are the JSON types of Go kinds.
var typeNames = map[reflect.Kind]string{
	reflect.Bool: `"boolean"`, reflect.String: `"string"`, reflect.Float32: `"number"`, reflect.Float64: `"number"`,
	reflect.Int: `"integer"`, reflect.Int8: `"integer"`, reflect.Int16: `"integer"`, reflect.Int32: `"integer"`, reflect.Int64: `"integer"`,
	reflect.Uint: `"integer"`, reflect.Uint8: `"integer"`, reflect.Uint16: `"integer"`, reflect.Uint32: `"integer"`, reflect.Uint64: `"integer"`,
	reflect.Slice: `"array"`, reflect.Array: `"array"`, reflect.Map: `"object"`, reflect.Struct: `"object"`,
}

// parts writes the parts of a type and what the field's tags say.
func (d *deriving) parts(out []byte, t reflect.Type, of *field) (_ []byte, err error) {
	switch t.Kind() {
	case reflect.Struct:
		return d.object(out, t, of)
	case reflect.Slice, reflect.Array:
		if out, err = d.value(rawjson.AppendKey(out, "items"), t.Elem(), nil); err != nil {
			return nil, fmt.Errorf("items: %w", err)
		}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("%v: the keys of an object must be strings", t)
		}
		if out, err = d.value(rawjson.AppendKey(of.append(out, t), "additionalProperties"), t.Elem(), nil); err != nil {
			return nil, fmt.Errorf("values: %w", err)
		}
		return out, nil
	}
	return of.append(out, t), nil
}

// object writes the fields of a struct, including those of embedded structs.
func (d *deriving) object(out []byte, t reflect.Type, of *field) ([]byte, error) {
	fields := fieldsOf(t)
	var required []string
	if t.NumField() > 0 {
		out = append(rawjson.AppendKey(out, "properties"), '{')
		for i := range fields {
			f := &fields[i]
			var err error
			if out, err = d.value(rawjson.AppendKey(out, f.name), f.Type, f); err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
			if !f.optional {
				required = append(required, f.name)
			}
		}
		out = append(out, '}')
	}
	out = of.append(out, t)
	if len(required) > 0 {
		out = appendMember(out, "required", required)
	}
	if d.closed {
		out = append(rawjson.AppendKey(out, "additionalProperties"), "false"...)
	}
	return out, nil
}

// appendRange writes the range of an integer type.
func appendRange(out []byte, t reflect.Type) []byte {
	bits := 0
	if typeNames[t.Kind()] == `"integer"` {
		bits = t.Bits()
	}
	switch signed := t.Kind() <= reflect.Int64; {
	case bits == 0 || bits == 64 && signed:
		return out
	case bits == 64:
		return appendMember(out, "minimum", 0)
	case signed:
		return appendMember(appendMember(out, "minimum", -math.Ldexp(1, bits-1)), "maximum", math.Ldexp(1, bits-1)-1)
	default:
		return appendMember(appendMember(out, "minimum", 0), "maximum", math.Ldexp(1, bits)-1)
	}
}

func appendMember(out []byte, name string, value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("toolset: write %s: %v", name, err)) // a limit that is not a number
	}
	return append(rawjson.AppendKey(out, name), raw...)
}

// field is a field of a struct in JSON.
type field struct {
	reflect.StructField
	name     string
	optional bool
}

// fieldsOf are the fields of a struct that its schema names.
func fieldsOf(t reflect.Type) (fields []field) {
	for _, f := range reflect.VisibleFields(t) {
		name, how, more := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" && !more || f.Tag.Get("schema") == "-" {
			continue
		}
		name = cmp.Or(name, f.Name)
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
