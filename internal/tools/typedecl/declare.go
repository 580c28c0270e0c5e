// Package typedecl writes tools as typed declarations, in TypeScript and in Lua with
// the annotations of LuaLS: models read these best before they write code that calls
// the tools. Types are made from JSON Schema of upstreams, which is not trusted:
// whatever it contains, the text stays a declaration of bounded size, and the schema
// appears only in comments, names and literals.
package typedecl

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/core/tool"
)

// Tool is a tool to declare.
type Tool struct {
	tool.Ref
	Description string
	Input       json.RawMessage // JSON Schema of the arguments
	Output      json.RawMessage // and of the result, or nil
	Learned     int             // when Output was learned: from how many results
	ReadOnly    bool
	Deprecated  bool
}

// Of is a tool as its definition says.
func Of(info *tool.Info) Tool {
	return Tool{
		Ref: info.Ref, Description: info.Description, Input: info.Input, Output: info.Output, ReadOnly: info.Hints.ReadOnly,
		Deprecated: info.Deprecated(),
	}
}

// notes are what follows the description of a tool.
func (t *Tool) notes() []string {
	var notes []string
	if t.ReadOnly {
		notes = append(notes, "Only reads.")
	}
	if t.Learned > 0 {
		results := "results"
		if t.Learned == 1 {
			results = "result"
		}
		notes = append(notes, fmt.Sprintf("The result's type was learned from %d %s: others may differ.", t.Learned, results))
	}
	return notes
}

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

// names gives each type that needs one a name of its own.
type names struct {
	taken map[string]bool
	of    map[*definition]string
}

func newNames() names { return names{map[string]bool{}, map[*definition]string{}} }

// free is an unused name.
func (n names) free(name string) string {
	found := name
	for i := 2; n.taken[found]; i++ {
		found = fmt.Sprintf("%s_%d", name, i)
	}
	n.taken[found] = true
	return found
}

// optionalMark marks arguments that may be omitted as a whole: an object without required
// properties, or anything.
func (f *form) optionalMark() string {
	if f.kind == unknown || f.kind == object && !slices.ContainsFunc(f.fields, func(f field) bool { return !f.optional }) {
		return "?"
	}
	return ""
}

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

// readValue is the type of a value, with the types of its items or properties.
func readValue(value json.RawMessage, depth int) *form {
	f := (&form{kind: literal, value: compact(value)}).orNull()
	if f.kind != literal || len(f.value) == 0 || depth > deepest {
		return f.widened()
	}
	switch f.value[0] {
	case '[':
		t := &form{kind: tuple}
		items, _ := rawjson.Items(f.value)
		for _, item := range items {
			t.parts = append(t.parts, readValue(item, depth+1))
		}
		return t
	case '{':
		o := &form{kind: object, closed: true}
		seen := map[string]bool{}
		rawjson.Each(f.value, func(name string, inner json.RawMessage) bool {
			if !seen[name] {
				o.fields = append(o.fields, field{name, false, readValue(inner, depth+1)})
			}
			seen[name] = true
			return true
		})
		return o
	}
	return f
}

// requoted writes a JSON string with quote.
func requoted(value json.RawMessage) string {
	s, _ := rawjson.Text(value)
	return quote(s)
}

func cutText(description string) string { return redact.Cut(description, longestToolText) }

// Limits of texts from schemas, in bytes.
const (
	longestToolText  = 2000
	longestFieldText = 500
	longestFact      = 80
)

// docOf is the documentation of a value: its description and the limits that types
// cannot express.
func docOf(k keywords, f *form) string {
	doc := descriptionOf(k, f)
	facts := factsOf(k)
	if f.kind == integer && (doc != "" || len(facts) > 0) { // TypeScript has no integers
		facts = append([]string{"integer"}, facts...)
	}
	switch {
	case len(facts) == 0:
		return doc
	case doc == "":
		return strings.Join(facts, ", ")
	default:
		return doc + " (" + strings.Join(facts, ", ") + ")"
	}
}

