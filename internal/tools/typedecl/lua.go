package typedecl

import (
	"fmt"
	"slices"
	"strings"
)

// Lua declares tools as functions of the global mcp, with the annotations of
// LuaLS: a class for each object, a line for each of its fields.
func Lua(tools []Tool) string {
	parts := make([]string, len(tools))
	p := &annotator{names: newNames()}
	for i := range tools {
		parts[i] = p.tool(&tools[i])
	}
	return strings.Join(parts, "\n")
}

// annotator prints types for LuaLS. Objects must be classes, which are declared before
// their use.
type annotator struct {
	names
	classes strings.Builder
}

func (p *annotator) tool(t *Tool) string {
	p.classes.Reset()
	name := className(t.String())
	args := p.schema(t.Input, name, "args")
	argsType := p.print(args, name+".args")
	result := "any"
	if t.Output != nil {
		result = p.print(p.schema(t.Output, name, "result"), name+".result")
	}
	var b strings.Builder
	b.WriteString(p.classes.String())
	remark(&b, append(lines(cutText(t.Description)), t.notes()...))
	if t.Deprecated {
		b.WriteString("---@deprecated\n")
	}
	fmt.Fprintf(&b, "---@param args%s %s\n---@return %s\n", args.optionalMark(), argsType, result)
	if path := t.ScriptPath(); strings.Contains(path, "[") {
		fmt.Fprintf(&b, "%s = function(args) end\n", path)
	} else {
		fmt.Fprintf(&b, "function %s(args) end\n", path)
	}
	return b.String()
}

// schema reads a schema and declares what it refers to.
func (p *annotator) schema(raw []byte, prefix, role string) *form {
	f, definitions := read(raw)
	for _, d := range definitions {
		hint := d.hint
		if hint == "self" {
			hint = role + ".self"
		}
		p.names.of[d] = p.free(prefix + "." + className(hint))
	}
	for _, d := range definitions {
		p.define(p.names.of[d], d.form)
	}
	return f
}

// define gives a type a name: objects as a class, others as an alias.
func (p *annotator) define(name string, f *form) {
	if f.kind == object && !f.isMap() {
		p.class(name, f)
		return
	}
	alias := p.print(f, name+".value")
	fmt.Fprintf(&p.classes, "---@alias %s %s\n\n", name, alias)
}

// class declares an object, after the classes of its fields.
func (p *annotator) class(name string, f *form, parents ...string) {
	var b strings.Builder
	remark(&b, lines(f.doc))
	fmt.Fprintf(&b, "---@class %s", name)
	if len(parents) > 0 {
		fmt.Fprintf(&b, " : %s", strings.Join(parents, ", "))
	}
	b.WriteByte('\n')
	for _, one := range f.fields {
		key, mark := one.name, ""
		if !isName(key) {
			key = "[" + quote(key) + "]"
		}
		if one.optional {
			mark = "?"
		}
		fmt.Fprintf(&b, "---@field %s%s %s", key, mark, p.print(one.form, name+"."+className(one.name)))
		if doc := oneLine(one.form.doc); doc != "" {
			b.WriteString(" # " + doc)
		}
		b.WriteByte('\n')
	}
	if f.rest != nil {
		fmt.Fprintf(&b, "---@field [string] %s\n", p.print(f.rest, name+".other"))
	}
	b.WriteByte('\n')
	p.classes.WriteString(b.String())
}

// print writes a type; name is the name of a class made for it.
func (p *annotator) print(f *form, name string) string {
	switch f.kind {
	case never:
		return "nil"
	case null:
		return "json.null"
	case boolean:
		return "boolean"
	case integer:
		return "integer"
	case number:
		return "number"
	case text:
		return "string"
	case literal:
		return p.literal(f)
	case list:
		return p.grouped(f.parts[0], name) + "[]"
	case tuple:
		return p.tuple(f, name)
	case object:
		return p.object(f, name)
	case union:
		return p.either(f.parts, name)
	case both:
		return p.both(f, name)
	case named:
		return p.names.of[f.ref]
	default:
		return "any"
	}
}

func (p *annotator) grouped(f *form, name string) string {
	text := p.print(f, name)
	if strings.Contains(text, "|") {
		return "(" + text + ")"
	}
	return text
}

func (p *annotator) either(parts []*form, name string) string {
	var texts []string
	for _, part := range parts {
		if text := p.print(part, name); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "|")
}

// tuple is written as a tuple if it always has the same length.
func (p *annotator) tuple(f *form, name string) string {
	if f.rest == nil && f.optional == 0 {
		texts := make([]string, len(f.parts))
		for i, part := range f.parts {
			texts[i] = p.print(part, name)
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	parts := f.parts
	if f.rest != nil {
		parts = append(slices.Clone(parts), f.rest)
	}
	return p.grouped(either(parts...), name) + "[]"
}

func (p *annotator) object(f *form, name string) string {
	switch {
	case f.loose(), f.closed && len(f.fields) == 0:
		return "table"
	case f.isMap():
		return "table<string, " + p.print(f.rest, name+".value") + ">"
	}
	name = p.free(name)
	p.class(name, f)
	return name
}

// both is a class with parents if all parts are classes, else its first part:
// annotations have no intersections.
func (p *annotator) both(f *form, name string) string {
	var parents []string
	whole := &form{kind: object}
	for _, part := range f.parts {
		switch part.kind {
		case object:
			whole.fields = append(whole.fields, part.fields...)
		case named:
			parents = append(parents, p.names.of[part.ref])
		default:
			return p.print(f.parts[0], name)
		}
	}
	name = p.free(name)
	p.class(name, whole, parents...)
	return name
}

func (p *annotator) literal(f *form) string {
	switch value := f.value; {
	case len(value) == 0:
		return "any"
	case value[0] == '"':
		return requoted(value)
	case value[0] == '{' || value[0] == '[':
		return "table"
	default:
		return string(value)
	}
}

// className is a valid class name for LuaLS.
func className(text string) string {
	name := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, text)
	if len(name) > 120 {
		name = name[:120]
	}
	if name == "" {
		return "type"
	}
	return name
}

// remark writes lines as a documentation comment, in which nothing is read as an
// annotation.
func remark(b *strings.Builder, text []string) {
	for _, line := range text {
		if trimmed := strings.TrimLeft(line, " -"); strings.HasPrefix(trimmed, "@") || strings.HasPrefix(trimmed, "|") {
			line = `\` + trimmed
		}
		b.WriteString("---" + line + "\n")
	}
}
