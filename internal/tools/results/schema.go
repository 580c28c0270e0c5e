package results

import (
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
)

var kindNames = []struct {
	kind Kinds
	name string
}{
	{Object, "object"}, {Array, "array"}, {Text, "string"}, {Integer, "integer"}, {Number, "number"}, {Bool, "boolean"}, {Null, "null"},
}

// names are the type names of JSON Schema.
func (k Kinds) names() []string {
	if k&Number != 0 {
		k &^= Integer
	}
	var names []string
	for _, n := range kindNames {
		if k&n.kind != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// Schema is the shape as a JSON Schema. Fields that every object had are
// required.
func (s *Shape) Schema() json.RawMessage {
	schema := json.RawMessage("{}")
	set := func(key string, value any) {
		if raw, err := json.Marshal(value); err == nil {
			schema = rawjson.Set(schema, key, raw)
		}
	}
	switch names := s.Kinds.names(); len(names) {
	case 0:
	case 1:
		set("type", names[0])
	default:
		set("type", names)
	}
	if len(s.Fields) > 0 {
		properties := json.RawMessage("{}")
		var required []string
		for _, f := range s.Fields {
			properties = rawjson.Set(properties, f.Name, f.Shape.Schema())
			if f.Count >= s.Count {
				required = append(required, f.Name)
			}
		}
		schema = rawjson.Set(schema, "properties", properties)
		if len(required) > 0 {
			set("required", required)
		}
	}
	if s.Values != nil {
		schema = rawjson.Set(schema, "additionalProperties", s.Values.Schema())
	}
	if s.Items != nil {
		schema = rawjson.Set(schema, "items", s.Items.Schema())
	}
	return schema
}

// String is the shape on one line, such as {name: string, size?: integer}[].
func (s *Shape) String() string {
	var parts []string
	for _, name := range s.Kinds.names() {
		switch name {
		case "object":
			parts = append(parts, s.objectString())
		case "array":
			if s.Items == nil {
				parts = append(parts, "[]")
				continue
			}
			inner := s.Items.String()
			if strings.Contains(inner, "|") && !strings.HasPrefix(inner, "{") {
				inner = "(" + inner + ")"
			}
			parts = append(parts, inner+"[]")
		default:
			parts = append(parts, name)
		}
	}
	if len(parts) == 0 {
		return "unknown"
	}
	return strings.Join(parts, " | ")
}

func (s *Shape) objectString() string {
	if s.Values != nil {
		return "{[key]: " + s.Values.String() + "}"
	}
	fields := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		mark := ""
		if f.Count < s.Count {
			mark = "?"
		}
		fields[i] = f.Name + mark + ": " + f.Shape.String()
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// FieldNames are the names of all fields at any depth, each once.
func FieldNames(schema json.RawMessage) []string {
	var names []string
	seen := map[string]bool{}
	left := mostParts
	var walk func(raw json.RawMessage, depth int)
	walk = func(raw json.RawMessage, depth int) {
		if left--; left < 0 || depth > 2*deepest {
			return
		}
		rawjson.Each(raw, func(key string, value json.RawMessage) bool {
			switch key {
			case "properties":
				rawjson.Each(value, func(name string, inner json.RawMessage) bool {
					if !seen[name] {
						seen[name] = true
						names = append(names, name)
					}
					walk(inner, depth+1)
					return left > 0
				})
			case "$defs", "definitions":
				rawjson.Each(value, func(_ string, inner json.RawMessage) bool {
					walk(inner, depth+1)
					return left > 0
				})
			case "items", "additionalProperties":
				walk(value, depth+1)
			case "anyOf", "oneOf", "allOf", "prefixItems":
				items, _ := rawjson.Items(value)
				for _, item := range items {
					walk(item, depth+1)
				}
			}
			return left > 0
		})
	}
	walk(schema, 0)
	return names
}
