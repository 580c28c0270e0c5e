package toolset

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// repair corrects what models commonly get wrong, one argument at a time and only where
// the meaning is clear: a number or an object written as a string, a single value where
// a list is wanted, null for an omitted argument. ok is false when nothing was
// corrected.
func repair(schema, args json.RawMessage) (repaired json.RawMessage, ok bool) {
	if !json.Valid(args) || !rawjson.IsObject(args) {
		return nil, false
	}
	properties, _ := rawjson.Get(schema, "properties")
	var required []string
	if raw, found := rawjson.Get(schema, "required"); found {
		_ = json.Unmarshal(raw, &required) // our own: always a list
	}
	repaired = args
	rawjson.Each(args, func(name string, value json.RawMessage) bool {
		property, known := rawjson.Get(properties, name)
		if !known {
			return true
		}
		if rawjson.IsNull(value) && !slices.Contains(required, name) {
			repaired, ok = rawjson.Delete(repaired, name), true
		} else if better := repairValue(property, value); better != nil && !slices.Contains(sourceArguments, name) {
			repaired, ok = rawjson.Set(repaired, name, better), true
		}
		return true
	})
	return repaired, ok
}

// sourceArguments take the source of a program: any value but a text is a mistake in the
// call, whose meaning is not clear.
var sourceArguments = []string{"code", "content"}

// repairValue is the value that was meant, or nil.
func repairValue(property, value json.RawMessage) json.RawMessage {
	wanted := typesOf(property)
	if fits(wanted, value) {
		return nil
	}
	if text, ok := rawjson.Text(value); ok {
		if meant := unquoted(wanted, text); meant != nil {
			return meant
		}
	}
	switch {
	case slices.Contains(wanted, "array") && fits(itemsOf(property), value):
		return slices.Concat([]byte("["), value, []byte("]"))
	case slices.Equal(wanted, []string{"string"}) && (fits([]string{"number"}, value) || fits([]string{"boolean"}, value)):
		return rawjson.AppendText(nil, string(value))
	default:
		return nil
	}
}

// unquoted is the value of the wanted types that was written as a string, or nil.
func unquoted(wanted []string, text string) json.RawMessage {
	trimmed := json.RawMessage(strings.TrimSpace(text))
	switch {
	case slices.Contains(wanted, "integer") && isInteger(text), slices.Contains(wanted, "number") && isNumber(text):
		return json.RawMessage(text)
	case json.Valid(trimmed) && fits(wanted, trimmed):
		return trimmed
	}
	return nil
}

// fits tells whether value is of one of the types.
func fits(types []string, value json.RawMessage) bool {
	if len(value) == 0 {
		return false
	}
	kind := "number"
	switch value[0] {
	case '"':
		kind = "string"
	case '{':
		kind = "object"
	case '[':
		kind = "array"
	case 't', 'f':
		kind = "boolean"
	case 'n':
		kind = "null"
	default:
		if isInteger(string(value)) && slices.Contains(types, "integer") {
			return true
		}
	}
	return slices.Contains(types, kind)
}

func typesOf(property json.RawMessage) []string {
	raw, _ := rawjson.Get(property, "type")
	if name, ok := rawjson.Text(raw); ok {
		return []string{name}
	}
	var names []string
	_ = json.Unmarshal(raw, &names) // our own schema: a name or a list of names
	return names
}

func itemsOf(property json.RawMessage) []string {
	items, _ := rawjson.Get(property, "items")
	return typesOf(items)
}

func isInteger(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil && json.Valid([]byte(text))
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && json.Valid([]byte(text))
}
