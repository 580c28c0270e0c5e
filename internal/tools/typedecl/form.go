package typedecl

import (
	"encoding/json"
	"slices"
	"strings"
)

// kind is the kind of a type.
type kind uint8

const (
	unknown kind = iota // anything
	never               // nothing
	null
	boolean
	integer
	number
	text
	literal
	list   // of parts[0]
	tuple  // of parts, then rest
	object // of fields, then rest
	union  // any of parts
	both   // all of parts
	named  // a reference
)

// form is a type, read from a schema.
type form struct {
	kind
	value    json.RawMessage // of a literal
	parts    []*form
	fields   []field
	rest     *form // of further items or properties; nil: none are described
	optional int   // of a tuple: how many of the last parts may be missing
	closed   bool  // of an object: there are no other properties
	ref      *definition
	doc      string
}

// field is a property of an object.
type field struct {
	name     string
	optional bool
	form     *form
}

// definition is a type that others refer to.
type definition struct {
	ref  string
	hint string // what the schema calls it
	form *form
}

var anything = &form{kind: unknown}

// isMap tells whether an object has no named properties.
func (f *form) isMap() bool { return f.kind == object && len(f.fields) == 0 && !f.closed }

// loose tells whether an object has no description of its properties.
func (f *form) loose() bool { return f.isMap() && (f.rest == nil || f.rest.kind == unknown) }

// either is the union of forms. Without any it is never.
func either(forms ...*form) *form {
	var parts []*form
	seen := map[string]bool{}
	var add func(f *form)
	add = func(f *form) {
		if f.kind == union {
			for _, part := range f.parts {
				add(part)
			}
			return
		}
		if key := f.key(); f.kind != never && !seen[key] {
			seen[key] = true
			parts = append(parts, f)
		}
	}
	for _, f := range forms {
		if f.kind == unknown {
			return anything
		}
		add(f)
	}
	switch {
	case len(parts) == 0:
		return &form{kind: never}
	case len(parts) == 1:
		return parts[0]
	}
	if seen["number"] { // which includes integers
		parts = slices.DeleteFunc(parts, func(f *form) bool { return f.kind == integer })
	}
	return &form{kind: union, parts: parts}
}

// all is the intersection of forms: objects are merged, forms that add nothing are
// dropped.
func all(forms ...*form) *form {
	var parts []*form
	seen := map[string]bool{}
	for _, f := range forms {
		if key := f.key(); f.kind != unknown && !seen[key] {
			seen[key] = true
			parts = append(parts, f)
		}
	}
	if seen["integer"] {
		parts = slices.DeleteFunc(parts, func(f *form) bool { return f.kind == number })
	}
	if len(parts) > 1 {
		parts = slices.DeleteFunc(parts, (*form).loose)
	}
	switch {
	case len(parts) == 0 && len(forms) > 0 && slices.ContainsFunc(forms, (*form).loose):
		return &form{kind: object}
	case len(parts) == 0:
		return anything
	case len(parts) == 1:
		return parts[0]
	case slices.ContainsFunc(parts, func(f *form) bool { return f.kind == never }):
		return &form{kind: never}
	}
	whole := &form{kind: both, parts: joined(parts)}
	return whole.unwrapped()
}

// joined merges all plain objects among the parts that do not contradict each other.
func joined(parts []*form) []*form {
	whole := &form{kind: object}
	var others []*form
	for _, p := range parts {
		if p.kind != object || p.rest != nil || !whole.take(p.fields) {
			others = append(others, p)
		}
	}
	if len(whole.fields) == 0 {
		return parts
	}
	return append([]*form{whole}, others...)
}

// take adds fields to an object; false, and nothing is added, when a name has another
// type already. A description is taken from either.
func (f *form) take(fields []field) bool {
	merged := slices.Clone(f.fields)
	for _, one := range fields {
		i := slices.IndexFunc(merged, func(m field) bool { return m.name == one.name })
		if i < 0 {
			merged = append(merged, one)
			continue
		}
		have := &merged[i]
		switch {
		case have.form.kind == unknown:
			have.form = one.form
		case one.form.kind != unknown && one.form.key() != have.form.key():
			return false
		}
		have.optional = have.optional && one.optional
	}
	f.fields = merged
	return true
}

func (f *form) unwrapped() *form {
	if len(f.parts) == 1 {
		return f.parts[0]
	}
	return f
}

// key is equal for equal types.
func (f *form) key() string {
	var b strings.Builder
	f.write(&b)
	return b.String()
}

var kindNames = [...]string{
	"unknown", "never", "null", "boolean", "integer", "number", "text", "literal", "list", "tuple", "object", "union", "both", "named",
}

func (f *form) write(b *strings.Builder) {
	b.WriteString(kindNames[f.kind])
	switch f.kind {
	case literal:
		b.Write(f.value)
	case named:
		b.WriteString(f.ref.ref)
	case list, tuple, object, union, both:
		b.WriteByte('(')
		for _, p := range f.parts {
			p.write(b)
			b.WriteByte(' ')
		}
		for _, p := range f.fields {
			b.WriteString(quote(p.name))
			if p.optional {
				b.WriteByte('?')
			}
			p.form.write(b)
			b.WriteByte(' ')
		}
		if f.rest != nil {
			b.WriteByte('*')
			f.rest.write(b)
		}
		b.WriteByte(')')
	}
}
