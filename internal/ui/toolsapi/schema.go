package toolsapi

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// mover moves the definitions of a schema into the components of a document, and changes
// references accordingly. Everything else stays as it is.
type mover struct {
	prefix string // of the names of definitions; also the name of the schema itself
	into   map[string]json.RawMessage
}

// root returns a whole schema without its definitions.
func (m *mover) root(schema json.RawMessage) json.RawMessage {
	for _, key := range []string{"$defs", "definitions"} {
		definitions, ok := rawjson.Get(schema, key)
		if !ok {
			continue
		}
		rawjson.Each(definitions, func(name string, definition json.RawMessage) bool {
			m.into[m.name(name)] = m.schema(definition)
			return true
		})
		schema = rawjson.Delete(schema, key)
	}
	return m.schema(rawjson.Delete(rawjson.Delete(schema, "$id"), "$schema"))
}

// name is the component of a definition.
func (m *mover) name(definition string) string {
	return m.prefix + "." + notInID().ReplaceAllString(definition, "_")
}

// schema returns a schema with changed references.
func (m *mover) schema(schema json.RawMessage) json.RawMessage { return members(schema, m.keyword) }

// keyword returns the value of a keyword with changed references.
func (m *mover) keyword(key string, value json.RawMessage) json.RawMessage {
	switch key {
	case "$ref", "$dynamicRef":
		if text, ok := rawjson.Text(value); ok {
			return rawjson.AppendText(nil, m.reference(text))
		}
	case "const", "enum", "default", "examples", "example":
		return value // data, not schemas
	case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions":
		return members(value, func(_ string, schema json.RawMessage) json.RawMessage { return m.schema(schema) })
	}
	items, isList := rawjson.Items(value)
	if !isList {
		return m.schema(value)
	}
	out := []byte{'['}
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m.schema(item)...)
	}
	return append(out, ']')
}

// members changes the values of an object; anything else stays as it is.
func members(object json.RawMessage, change func(key string, value json.RawMessage) json.RawMessage) json.RawMessage {
	if !rawjson.IsObject(object) {
		return object
	}
	out := []byte{'{'}
	rawjson.Each(object, func(key string, value json.RawMessage) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(rawjson.AppendText(out, key), ':'), change(key, value)...)
		return true
	})
	return append(out, '}')
}

// reference returns where the target of a reference within the schema is now.
func (m *mover) reference(ref string) string {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok || rest != "" && !strings.HasPrefix(rest, "/") {
		return ref // elsewhere, or an anchor
	}
	for _, key := range []string{"/$defs/", "/definitions/"} {
		below, ok := strings.CutPrefix(rest, key)
		if !ok {
			continue
		}
		name, path, deeper := strings.Cut(below, "/")
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
		target := "#/components/schemas/" + m.name(rawjson.UnescapeToken(name))
		if deeper {
			target += "/" + path
		}
		return target
	}
	return "#/components/schemas/" + m.prefix + rest
}
