package catalog

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
)

const (
	mostShownParams  = 30
	longestSignature = 1000
)

// Signature writes what a tool takes on one line: required arguments first, then
// the optional ones marked with a question mark: "(path: string, head?: integer)".
// It is for reading, not for parsing.
func Signature(schema json.RawMessage) string {
	var required []string
	if raw, ok := rawjson.Get(schema, "required"); ok {
		_ = json.Unmarshal(raw, &required) // an invalid list counts as none
	}
	var must, may []string
	properties, _ := rawjson.Get(schema, "properties")
	rawjson.Each(properties, func(name string, property json.RawMessage) bool {
		if slices.Contains(required, name) {
			must = append(must, name+": "+typeOf(property))
		} else {
			may = append(may, name+"?: "+typeOf(property))
		}
		return len(must)+len(may) <= mostShownParams
	})
	all := append(must, may...)
	if len(all) > mostShownParams {
		all = append(all[:mostShownParams], "…")
	}
	return "(" + redact.Cut(strings.Join(all, ", "), longestSignature) + ")"
}

// typeOf names what a schema takes: its type, its few allowed values, or "any".
func typeOf(schema json.RawMessage) string {
	if raw, ok := rawjson.Get(schema, "enum"); ok && len(raw) <= 120 {
		if items, ok := rawjson.Items(raw); ok && len(items) > 0 {
			return joinRaw(items, "|")
		}
	}
	raw, ok := rawjson.Get(schema, "type")
	if !ok {
		return "any"
	}
	if items, ok := rawjson.Items(raw); ok {
		return anyOf(items)
	}
	name, _ := rawjson.Text(raw)
	if items, ok := rawjson.Get(schema, "items"); ok && name == "array" {
		return typeOf(items) + "[]"
	}
	return name
}

// anyOf joins the names of several types, without null.
func anyOf(items []json.RawMessage) string {
	names := make([]string, 0, len(items))
	for _, item := range items {
		if name, ok := rawjson.Text(item); ok && name != "null" {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

func joinRaw(items []json.RawMessage, separator string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = string(item)
	}
	return strings.Join(texts, separator)
}
