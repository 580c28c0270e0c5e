package typedecl

import (
	"fmt"
	"slices"
	"strings"
)

// TypeScript declares tools as the global mcp of JavaScript scripts, grouped by
// namespace, in the given order.
func TypeScript(tools []Tool) string {
	p := &typescript{names: newNames()}
	var spaces []string
	bodies := map[string][]string{}
	for i := range tools {
		t := &tools[i]
		if !slices.Contains(spaces, t.Space) {
			spaces = append(spaces, t.Space)
		}
		indent := "  "
		if t.Space != "" {
			indent = "    "
		}
		bodies[t.Space] = append(bodies[t.Space], p.tool(t, indent))
	}
	var b strings.Builder
	for _, alias := range p.aliases {
		b.WriteString(alias)
	}
	if len(p.aliases) > 0 {
		b.WriteByte('\n')
	}
	b.WriteString("declare const mcp: {\n")
	for _, space := range spaces {
		if space != "" {
			fmt.Fprintf(&b, "  %s: {\n", property(space))
		}
		b.WriteString(strings.Join(bodies[space], "\n"))
		if space != "" {
			b.WriteString("  };\n")
		}
	}
	b.WriteString("};\n")
	return b.String()
}

// typescript prints types as TypeScript.
type typescript struct {
	names
	aliases []string
}

// tool is one method of the namespace.
func (p *typescript) tool(t *Tool, indent string) string {
	prefix := pascal(t.Name)
	args := p.schema(t.Input, prefix, "Args")
	result := "unknown"
	if t.Output != nil {
		result = p.print(p.schema(t.Output, prefix, "Result"), indent)
	}
	var b strings.Builder
	text := append(lines(cutText(t.Description)), t.notes()...)
	if t.Deprecated {
		text = append(text, "@deprecated")
	}
	comment(&b, indent, text)
	fmt.Fprintf(&b, "%s%s(args%s: %s): Promise<%s>;\n", indent, property(t.Name), args.optionalMark(), p.print(args, indent), result)
	return b.String()
}

// schema reads a schema and declares what it refers to.
func (p *typescript) schema(raw []byte, prefix, role string) *form {
	f, definitions := read(raw)
	for _, d := range definitions {
		hint := pascal(d.hint)
		if d.hint == "self" {
			hint = role
		}
		p.names.of[d] = p.free(prefix + hint)
	}
	for _, d := range definitions {
		var b strings.Builder
		comment(&b, "", lines(d.form.doc))
		fmt.Fprintf(&b, "type %s = %s;\n", p.names.of[d], p.print(d.form, ""))
		p.aliases = append(p.aliases, b.String())
	}
	return f
}

// reservedNames are reserved names.
var reservedNames = []string{"Promise", "Array", "Record", "Object", "String", "Number", "Boolean", "Function", "Symbol", "Any"}

// free is an unused name.
func (p *typescript) free(name string) string {
	if name == "" || name[0] >= '0' && name[0] <= '9' || slices.Contains(reservedNames, name) {
		name = "Type" + name
	}
	return p.names.free(name)
}

// print writes a type; lines after the first begin with indent.
func (p *typescript) print(f *form, indent string) string {
	switch f.kind {
	case never:
		return "never"
	case null:
		return "null"
	case boolean:
		return "boolean"
	case integer, number:
		return "number"
	case text:
		return "string"
	case literal:
		return p.literal(f)
	case list:
		return p.grouped(f.parts[0], indent) + "[]"
	case tuple:
		return p.tuple(f, indent)
	case object:
		return p.object(f, indent)
	case union:
		return p.joined(f.parts, " | ", indent)
	case both:
		return p.joined(f.parts, " & ", indent)
	case named:
		return p.names.of[f.ref]
	default:
		return "unknown"
	}
}

func (p *typescript) joined(parts []*form, separator, indent string) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = p.grouped(part, indent)
	}
	return strings.Join(texts, separator)
}

// grouped puts a type in parentheses where it needs them.
func (p *typescript) grouped(f *form, indent string) string {
	if f.kind == union || f.kind == both {
		return "(" + p.print(f, indent) + ")"
	}
	return p.print(f, indent)
}

func (p *typescript) tuple(f *form, indent string) string {
	texts := make([]string, len(f.parts))
	for i, part := range f.parts {
		texts[i] = p.print(part, indent)
		if i >= len(f.parts)-f.optional {
			texts[i] = p.grouped(part, indent) + "?"
		}
	}
	if f.rest != nil {
		texts = append(texts, "..."+p.grouped(f.rest, indent)+"[]")
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

const widestObject = 72

// object writes fields on one line if they are few and have no comments.
func (p *typescript) object(f *form, indent string) string {
	if f.closed && len(f.fields) == 0 {
		return "{ [key: string]: never }"
	}
	inner := indent + "  "
	short := true
	var fields []string
	var block strings.Builder
	add := func(line, doc string) {
		fields = append(fields, line)
		comment(&block, inner, lines(doc))
		fmt.Fprintf(&block, "%s%s;\n", inner, line)
		short = short && doc == "" && !strings.Contains(line, "\n")
	}
	for _, one := range f.fields {
		mark := ""
		if one.optional {
			mark = "?"
		}
		add(property(one.name)+mark+": "+p.print(one.form, inner), one.form.doc)
	}
	if f.rest != nil || len(f.fields) == 0 {
		add("[key: string]: "+p.print(p.further(f), inner), "")
	}
	if line := "{ " + strings.Join(fields, "; ") + " }"; short && len(line) <= widestObject {
		return line
	}
	return "{\n" + block.String() + indent + "}"
}

// further is the type of all properties: TypeScript requires the named ones to match
// the type of the others.
func (p *typescript) further(f *form) *form {
	if f.rest == nil {
		return anything
	}
	kinds := []*form{f.rest}
	for _, one := range f.fields {
		kinds = append(kinds, one.form)
		if one.optional {
			kinds = append(kinds, &form{kind: literal, value: []byte("undefined")})
		}
	}
	return either(kinds...)
}

// literal writes a value as a literal type.
func (p *typescript) literal(f *form) string {
	switch value := f.value; {
	case len(value) == 0:
		return "unknown"
	case value[0] == '"':
		return requoted(value)
	case value[0] == '{' || value[0] == '[':
		return p.print(readValue(value, 0), "")
	default:
		return string(value)
	}
}

// property writes a name as a key.
func property(name string) string {
	if isName(name) {
		return name
	}
	return quote(name)
}

// comment writes lines as a documentation comment, in which nothing ends it.
func comment(b *strings.Builder, indent string, text []string) {
	for i, line := range text {
		text[i] = strings.ReplaceAll(strings.ReplaceAll(line, "*/", `*\/`), "/*", `/\*`)
	}
	switch len(text) {
	case 0:
	case 1:
		fmt.Fprintf(b, "%s/** %s */\n", indent, text[0])
	default:
		fmt.Fprintf(b, "%s/**\n", indent)
		for _, line := range text {
			b.WriteString(strings.TrimRight(indent+" * "+line, " ") + "\n")
		}
		fmt.Fprintf(b, "%s */\n", indent)
	}
}
