package toolset

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/luanette/luanette/internal/wire"
)

// appendSchema writes a schema that strict has seen, with the members and in the
// order of the library's own MarshalJSON. That one goes over what is deep once for
// every level above it, which for all our tools is much of what a start takes.
func appendSchema(out []byte, s *jsonschema.Schema) []byte {
	if s.Not != nil { // of nothing else
		return append(out, "false"...)
	}
	out = append(out, '{')
	if s.Type != "" {
		out = appendMember(out, "type", s.Type)
	} else {
		out = appendMember(out, "type", s.Types)
	}
	if s.Properties != nil {
		out = appendProperties(wire.AppendKey(out, "properties"), s)
	}
	if s.Items != nil {
		out = appendSchema(wire.AppendKey(out, "items"), s.Items)
	}
	if s.Description != "" {
		out = appendMember(out, "description", s.Description)
	}
	out = appendBounds(out, s)
	if len(s.Required) > 0 {
		out = appendMember(out, "required", s.Required)
	}
	if s.AdditionalProperties != nil {
		out = appendSchema(wire.AppendKey(out, "additionalProperties"), s.AdditionalProperties)
	}
	return append(out, '}')
}

func appendProperties(out []byte, s *jsonschema.Schema) []byte {
	out = append(out, '{')
	for _, name := range s.PropertyOrder {
		out = appendSchema(wire.AppendKey(out, name), s.Properties[name])
	}
	return append(out, '}')
}

// appendBounds writes what else holds of a value.
func appendBounds(out []byte, s *jsonschema.Schema) []byte {
	if len(s.Enum) > 0 {
		out = appendMember(out, "enum", s.Enum)
	}
	for _, bound := range []struct {
		name string
		n    *float64
	}{{"minimum", s.Minimum}, {"maximum", s.Maximum}} {
		if bound.n != nil {
			out = appendMember(out, bound.name, *bound.n)
		}
	}
	for _, bound := range []struct {
		name string
		n    *int
	}{{"minLength", s.MinLength}, {"maxLength", s.MaxLength}, {"minItems", s.MinItems}, {"maxItems", s.MaxItems}} {
		if bound.n != nil {
			out = appendMember(out, bound.name, *bound.n)
		}
	}
	return out
}

func appendMember(out []byte, name string, value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic("toolset: write " + name + ": " + err.Error()) // a bound that is no number
	}
	return append(wire.AppendKey(out, name), raw...)
}
