package openapi

import (
	"cmp"
	"encoding/json"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// schemas writes schemas of arguments as JSON Schema 2020-12. What a schema refers to is
// converted once and then added to $defs of every tool that needs it.
type schemas struct {
	docs  *documents
	defs  map[string]*def // by the key of the reference
	names map[string]bool // that are taken in $defs
}

// def is a schema that others refer to.
type def struct {
	name string
	raw  []byte
	refs []string // keys of the schemas that it refers to
}

func newSchemas(docs *documents) *schemas {
	return &schemas{docs: docs, defs: map[string]*def{}, names: map[string]bool{}}
}

// maxDefinitions bounds the bytes of $defs. What is left out accepts everything.
const maxDefinitions = 64 << 10

// appendDefs writes the schemas that refs need, directly or not, as the object $defs.
func (s *schemas) appendDefs(out []byte, refs []string) []byte {
	out = append(out, '{')
	start := len(out)
	seen := map[string]bool{}
	for len(refs) > 0 {
		key := refs[0]
		refs = refs[1:]
		if seen[key] {
			continue
		}
		seen[key] = true
		d := s.defs[key]
		if len(out) > start {
			out = append(out, ',')
		}
		out = append(rawjson.AppendText(out, d.name), ':')
		if len(out)-start+len(d.raw) > maxDefinitions {
			out = append(out, `{"description":"Its schema is too large to be shown."}`...)
			continue
		}
		out = append(out, d.raw...)
		refs = append(refs, d.refs...)
	}
	return append(out, '}')
}

// refer returns the reference to a schema in $defs, which it converts if it is new.
func (s *schemas) refer(from *document, ref string) (key string, ok bool) {
	target, key, err := s.docs.find(from, ref)
	if err != nil {
		return "", false
	}
	if s.defs[key] != nil {
		return key, true
	}
	d := &def{name: s.nameFor(key)}
	s.defs[key] = d // before its own references, which may lead back to it
	d.raw = s.convert(nil, target, &d.refs)
	return key, true
}

// nameFor is a new name in $defs for a reference: its last part.
func (s *schemas) nameFor(key string) string {
	name := cleanName(rawjson.UnescapeToken(key[strings.LastIndexByte(key, '/')+1:]))
	name = cmp.Or(name, "schema")
	unique := name
	for i := 2; s.names[unique]; i++ {
		unique = name + "_" + strconv.Itoa(i)
	}
	s.names[unique] = true
	return unique
}

// convert appends a schema. Keys of the schemas it refers to are added to refs.
func (s *schemas) convert(out []byte, n node, refs *[]string) []byte {
	if !rawjson.IsObject(n.raw) {
		return append(out, n.raw...) // true or false
	}
	if ref, ok := reference(n.raw); ok {
		key, ok := s.refer(n.doc, ref)
		if !ok {
			return append(out, `{}`...)
		}
		*refs = append(*refs, key)
		out = rawjson.AppendText(append(out, `{"$ref":`...), "#/$defs/"+s.defs[key].name)
		if !n.doc.old { // before 3.1 the rest has no meaning
			out = s.appendKeywords(out, n, refs)
		}
		return append(out, '}')
	}
	if n.doc.old && rawjson.GetBool(n.raw, "nullable") {
		return s.convertNullable(out, n, refs)
	}
	if binary(n) {
		return append(out, fileSchema...)
	}
	out = append(out, '{')
	out = s.appendKeywords(out, n, refs)
	return append(out, '}')
}

// fileSchema is what callers give for a file.
const fileSchema = `{"type":"string","description":"A file: cas:HASH or the id of a stored artifact, or a data: URI."}`

// binary reports whether a value is the content of a file.
func binary(n node) bool {
	kind, _ := rawjson.GetText(n.raw, "type")
	format, _ := rawjson.GetText(n.raw, "format")
	media, _ := rawjson.GetText(n.raw, "contentMediaType")
	encoding, _ := rawjson.GetText(n.raw, "contentEncoding")
	return kind == "file" || kind == "string" && format == "binary" || media != "" && encoding == "" && !strings.HasSuffix(media, "json")
}

// convertNullable appends a schema of OpenAPI 3.0 that also accepts null.
func (s *schemas) convertNullable(out []byte, n node, refs *[]string) []byte {
	raw := rawjson.Delete(n.raw, "nullable")
	kind, ok := rawjson.GetText(raw, "type")
	if !ok {
		out = s.convert(append(out, `{"anyOf":[`...), node{n.doc, raw}, refs)
		return append(out, `,{"type":"null"}]}`...)
	}
	raw = rawjson.Set(raw, "type", json.RawMessage(`["`+kind+`","null"]`))
	if enum, ok := rawjson.Get(raw, "enum"); ok && !strings.Contains(string(enum), "null") {
		raw = rawjson.Set(raw, "enum", append(slices.Clone(enum[:len(enum)-1]), `,null]`...))
	}
	return s.convert(out, node{n.doc, raw}, refs)
}

// appendKeywords appends the members of a schema behind the opening brace or a member.
func (s *schemas) appendKeywords(out []byte, n node, refs *[]string) []byte {
	mapped, discriminated := s.discriminator(n)
	for m := rawjson.Walk(n.raw); m.Next(); {
		name := string(m.Name())
		if !keepKeyword(name, m.Value, n.raw) {
			continue
		}
		switch value := (node{n.doc, m.Value}); {
		case discriminated && schemaKeywords[name] == holdsList && name != "allOf":
			out = s.appendDiscriminated(rawjson.AppendKey(out, name), value, mapped, refs)
		case schemaKeywords[name] == holdsSchema && rawjson.IsObject(m.Value):
			out = s.convert(rawjson.AppendKey(out, name), value, refs)
		case schemaKeywords[name] == holdsList:
			out = s.appendList(rawjson.AppendKey(out, name), value, refs)
		case schemaKeywords[name] == holdsMap:
			out = s.appendMap(rawjson.AppendKey(out, name), value, name == "properties", refs)
		case name == "required":
			if list := s.withoutReadOnly(n, m.Value); len(list) > 2 {
				out = append(rawjson.AppendKey(out, name), list...)
			}
		case name == "exclusiveMinimum" || name == "exclusiveMaximum":
			if limit := exclusiveLimit(n.raw, name, m.Value); limit != nil {
				out = append(rawjson.AppendKey(out, name), limit...)
			}
		default:
			out = append(rawjson.AppendKey(out, name), m.Value...)
		}
	}
	return out
}

// What keywords hold that contain schemas.
const (
	holdsSchema = iota + 1
	holdsList
	holdsMap
)

var schemaKeywords = map[string]int{
	"items": holdsSchema, "not": holdsSchema, "additionalProperties": holdsSchema, "contains": holdsSchema, "propertyNames": holdsSchema,
	"if": holdsSchema, "then": holdsSchema, "else": holdsSchema, "unevaluatedProperties": holdsSchema, "unevaluatedItems": holdsSchema,
	"allOf": holdsList, "anyOf": holdsList, "oneOf": holdsList, "prefixItems": holdsList,
	"properties": holdsMap, "patternProperties": holdsMap, "dependentSchemas": holdsMap,
}

// dropped are keywords that only OpenAPI has, and those that help nobody who calls a tool.
var dropped = map[string]bool{
	"$ref": true, "example": true, "examples": true, "xml": true, "discriminator": true, "externalDocs": true, "nullable": true,
	"readOnly": true, "writeOnly": true, "title": true, "$schema": true, "$id": true, "$anchor": true, "$comment": true,
	"$dynamicRef": true, "$dynamicAnchor": true, "$defs": true, "definitions": true, "collectionFormat": true,
}

// keepKeyword reports whether a member of a schema stays.
func keepKeyword(name string, value, schema json.RawMessage) bool {
	switch {
	case dropped[name] || strings.HasPrefix(name, "x-"):
		return false
	case name == "required":
		return value[0] == '[' // a boolean is of a parameter
	case name == "pattern": // expressions that only JavaScript has would make the schema unusable
		text, _ := rawjson.Text(value)
		_, err := syntax.Parse(text, syntax.Perl)
		return err == nil
	case name == "minimum" || name == "maximum":
		exclusive, _ := rawjson.Get(schema, "exclusive"+strings.ToUpper(name[:1])+name[1:])
		return string(exclusive) != "true"
	}
	return true
}

// exclusiveLimit is the number of an exclusive limit, which was a boolean before 3.1.
func exclusiveLimit(schema json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	if value[0] != 't' && value[0] != 'f' {
		return value
	}
	limit, _ := rawjson.Get(schema, strings.ToLower(strings.TrimPrefix(name, "exclusive")))
	if value[0] == 'f' {
		return nil
	}
	return limit
}

func (s *schemas) appendList(out []byte, n node, refs *[]string) []byte {
	out = append(out, '[')
	items, _ := rawjson.Items(n.raw)
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = s.convert(out, node{n.doc, item}, refs)
	}
	return append(out, ']')
}

