package typedecl

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// Limits of what is read of one schema. Beyond them a type is unknown.
const (
	deepest    = 16
	mostForms  = 3000
	mostValues = 100 // of an enum
)

// reader reads one schema with everything it refers to.
type reader struct {
	root  json.RawMessage
	left  int
	found map[string]*definition // by reference
	order []*definition
}

// read makes a type of a schema. definitions are the types it refers to, in order of
// appearance.
func read(schema json.RawMessage) (*form, []*definition) {
	r := &reader{root: schema, left: mostForms, found: map[string]*definition{}}
	f := r.form(schema, 0)
	return f, r.order
}

// keywords are the members of a schema.
type keywords map[string]json.RawMessage

func keywordsOf(schema json.RawMessage) keywords {
	k := keywords{}
	rawjson.Each(schema, func(name string, value json.RawMessage) bool {
		k[name] = value
		return true
	})
	return k
}

func (k keywords) any(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, ok := k[name]; return ok })
}

func (r *reader) form(schema json.RawMessage, depth int) *form {
	schema = bytes.TrimSpace(schema)
	r.left--
	switch {
	case string(schema) == "false":
		return &form{kind: never}
	case depth > deepest || r.left < 0 || !rawjson.IsObject(schema):
		return anything
	}
	k := keywordsOf(schema)
	f := r.combined(k, depth)
	if string(k["nullable"]) == "true" {
		f = either(f, &form{kind: null})
	}
	if doc := docOf(k, f); doc != "" {
		documented := *f
		documented.doc = doc
		f = &documented
	}
	return f
}

// combined is what a schema says itself and by its references.
func (r *reader) combined(k keywords, depth int) *form {
	parts := []*form{r.plain(k, depth)}
	for _, name := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref, ok := rawjson.Text(k[name]); ok {
			parts = append(parts, r.reference(ref))
		}
	}
	if schemas, ok := rawjson.Items(k["allOf"]); ok {
		for _, s := range schemas {
			parts = append(parts, r.form(s, depth+1))
		}
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		if schemas, ok := rawjson.Items(k[name]); ok && len(schemas) > 0 {
			choices := make([]*form, len(schemas))
			for i, s := range schemas {
				choices[i] = r.form(s, depth+1)
			}
			parts = append(parts, either(choices...))
		}
	}
	return required(all(parts...), requiredIn(k))
}

// requiredIn are the names that a schema requires, including allOf: one part may
// require what another describes.
func requiredIn(k keywords) []string {
	var names []string
	_ = json.Unmarshal(k["required"], &names) // an invalid list counts as none
	schemas, _ := rawjson.Items(k["allOf"])
	for _, s := range schemas {
		var more []string
		if raw, ok := rawjson.Get(s, "required"); ok && json.Unmarshal(raw, &more) == nil {
			names = append(names, more...)
		}
	}
	return names
}

// required marks the required fields of an object.
func required(f *form, names []string) *form {
	if f.kind != object || len(names) == 0 {
		return f
	}
	marked := *f
	marked.fields = slices.Clone(f.fields)
	for i := range marked.fields {
		if slices.Contains(names, marked.fields[i].name) {
			marked.fields[i].optional = false
		}
	}
	return &marked
}

// plain is what a schema says without references.
func (r *reader) plain(k keywords, depth int) *form {
	if value, ok := k["const"]; ok {
		return (&form{kind: literal, value: compact(value)}).orNull()
	}
	types := typesOf(k)
	if values, ok := rawjson.Items(k["enum"]); ok && len(values) > 0 {
		return enumerated(values, types)
	}
	if len(types) == 0 {
		return anything
	}
	choices := make([]*form, 0, len(types))
	for _, name := range types {
		choices = append(choices, r.typed(name, k, depth))
	}
	return either(choices...)
}

