package script

import (
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// Schema returns the JSON Schema of the params, in the form that the strictest clients
// accept: every schema has a type, none is a bare boolean, and defaults are in the
// description. Params are in the order of the script.
func (d *Description) Schema() json.RawMessage {
	properties, required := json.RawMessage("{}"), []string{}
	for i := range d.Params {
		p := &d.Params[i]
		properties = rawjson.Set(properties, p.Name, p.schema())
		if p.Required {
			required = append(required, p.Name)
		}
	}
	schema := rawjson.SetText(nil, "type", "object")
	schema = rawjson.Set(schema, "properties", properties)
	schema = rawjson.Set(schema, "required", encode(required))
	if !d.AnyParams {
		schema = rawjson.Set(schema, "additionalProperties", json.RawMessage("false"))
	}
	return schema
}

// anything lists all types, for params of unknown type.
const anything = `["string","number","boolean","object","array"]`

func (p *Param) schema() json.RawMessage {
	kind := p.schemaKind()
	s := json.RawMessage("{}")
	if kind == "" {
		s = rawjson.Set(s, "type", json.RawMessage(anything))
	} else {
		s = rawjson.SetText(s, "type", kind)
	}
	if text := p.text(); text != "" {
		s = rawjson.SetText(s, "description", text)
	}
	if len(p.Enum) > 0 {
		s = rawjson.Set(s, "enum", encode(p.Enum))
	}
	if kind == "array" {
		item := Param{Type: p.Items}
		s = rawjson.Set(s, "items", item.schema())
	}
	if len(p.Min) > 0 {
		s = rawjson.Set(s, "minimum", p.Min)
	}
	if len(p.Max) > 0 {
		s = rawjson.Set(s, "maximum", p.Max)
	}
	return s
}

// schemaKind returns the JSON Schema type, which has no tables.
func (p *Param) schemaKind() string {
	switch kind := p.kind(); {
	case kind == "" && p.Default != nil && p.Type == "":
		return typeOf(p.Default)
	case kind == "table" && (p.Items != "" || typeOf(p.Default) == "array"):
		return "array"
	case kind == "table":
		return "object"
	default:
		return kind
	}
}

// text returns the description with the default, which strict clients do not accept as a
// keyword.
func (p *Param) text() string {
	if p.Default == nil {
		return p.Description
	}
	return strings.TrimSpace(p.Description + " (default: " + string(p.Default) + ")")
}

// Table returns the params in the form that describe() gives them.
func (d *Description) Table() json.RawMessage {
	table := json.RawMessage("{}")
	for i := range d.Params {
		p := &d.Params[i]
		entry := rawjson.SetText(nil, "type", p.Type)
		entry = rawjson.Set(entry, "required", encode(p.Required))
		if p.Default != nil {
			entry = rawjson.Set(entry, "default", p.Default)
		}
		if p.Description != "" {
			entry = rawjson.SetText(entry, "description", p.Description)
		}
		if len(p.Enum) > 0 {
			entry = rawjson.Set(entry, "enum", encode(p.Enum))
		}
		table = rawjson.Set(table, p.Name, entry)
	}
	return table
}

// encode encodes values that cannot fail: text, booleans, and valid JSON.
func encode(v any) json.RawMessage {
	raw, _ := tool.Encode(v)
	return raw
}