// appendMap appends an object of schemas. Properties that only the service sets are left
// out.
func (s *schemas) appendMap(out []byte, n node, properties bool, refs *[]string) []byte {
	out = append(out, '{')
	start := len(out)
	for m := rawjson.Walk(n.raw); m.Next(); {
		if properties && rawjson.GetBool(m.Value, "readOnly") {
			continue
		}
		if len(out) > start {
			out = append(out, ',')
		}
		out = append(append(out, m.Key...), ':')
		out = s.convert(out, node{n.doc, m.Value}, refs)
	}
	return append(out, '}')
}

// withoutReadOnly returns the list of required properties without those that are left out.
func (s *schemas) withoutReadOnly(n node, required json.RawMessage) []byte {
	properties, _ := rawjson.Get(n.raw, "properties")
	if rawjson.Lacks(properties, "readOnly") {
		return required
	}
	items, _ := rawjson.Items(required)
	out := []byte{'['}
	for _, item := range items {
		name, _ := rawjson.Text(item)
		if property, _ := rawjson.Get(properties, name); rawjson.GetBool(property, "readOnly") {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, ']')
}

// mapping is a discriminator with its explicit values.
type mapping struct {
	property string
	values   map[string]string // by reference
}

// discriminator reads the discriminator of alternatives. It is of use only if it says
// which value means which alternative.
func (s *schemas) discriminator(n node) (mapping, bool) {
	raw, ok := rawjson.Get(n.raw, "discriminator")
	if !ok || !rawjson.IsObject(raw) {
		return mapping{}, false
	}
	found := mapping{values: map[string]string{}}
	found.property, _ = rawjson.GetText(raw, "propertyName")
	values, _ := rawjson.Get(raw, "mapping")
	rawjson.Each(values, func(value string, target json.RawMessage) bool {
		ref, _ := rawjson.Text(target)
		if !strings.ContainsAny(ref, "#/.") { // the name of a schema
			ref = "#/components/schemas/" + ref
		}
		found.values[ref] = value
		return true
	})
	return found, found.property != "" && len(found.values) > 0
}

// appendDiscriminated appends alternatives, each with the value of the discriminator that
// selects it.
func (s *schemas) appendDiscriminated(out []byte, n node, mapped mapping, refs *[]string) []byte {
	items, _ := rawjson.Items(n.raw)
	out = append(out, '[')
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		ref, _ := reference(item)
		value, ok := mapped.values[ref]
		if !ok {
			out = s.convert(out, node{n.doc, item}, refs)
			continue
		}
		out = s.convert(append(out, `{"allOf":[`...), node{n.doc, item}, refs)
		out = rawjson.AppendText(append(out, `],"properties":{`...), mapped.property)
		out = rawjson.AppendText(append(out, `:{"const":`...), value)
		out = rawjson.AppendText(append(out, `}},"required":[`...), mapped.property)
		out = append(out, `]}`...)
	}
	return append(out, ']')
}

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