func (r *reader) typed(name string, k keywords, depth int) *form {
	switch name {
	case "null":
		return &form{kind: null}
	case "boolean":
		return &form{kind: boolean}
	case "integer":
		return &form{kind: integer}
	case "number":
		return &form{kind: number}
	case "string":
		return &form{kind: text}
	case "array":
		return r.array(k, depth)
	case "object":
		return r.object(k, depth)
	default:
		return anything
	}
}

// typesOf are the types that a schema names, or that its other keywords imply.
func typesOf(k keywords) []string {
	if raw, ok := k["type"]; ok {
		if name, ok := rawjson.Text(raw); ok {
			return []string{name}
		}
		var names []string
		if json.Unmarshal(raw, &names) == nil {
			return names
		}
		return nil
	}
	switch {
	case k.any("properties", "additionalProperties", "patternProperties"):
		return []string{"object"}
	case k.any("items", "prefixItems"):
		return []string{"array"}
	case k.any("pattern", "minLength", "maxLength", "format"):
		return []string{"string"}
	case k.any("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
		return []string{"number"}
	}
	return nil
}

// enumerated is a union of values, or of their types if there are very many.
func enumerated(values []json.RawMessage, types []string) *form {
	var choices []*form
	for _, v := range values {
		if f := (&form{kind: literal, value: compact(v)}).orNull(); len(types) == 0 || f.isOf(types) {
			choices = append(choices, f)
		}
	}
	if len(choices) == 0 {
		return anything
	}
	if len(choices) > mostValues {
		for i, f := range choices {
			choices[i] = f.widened()
		}
	}
	return either(choices...)
}

func (f *form) orNull() *form {
	if rawjson.IsNull(f.value) {
		return &form{kind: null}
	}
	return f
}

// isOf tells whether a literal is of one of the types a schema names.
func (f *form) isOf(types []string) bool {
	wide := f.widened()
	name := [...]string{
		null: "null", boolean: "boolean", integer: "integer", number: "number", text: "string", list: "array", object: "object",
	}[wide.kind]
	return slices.Contains(types, name) || wide.kind == integer && slices.Contains(types, "number")
}

// widened is the type of a literal.
func (f *form) widened() *form {
	if f.kind != literal || len(f.value) == 0 {
		return f
	}
	switch c := f.value[0]; {
	case c == '"':
		return &form{kind: text}
	case c == 't' || c == 'f':
		return &form{kind: boolean}
	case c == '[':
		return &form{kind: list, parts: []*form{anything}}
	case c == '{':
		return &form{kind: object}
	case bytes.ContainsAny(f.value, ".eE"):
		return &form{kind: number}
	default:
		return &form{kind: integer}
	}
}

func compact(value json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return json.RawMessage("null")
	}
	return out.Bytes()
}

func (r *reader) array(k keywords, depth int) *form {
	prefix, isTuple := rawjson.Items(k["prefixItems"])
	further, given := k["items"]
	if older, ok := rawjson.Items(k["items"]); ok { // up to draft 2019-09
		prefix, isTuple = older, true
		further, given = k["additionalItems"]
	}
	if !isTuple || len(prefix) == 0 {
		if !given {
			return &form{kind: list, parts: []*form{anything}}
		}
		return &form{kind: list, parts: []*form{r.form(further, depth+1)}}
	}
	t := &form{kind: tuple}
	for _, s := range prefix {
		t.parts = append(t.parts, r.form(s, depth+1))
	}
	if least, ok := wholeNumber(k["minItems"]); ok {
		t.optional = max(len(prefix)-least, 0)
	}
	most, bounded := wholeNumber(k["maxItems"])
	switch {
	case bounded && most <= len(prefix):
	case given:
		if rest := r.form(further, depth+1); rest.kind != never {
			t.rest = rest
		}
	default:
		t.rest = anything
	}
	return t
}

func wholeNumber(raw json.RawMessage) (int, bool) {
	n, err := strconv.Atoi(string(bytes.TrimSpace(raw)))
	return n, err == nil
}