// descriptionOf is the description of a value, or else of its parts.
func descriptionOf(k keywords, f *form) string {
	description, _ := rawjson.Text(k["description"])
	if description == "" {
		description, _ = rawjson.Text(k["title"])
	}
	doc := redact.Cut(strings.TrimSpace(description), longestFieldText)
	switch {
	case doc != "":
		return doc
	case f.kind == list && f.parts[0].doc != "":
		return "Each: " + f.parts[0].doc
	case f.kind == union:
		return partsDoc(f.parts)
	}
	return ""
}

// partsDoc is the description of the parts of a union.
func partsDoc(parts []*form) string {
	var docs []string
	for _, part := range parts {
		if part.doc != "" {
			docs = append(docs, part.doc)
		}
	}
	return redact.Cut(strings.Join(docs, " / "), longestFieldText)
}

// factsOf are the limits that a type does not show.
func factsOf(k keywords) []string {
	var facts []string
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	for _, name := range []string{"format", "contentEncoding", "contentMediaType", "pattern"} {
		if value, ok := rawjson.Text(k[name]); ok {
			add("%s %s", name, redact.Cut(value, longestFact))
		}
	}
	facts = append(facts, boundsOf(k)...)
	if step := scalar(k["multipleOf"]); step != "" {
		add("multiple of %s", step)
	}
	if values, ok := rawjson.Items(k["enum"]); ok && len(values) > mostValues {
		add("one of %d values such as %s", len(values), redact.Cut(string(compact(values[0])), longestFact))
	}
	if value, ok := k["default"]; ok {
		add("default %s", redact.Cut(string(compact(value)), longestFact))
	}
	if values, ok := rawjson.Items(k["examples"]); ok && len(values) > 0 {
		add("for example %s", redact.Cut(string(compact(values[0])), longestFact))
	}
	if string(k["deprecated"]) == "true" {
		add("deprecated")
	}
	return facts
}

// boundsOf are the minimum and maximum of a value.
func boundsOf(k keywords) (facts []string) {
	for _, bound := range [][3]string{
		{"minimum", "maximum", "%s to %s"}, {"exclusiveMinimum", "exclusiveMaximum", "between %s and %s"},
		{"minLength", "maxLength", "%s to %s characters"}, {"minItems", "maxItems", "%s to %s items"},
	} {
		switch low, high := scalar(k[bound[0]]), scalar(k[bound[1]]); {
		case low != "" && high != "":
			facts = append(facts, fmt.Sprintf(bound[2], low, high))
		case low != "":
			facts = append(facts, bound[0]+" "+low)
		case high != "":
			facts = append(facts, bound[1]+" "+high)
		}
	}
	return facts
}

// scalar is a limit as it was written.
func scalar(raw json.RawMessage) string {
	if len(raw) == 0 || len(raw) > 32 || raw[0] == '{' || raw[0] == '[' || raw[0] == '"' || strings.ContainsRune("tfn", rune(raw[0])) {
		return ""
	}
	return string(raw)
}

// lines are the lines of a text, without invisible characters: those that end lines in
// some language or change the direction of text.
func lines(text string) []string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\t", "  ").Replace(text)
	text = strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar) {
			return -1
		}
		return r
	}, text)
	var kept []string
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		line = strings.TrimRight(line, " ")
		if line != "" || len(kept) > 0 && kept[len(kept)-1] != "" {
			kept = append(kept, line)
		}
	}
	return kept
}

// oneLine is a text without its line breaks.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.Join(lines(text), " ")), " ")
}

// asWritten undoes what JSON escapes for HTML.
var asWritten = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// quote writes a string literal of both languages, which contains nothing that ends a
// line or a comment.
func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return asWritten.Replace(string(raw))
}

// pascal makes a name for a type: "list-items" becomes ListItems.
func pascal(text string) string {
	var b strings.Builder
	upper := true
	for _, r := range text {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			if upper {
				r = unicode.ToUpper(r)
			}
			b.WriteRune(r)
			upper = false
		default:
			upper = true
		}
		if b.Len() > 60 {
			break
		}
	}
	return b.String()
}

// isName tells whether a name is an identifier in both languages, apart from reserved
// words.
func isName(name string) bool { return len(name) <= 200 && identifier().MatchString(name) }

var identifier = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
