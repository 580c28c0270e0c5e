package openapi

import (
	"encoding/json"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// Results are described by an outline: names and types of fields, a few levels deep. The
// full schemas of results are often a hundred times larger than those of arguments, and
// services do not keep to their details, which clients would hold against them.
const (
	outlineDepth  = 3 * propertyDepth
	propertyDepth = 4       // what a level of properties costs; lists and alternatives cost 1
	maxOutline    = 6 << 10 // bytes; beyond that nothing is added
)

// outline appends the outline of a schema to what it has of the whole outline.
func (d *documents) outline(out []byte, n node, depth int) []byte {
	n, err := d.follow(n)
	if tooDeep := depth <= 0 || len(out) > maxOutline; tooDeep || err != nil || !rawjson.IsObject(n.raw) {
		return append(out, `{}`...)
	}
	var found [7]json.RawMessage
	rawjson.Pick(n.raw, []string{"type", "properties", "items", "allOf", "oneOf", "anyOf", "nullable"}, found[:])
	out = append(out, '{')
	if found[0] != nil {
		out = append(rawjson.AppendKey(out, "type"), outlineType(found[0], found[6])...)
	}
	if rawjson.IsObject(found[1]) {
		out = d.outlineProperties(rawjson.AppendKey(out, "properties"), node{n.doc, found[1]}, depth)
	}
	if rawjson.IsObject(found[2]) {
		out = d.outline(rawjson.AppendKey(out, "items"), node{n.doc, found[2]}, depth-1)
	}
	for i, key := range []string{"allOf", "anyOf", "anyOf"} {
		out = d.outlineList(out, key, node{n.doc, found[3+i]}, depth)
	}
	return append(out, '}')
}

// outlineType is a type, with null for a nullable one.
func outlineType(kind, nullable json.RawMessage) json.RawMessage {
	if string(nullable) == "true" && kind[0] == '"' {
		return json.RawMessage("[" + string(kind) + `,"null"]`)
	}
	return kind
}

func (d *documents) outlineProperties(out []byte, n node, depth int) []byte {
	out = append(out, '{')
	start := len(out)
	for m := rawjson.Walk(n.raw); m.Next(); {
		if len(out) > start {
			out = append(out, ',')
		}
		out = append(append(out, m.Key...), ':')
		out = d.outline(out, node{n.doc, m.Value}, depth-propertyDepth)
	}
	return append(out, '}')
}

// outlineList appends a member with the outlines of alternatives, if there are any.
func (d *documents) outlineList(out []byte, key string, n node, depth int) []byte {
	items, _ := rawjson.Items(n.raw)
	if len(items) == 0 {
		return out
	}
	out = append(rawjson.AppendKey(out, key), '[')
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = d.outline(out, node{n.doc, item}, depth-1)
	}
	return append(out, ']')
}

// kindDepth is how deep the parts of a schema are read for its type. Parts may refer to the
// whole, and each level may take three times as long as the one before.
const kindDepth = 6

// kind is the type of a schema as far as it is certain: object, array, another type, or
// empty.
func (d *documents) kind(n node, depth int) string {
	n, err := d.follow(n)
	if err != nil || depth == 0 {
		return ""
	}
	if kind, ok := rawjson.GetText(n.raw, "type"); ok {
		return kind
	}
	if _, ok := rawjson.Get(n.raw, "properties"); ok {
		return "object"
	}
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		raw, _ := rawjson.Get(n.raw, key)
		if common := d.commonKind(node{n.doc, raw}, depth); common != "" {
			return common
		}
	}
	return ""
}

// commonKind is the type that all schemas of a list have; empty if they differ.
func (d *documents) commonKind(n node, depth int) (common string) {
	items, _ := rawjson.Items(n.raw)
	for i, item := range items {
		kind := d.kind(node{n.doc, item}, depth-1)
		if kind == "" || i > 0 && kind != common {
			return ""
		}
		common = kind
	}
	return common
}
