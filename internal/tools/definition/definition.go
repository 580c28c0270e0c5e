// Package definition reads what the definition of a tool says in words: the names, descriptions
// and values of its schemas, and its tags.
package definition

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// Limits of what is read of a schema.
const (
	longestSchema = 256 << 10
	deepestSchema = 5
	mostParams    = 256
	mostValues    = 64 // of all enums
	longestValue  = 32
	mostTags      = 16
)

// Schema is what a schema says in words: the names of its properties at any
// depth, their descriptions, and the values that they may have.
type Schema struct {
	Names, Texts, Values []string
	properties           int
}

// ReadSchema reads a schema. One beyond the limits gives less text.
func ReadSchema(schema json.RawMessage) *Schema {
	s := &Schema{}
	if len(schema) <= longestSchema {
		s.read(schema, 0)
	}
	return s
}

// FieldNames returns the names of all properties of a schema, each once.
func FieldNames(schema json.RawMessage) []string {
	var names []string
	for _, name := range ReadSchema(schema).Names {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// read reads a schema, or that of a property.
func (s *Schema) read(schema json.RawMessage, depth int) {
	if depth > deepestSchema {
		return
	}
	rawjson.Each(schema, func(key string, value json.RawMessage) bool {
		switch key {
		case "description":
			if depth > 0 {
				text, _ := rawjson.Text(value)
				s.Texts = append(s.Texts, text)
			}
		case "properties":
			rawjson.Each(value, func(property string, inner json.RawMessage) bool {
				return s.property(property, inner, depth)
			})
		case "$defs", "definitions":
			rawjson.Each(value, func(_ string, inner json.RawMessage) bool {
				s.read(inner, depth+1)
				return true
			})
		case "items", "additionalProperties":
			s.read(value, depth+1)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			choices, _ := rawjson.Items(value)
			for _, one := range choices {
				s.read(one, depth+1)
			}
		case "enum":
			s.enum(value)
		}
		return true
	})
}

func (s *Schema) property(name string, schema json.RawMessage, depth int) (more bool) {
	if s.properties++; s.properties > mostParams {
		return false
	}
	s.Names = append(s.Names, name)
	s.read(schema, depth+1)
	return true
}

// enum adds the values that are short texts: others are data.
func (s *Schema) enum(list json.RawMessage) {
	values, _ := rawjson.Items(list)
	for _, raw := range values {
		if text, ok := rawjson.Text(raw); ok && len(text) <= longestValue && len(s.Values) < mostValues {
			s.Values = append(s.Values, text)
		}
	}
}

// Tags are the tags of a tool: its own, and those that the definition has as tags or, as
// some frameworks write it, within _meta.
func Tags(info *tool.Info) string {
	all := info.Tags
	if !rawjson.Lacks(info.Raw, `"tags"`) {
		all = append(all[:len(all):len(all)], tagsIn(info.Raw, 0)...)
	}
	return strings.Join(all[:min(len(all), mostTags)], " ")
}

func tagsIn(object json.RawMessage, depth int) (found []string) {
	rawjson.Each(object, func(key string, value json.RawMessage) bool {
		switch {
		case key == "tags":
			items, _ := rawjson.Items(value)
			for _, raw := range items {
				if tag, ok := rawjson.Text(raw); ok && len(tag) <= longestValue {
					found = append(found, tag)
				}
			}
		case depth == 0 && key == "_meta" || depth == 1:
			found = append(found, tagsIn(value, depth+1)...)
		}
		return true
	})
	return found
}
