package typedecl

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/redact"
)

// Limits of a signature.
const (
	mostShownParams  = 30
	longestSignature = 1000 // bytes
	longestChoice    = 120  // bytes of the allowed values of one argument; for more the type is shown
)

// Signature writes what a tool takes on one line: required arguments first, then the
// optional ones marked with a question mark, objects without their properties:
// "(path: string, head?: integer)". It is for reading, not for parsing.
func Signature(schema json.RawMessage) string {
	f, _ := read(schema)
	optional := func(one field) bool { return one.optional }
	required := func(one field) bool { return !one.optional }
	fields := slices.Concat(slices.DeleteFunc(slices.Clone(f.fields), optional), slices.DeleteFunc(slices.Clone(f.fields), required))
	var shown []string
	for _, one := range fields[:min(len(fields), mostShownParams)] {
		shown = append(shown, one.line(signature))
	}
	if len(fields) > mostShownParams {
		shown = append(shown, "…")
	}
	return "(" + redact.Cut(strings.Join(shown, ", "), longestSignature) + ")"
}

// Parameter is an argument of a tool.
type Parameter struct {
	Name, Type  string // the type as in a signature
	Required    bool
	Description string
}

// Parameters returns what a tool takes, in the order of its schema.
func Parameters(schema json.RawMessage) []Parameter {
	f, _ := read(schema)
	var all []Parameter
	for _, one := range f.fields {
		all = append(all, Parameter{one.name, one.form.line(signature), !one.optional, one.form.doc})
	}
	return all
}

// Kinds returns the JSON type of each property of a schema that has only one besides null:
// string, integer, number, boolean, object or array. References are followed.
func Kinds(schema json.RawMessage) map[string]string {
	f, _ := read(schema)
	kinds := map[string]string{}
	for _, one := range f.fields {
		if name := one.form.jsonType(); name != "" {
			kinds[one.name] = name
		}
	}
	return kinds
}

// jsonType returns the only JSON type of a form besides null; "" if there are several, or any.
func (f *form) jsonType() string {
	switch f = f.widened(); f.kind {
	case named:
		return f.ref.form.jsonType()
	case union:
		found := ""
		for _, part := range f.parts {
			name := part.jsonType()
			if part.kind == null || name == found {
				continue
			}
			if name == "" || found != "" {
				return ""
			}
			found = name
		}
		return found
	case both:
		for _, part := range f.parts {
			if name := part.jsonType(); name != "" {
				return name
			}
		}
		return ""
	case list, tuple:
		return "array"
	default:
		return jsonTypes[f.kind]
	}
}

// jsonTypes are the names of kinds in JSON Schema.
var jsonTypes = map[kind]string{boolean: "boolean", integer: "integer", number: "number", text: "string", object: "object"}

// Line writes a type on one line, such as {name: string, size?: integer}[].
func Line(schema json.RawMessage) string {
	f, _ := read(schema)
	return f.line(whole)
}

// detail is how much of a type a line shows.
type detail uint8

const (
	whole     detail = iota
	signature        // objects without their properties
	referred         // the same of what a reference leads to, which follows no other
)

func (f field) line(d detail) string {
	name := f.name
	if !isName(name) {
		name = quote(name)
	}
	if f.optional {
		name += "?"
	}
	return name + ": " + f.form.line(d)
}

func (f *form) line(d detail) string {
	switch f.kind {
	case never, null, boolean, integer, number:
		return kindNames[f.kind]
	case text:
		return "string"
	case literal:
		return string(f.value)
	case list:
		if inner := f.parts[0]; inner.kind != union && inner.kind != both {
			return inner.line(d) + "[]"
		}
		return "(" + f.parts[0].line(d) + ")[]"
	case tuple:
		return "[" + joinedLines(f.parts, ", ", d) + "]"
	case object:
		return f.objectLine(d)
	case union:
		return f.unionLine(d)
	case both:
		return joinedLines(f.parts, " & ", d)
	case named:
		if d == signature {
			return f.ref.form.line(referred)
		}
	}
	return "any"
}

func joinedLines(parts []*form, separator string, d detail) string {
	lines := make([]string, len(parts))
	for i, part := range parts {
		lines[i] = part.line(d)
	}
	return strings.Join(lines, separator)
}

func (f *form) objectLine(d detail) string {
	if d != whole {
		return "object"
	}
	if f.isMap() && f.rest != nil {
		return "{[key]: " + f.rest.line(d) + "}"
	}
	lines := make([]string, len(f.fields))
	for i, one := range f.fields {
		lines[i] = one.line(d)
	}
	return "{" + strings.Join(lines, ", ") + "}"
}

// unionLine leaves out null in a signature: an argument that may be null may be omitted.
func (f *form) unionLine(d detail) string {
	if d == whole {
		return joinedLines(f.parts, " | ", d)
	}
	parts := slices.DeleteFunc(slices.Clone(f.parts), func(part *form) bool { return part.kind == null })
	if line := joinedLines(parts, "|", d); len(line) <= longestChoice {
		return line
	}
	for i, part := range parts {
		parts[i] = part.widened()
	}
	wide := either(parts...)
	if wide.kind != union {
		return wide.line(d)
	}
	return redact.Cut(joinedLines(wide.parts, "|", d), longestChoice)
}
