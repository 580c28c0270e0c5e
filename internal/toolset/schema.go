package toolset

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/luanette/luanette/internal/wire"
)

// Object is any JSON object, kept as it came.
type Object json.RawMessage

// MarshalJSON writes it as it is; nothing is {}.
func (o Object) MarshalJSON() ([]byte, error) {
	if len(o) == 0 {
		return []byte("{}"), nil
	}
	return o, nil
}

// UnmarshalJSON keeps a copy; null is nothing.
func (o *Object) UnmarshalJSON(raw []byte) error {
	switch {
	case string(raw) == "null":
		*o = nil
	case !wire.IsObject(raw):
		return fmt.Errorf("expected an object, got %.40s", raw)
	default:
		*o = slices.Clone(raw)
	}
	return nil
}

// JSON is any JSON value, kept as it came.
type JSON = json.RawMessage

// kinds are all types JSON has: what a schema says that allows anything and yet
// has to name a type.
var kinds = []string{"object", "array", "string", "number", "boolean", "null"}

func types() *jsonschema.ForOptions {
	return &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Object](): {Type: "object"},
		reflect.TypeFor[JSON]():   {Types: kinds},
	}}
}

// inputSchema derives the schema of a tool's arguments.
func inputSchema[T any](name string) json.RawMessage { return derive[T](name, true) }

// outputSchema derives the schema of a tool's structured result. It is open: a
// later version may tell more.
func outputSchema[T any](name string) json.RawMessage { return derive[T](name, false) }

func derive[T any](name string, closed bool) json.RawMessage {
	s, err := jsonschema.For[T](types())
	if err != nil {
		panic(fmt.Sprintf("toolset: tool %s: %v", name, err))
	}
	if s.Type != "object" {
		panic(fmt.Sprintf("toolset: tool %s: %v is not a struct", name, reflect.TypeFor[T]()))
	}
	bound(s, reflect.TypeFor[T]())
	if err := strict(s, closed); err != nil {
		panic(fmt.Sprintf("toolset: tool %s: %v", name, err))
	}
	raw := json.RawMessage(appendSchema(nil, s))
	if _, found := wire.Get(raw, "properties"); !found {
		raw = wire.Set(raw, "properties", json.RawMessage("{}"))
	}
	if _, found := wire.Get(raw, "required"); !found {
		raw = wire.Set(raw, "required", json.RawMessage("[]"))
	}
	return raw
}

// strict brings a schema to what the strictest clients take. Each rule is there
// because some client refused a server that broke it: every place names a type,
// and one only; no schema is a bare boolean; no format, default or $schema. That
// clients send null for what they leave out is not said but forgiven, by mend;
// our results leave out what is not there.
func strict(s *jsonschema.Schema, closed bool) error {
	s.Schema, s.Format, s.Default = "", "", nil
	if len(s.Types) == 2 && slices.Contains(s.Types, "null") { // Go's way to say that it may be missing
		s.Type, s.Types = s.Types[1-slices.Index(s.Types, "null")], nil
	}
	if s.Type == "" && len(s.Types) == 0 {
		return fmt.Errorf("a value has no type; use JSON or Object for what is not known")
	}
	if s.Items != nil {
		if err := strict(s.Items, closed); err != nil {
			return fmt.Errorf("items: %w", err)
		}
	}
	if s.AdditionalProperties != nil {
		if s.AdditionalProperties.Not != nil { // a struct's: nothing else
			if !closed {
				s.AdditionalProperties = nil
			}
		} else if err := strict(s.AdditionalProperties, closed); err != nil {
			return fmt.Errorf("values: %w", err)
		}
	}
	for name, p := range s.Properties {
		if err := strict(p, closed); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// bound applies the enum, min and max tags of a struct's fields.
func bound(s *jsonschema.Schema, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice && s.Items != nil:
		bound(s.Items, t.Elem())
	case t.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if p := s.Properties[name]; p != nil {
				boundField(p, f)
			}
		}
	}
}

func boundField(p *jsonschema.Schema, f reflect.StructField) {
	if list := f.Tag.Get("enum"); list != "" {
		p.Enum = nil
		for _, value := range strings.Split(list, ",") {
			p.Enum = append(p.Enum, value)
		}
	}
	low, high := number(f, "min"), number(f, "max")
	switch f.Type.Kind() {
	case reflect.Slice:
		p.MinItems, p.MaxItems = whole(low), whole(high)
	case reflect.String:
		p.MinLength, p.MaxLength = whole(low), whole(high)
	default:
		p.Minimum, p.Maximum = low, high
	}
	bound(p, f.Type)
}

func number(f reflect.StructField, tag string) *float64 {
	text, given := f.Tag.Lookup(tag)
	if !given {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("toolset: field %s: %s:%q is no number", f.Name, tag, text))
	}
	return &n
}

func whole(n *float64) *int {
	if n == nil {
		return nil
	}
	i := int(*n)
	return &i
}
