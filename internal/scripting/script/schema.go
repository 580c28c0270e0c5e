package script

import (
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// Schema is the JSON Schema of the params, in the form the strictest clients
// take: every place names a type, nothing is a bare boolean, defaults are said in
// words. Params stand in the order of the script.
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

// anything is the list of all types, for what is not known.
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

// schemaKind is the kind in the words of JSON Schema, which knows no tables.
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

// text is the description with the default, which strict clients refuse to see
// anywhere else.
func (p *Param) text() string {
	if p.Default == nil {
		return p.Description
	}
	return strings.TrimSpace(p.Description + " (default: " + string(p.Default) + ")")
}

// Table is the params in the form describe() gives them.
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

// encode writes what always can be: text, booleans, and JSON that was read before.
func encode(v any) json.RawMessage {
	raw, _ := tool.Encode(v)
	return raw
}
