package search

import (
	"encoding/json"
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

// schemaText is the part of a schema that is searched: the names of its properties at any
// depth, their descriptions, and the values that they may have.
type schemaText struct {
	names, texts, values []string
	properties           int
	// see is called for each property with a description; nil: it is not.
	see func(name, description string)
}

// readSchema reads a schema. One beyond the limits gives less text.
func readSchema(schema json.RawMessage, see func(name, description string)) *schemaText {
	s := &schemaText{see: see}
	if len(schema) <= longestSchema {
		s.read("", schema, 0)
	}
	return s
}

// read reads the schema of a property; name is empty for a schema that is none.
func (s *schemaText) read(name string, schema json.RawMessage, depth int) {
	if depth > deepestSchema {
		return
	}
	rawjson.Each(schema, func(key string, value json.RawMessage) bool {
		switch key {
		case "description":
			if depth > 0 {
				s.describe(name, value)
			}
		case "properties":
			rawjson.Each(value, func(property string, inner json.RawMessage) bool {
				return s.property(property, inner, depth)
			})
		case "$defs", "definitions":
			rawjson.Each(value, func(_ string, inner json.RawMessage) bool {
				s.read("", inner, depth+1)
				return true
			})
		case "items", "additionalProperties":
			s.read("", value, depth+1)
		case "anyOf", "oneOf", "allOf":
			choices, _ := rawjson.Items(value)
			for _, one := range choices {
				s.read("", one, depth+1)
			}
		case "enum":
			s.enum(value)
		}
		return true
	})
}

func (s *schemaText) property(name string, schema json.RawMessage, depth int) (more bool) {
	if s.properties++; s.properties > mostParams {
		return false
	}
	s.names = append(s.names, name)
	s.read(name, schema, depth+1)
	return true
}

func (s *schemaText) describe(name string, value json.RawMessage) {
	text, _ := rawjson.Text(value)
	s.texts = append(s.texts, text)
	if name != "" && s.see != nil {
		s.see(name, text)
	}
}

// enum adds the values that are short texts: others are data.
func (s *schemaText) enum(list json.RawMessage) {
	values, _ := rawjson.Items(list)
	for _, raw := range values {
		if text, ok := rawjson.Text(raw); ok && len(text) <= longestValue && len(s.values) < mostValues {
			s.values = append(s.values, text)
		}
	}
}

// tags are the tags of a tool: its own, and those that the definition has as tags or, as
// some frameworks write it, within _meta.
func tags(info *tool.Info) string {
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
