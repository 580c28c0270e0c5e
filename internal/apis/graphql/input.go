package graphql

import (
	"encoding/json"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// inputs writes JSON Schemas of input types.
type inputs struct {
	schema *ast.Schema
	nulls  bool // whether null may be given: in mutations it removes a value
	defs   api.Definitions
}

// remark is what is said about an argument or a field of an input object.
type remark struct {
	text     string
	fallback *ast.Value
}

// builtin are the JSON types of GraphQL's own scalars.
var builtin = map[string]string{"Int": "integer", "Float": "number", "String": "string", "Boolean": "boolean", "ID": "string"}

// appendValue appends the schema of a value.
func (in *inputs) appendValue(out []byte, kind *ast.Type, about remark) []byte {
	schema := in.appendType(nil, kind, in.nulls && !kind.NonNull)
	text := strings.TrimSpace(about.text)
	if !strings.HasPrefix(string(schema), `{"$ref"`) { // a reference stays alone, since not all models accept more beside it
		if text != "" {
			schema = rawjson.SetText(schema, "description", api.Shorten(text))
		}
		if fallback := defaultOf(about.fallback); fallback != nil {
			schema = rawjson.Set(schema, "default", fallback)
		}
	}
	return append(out, schema...)
}

// defaultOf is a default value in JSON; nil if there is none.
func defaultOf(value *ast.Value) json.RawMessage {
	if value == nil {
		return nil
	}
	plain, err := value.Value(nil)
	if err != nil || plain == nil {
		return nil
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return nil // it is not shown; the service knows it
	}
	return text
}

func (in *inputs) appendType(out []byte, kind *ast.Type, null bool) []byte {
	if kind.Elem != nil {
		out = appendTypeName(append(out, '{'), "array", null)
		return append(in.appendType(append(out, `,"items":`...), kind.Elem, false), '}')
	}
	def := in.schema.Types[kind.NamedType]
	switch def.Kind {
	case ast.Enum:
		return appendEnum(out, def, null)
	case ast.InputObject:
		if !null {
			return in.defs.Refer(out, def.Name)
		}
		return append(in.defs.Refer(append(out, `{"anyOf":[`...), def.Name), `,{"type":"null"}]}`...)
	}
	if name := builtin[def.Name]; name != "" {
		return append(appendTypeName(append(out, '{'), name, null), '}')
	}
	text := def.Name
	if def.Description != "" {
		text += ": " + api.Shorten(strings.TrimSpace(def.Description))
	}
	return append(rawjson.AppendText(append(out, `{"description":`...), text), '}')
}

func appendTypeName(out []byte, name string, null bool) []byte {
	if null {
		return append(out, `"type":["`+name+`","null"]`...)
	}
	return append(out, `"type":"`+name+`"`...)
}

func appendEnum(out []byte, def *ast.Definition, null bool) []byte {
	out = append(appendTypeName(append(out, '{'), "string", null), `,"enum":[`...)
	for i, value := range def.EnumValues {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendText(out, value.Name)
	}
	if null {
		out = append(out, `,null`...)
	}
	return append(out, `]}`...)
}

// appendObject appends the schema of an input object.
func (in *inputs) appendObject(out []byte, name string) []byte {
	def := in.schema.Types[name]
	out = append(out, `{"type":"object"`...)
	if text := strings.TrimSpace(def.Description); text != "" {
		out = rawjson.AppendText(append(out, `,"description":`...), api.Shorten(text))
	}
	out = append(out, `,"properties":{`...)
	var must []string
	for _, field := range def.Fields {
		out = rawjson.AppendKey(out, field.Name)
		out = in.appendValue(out, field.Type, remark{deprecation(field.Directives) + field.Description, field.DefaultValue})
		if required(field.Type, field.DefaultValue) {
			must = append(must, field.Name)
		}
	}
	out = append(out, '}')
	if len(must) > 0 {
		list, _ := json.Marshal(must) // texts can always be written
		out = append(append(out, `,"required":`...), list...)
	}
	if def.Directives.ForName("oneOf") != nil {
		out = append(out, `,"minProperties":1,"maxProperties":1`...)
	}
	return append(out, `,"additionalProperties":false}`...)
}
