package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// fixEmptyTables gives empty tables the type that the schema wants. In Lua they have
// none, so tags = {} arrives as an object. It is used for invalid arguments only, and
// changes nothing else in them.
func (s *schema) fixEmptyTables(args json.RawMessage) (fixed json.RawMessage, ok bool) {
	if s.compiled == nil || !rawjson.IsObject(args) {
		return nil, false
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return nil, false
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(s.validate(value), &invalid) {
		return nil, false
	}
	fixed = args
	for _, leaf := range leaves(invalid) {
		if empty := wantedEmpty(leaf, at(value, leaf.InstanceLocation)); empty != nil {
			fixed, ok = put(fixed, leaf.InstanceLocation, empty), true
		}
	}
	return fixed, ok
}

// wantedEmpty is the empty list or object that the schema wants where the other was
// given; nil for every other finding.
func wantedEmpty(leaf *jsonschema.ValidationError, given any) json.RawMessage {
	found, ok := leaf.ErrorKind.(*kind.Type)
	if !ok || len(leaf.InstanceLocation) == 0 {
		return nil
	}
	switch given := given.(type) {
	case map[string]any:
		if len(given) == 0 && slices.Contains(found.Want, "array") {
			return json.RawMessage("[]")
		}
	case []any:
		if len(given) == 0 && slices.Contains(found.Want, "object") {
			return json.RawMessage("{}")
		}
	}
	return nil
}

// put replaces the value at a place, and leaves the rest of the text as it is.
func put(text json.RawMessage, place []string, value json.RawMessage) json.RawMessage {
	if len(place) == 0 {
		return value
	}
	if rawjson.IsObject(text) {
		inner, _ := rawjson.Get(text, place[0])
		return rawjson.Set(text, place[0], put(inner, place[1:], value))
	}
	var list []json.RawMessage
	i, err := strconv.Atoi(place[0])
	if err != nil || json.Unmarshal(text, &list) != nil || i < 0 || i >= len(list) {
		return text
	}
	list[i] = put(list[i], place[1:], value)
	joined := append([]byte{'['}, bytes.Join(asBytes(list), []byte{','})...)
	return append(joined, ']')
}

func asBytes(list []json.RawMessage) [][]byte {
	all := make([][]byte, len(list))
	for i, one := range list {
		all[i] = one
	}
	return all
}
