package toolset

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

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

// inputSchema derives the schema of a tool's arguments.
func inputSchema[T any](name string) json.RawMessage { return derive(name, reflect.TypeFor[T](), true) }

// outputSchema derives the schema of a tool's structured result. It allows further
// fields, because a later version may add some.
func outputSchema[T any](name string) json.RawMessage {
	return derive(name, reflect.TypeFor[T](), false)
}

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