func (r *reader) object(k keywords, depth int) *form {
	f := &form{kind: object}
	var names []string
	_ = json.Unmarshal(k["required"], &names) // an invalid list counts as none
	described := map[string]bool{}
	rawjson.Each(k["properties"], func(name string, schema json.RawMessage) bool {
		if inner := r.form(schema, depth+1); !described[name] && (inner.kind != never || slices.Contains(names, name)) {
			f.fields = append(f.fields, field{name, !slices.Contains(names, name), inner})
		}
		described[name] = true
		return r.left > 0
	})
	for _, name := range names {
		if !described[name] && len(f.fields) < mostForms {
			described[name] = true
			f.fields = append(f.fields, field{name, false, anything})
		}
	}
	f.rest = r.further(k, depth)
	f.closed = string(bytes.TrimSpace(k["additionalProperties"])) == "false" && f.rest == nil
	return f
}

// further is the type of other properties; nil when the schema does not describe them.
func (r *reader) further(k keywords, depth int) *form {
	var kinds []*form
	rawjson.Each(k["patternProperties"], func(_ string, schema json.RawMessage) bool {
		kinds = append(kinds, r.form(schema, depth+1))
		return r.left > 0
	})
	for _, name := range []string{"additionalProperties", "unevaluatedProperties"} {
		if raw, ok := k[name]; ok {
			if f := r.form(raw, depth+1); f.kind != never {
				kinds = append(kinds, f)
			}
			break
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	return either(kinds...)
}

// reference is the type that another part of the schema defines.
func (r *reader) reference(ref string) *form {
	if d, known := r.found[ref]; known {
		return &form{kind: named, ref: d}
	}
	target, ok := r.lookup(ref)
	if !ok {
		return anything
	}
	d := &definition{ref: ref, hint: hintOf(ref)}
	r.found[ref] = d
	r.order = append(r.order, d)
	d.form = r.form(target, 1)
	if loops(d.form, d) {
		d.form = anything
	}
	return &form{kind: named, ref: d}
}

// loops tells whether a type refers to itself directly.
func loops(f *form, d *definition) bool {
	seen := map[*definition]bool{}
	var visit func(f *form) bool
	visit = func(f *form) bool {
		switch f.kind {
		case named:
			if f.ref == d {
				return true
			}
			if seen[f.ref] || f.ref.form == nil {
				return false
			}
			seen[f.ref] = true
			return visit(f.ref.form)
		case union, both:
			return slices.ContainsFunc(f.parts, visit)
		default:
			return false
		}
	}
	return visit(f)
}

// lookup follows a JSON pointer, or an anchor of a definition.
func (r *reader) lookup(ref string) (json.RawMessage, bool) {
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil, false
	}
	if fragment == "" {
		return r.root, true
	}
	if !strings.HasPrefix(fragment, "/") {
		return r.anchored(fragment)
	}
	at := r.root
	for _, step := range strings.Split(unescapePercent(fragment[1:]), "/") {
		next, ok := rawjson.Descend(at, step)
		if !ok {
			return nil, false
		}
		at = next
	}
	return at, true
}

func (r *reader) anchored(name string) (found json.RawMessage, ok bool) {
	for _, place := range []string{"$defs", "definitions"} {
		definitions, _ := rawjson.Get(r.root, place)
		rawjson.Each(definitions, func(_ string, schema json.RawMessage) bool {
			for _, key := range []string{"$anchor", "$dynamicAnchor"} {
				if text, has := rawjson.GetText(schema, key); has && text == name {
					found, ok = schema, true
				}
			}
			return !ok
		})
	}
	return found, ok
}

// unescapePercent decodes the percent escapes of a fragment. A wrong one stays as it is.
func unescapePercent(fragment string) string {
	if decoded, err := url.PathUnescape(fragment); err == nil {
		return decoded
	}
	return fragment
}

// hintOf is a name for a type, from the reference to it.
func hintOf(ref string) string {
	if ref == "#" {
		return "self"
	}
	ref = unescapePercent(ref)
	return rawjson.UnescapeToken(ref[strings.LastIndexAny(ref, "/#")+1:])
}
