package typedecl_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/typedecl"
	"github.com/luanette/luanette/internal/tools/typedecl/typedecltest"
)

// sample is a schema with a value that fits it and, where there is one, a value
// that does not.
type sample struct {
	schema, fits, wrong any
}

type object = map[string]any

// schemaGenerator generates random schemas.
type schemaGenerator struct {
	*rand.Rand
	defs object
}

var oddNames = []string{"a", "b c", "x-y", "class", "0", "*/", "é", "__proto", "new\nline", "$ref"}

// schema generates a schema that is nested at most depth levels deep.
func (g *schemaGenerator) schema(depth int) sample {
	choices := 7
	if depth > 0 {
		choices = 13
	}
	switch g.IntN(choices) {
	case 0:
		return sample{object{"type": "string", "description": "some */ text\n@x", "minLength": 1}, "hello", 1}
	case 1:
		return sample{object{"type": "integer", "default": 3, "maximum": 10}, 4, "four"}
	case 2:
		return sample{object{"type": "boolean"}, true, "true"}
	case 3:
		return sample{object{"enum": []any{"x", 1, nil, true}}, "x", "y"}
	case 4:
		return sample{object{"const": object{"k": []any{1, "two"}}}, object{"k": []any{1, "two"}}, object{"k": 3}}
	case 5:
		return sample{object{"type": []any{"number", "null"}}, nil, "none"}
	case 6:
		return sample{object{"type": "string", "nullable": true, "format": "uri"}, nil, 5}
	case 7:
		item := g.schema(depth - 1)
		return sample{object{"type": "array", "items": item.schema}, []any{item.fits, item.fits}, "list"}
	case 8:
		one, two := g.schema(depth-1), g.schema(depth-1)
		return sample{object{"prefixItems": []any{one.schema, two.schema}, "items": false}, []any{one.fits, two.fits}, []any{}}
	case 9:
		one, two := g.schema(depth-1), g.schema(depth-1)
		return sample{object{[]string{"anyOf", "oneOf"}[g.IntN(2)]: []any{one.schema, two.schema}}, two.fits, nil}
	case 10:
		value := g.schema(depth - 1)
		return sample{object{"type": "object", "additionalProperties": value.schema}, object{"k": value.fits, "0": value.fits}, 1}
	case 11:
		return g.reference(depth)
	default:
		return g.object(depth)
	}
}

func (g *schemaGenerator) object(depth int) sample {
	properties, fits := object{}, object{}
	var required []any
	for range 1 + g.IntN(4) {
		name := oddNames[g.IntN(len(oddNames))]
		inner := g.schema(depth - 1)
		properties[name] = inner.schema
		if _, twice := fits[name]; g.IntN(2) == 0 || twice {
			fits[name] = inner.fits
			required = append(required, name)
		}
	}
	schema := object{"type": "object", "properties": properties, "required": required}
	switch g.IntN(4) {
	case 0:
		schema["additionalProperties"] = false
	case 1:
		schema["additionalProperties"] = object{"type": "integer"}
		fits["more"] = 1
	case 2:
		return sample{object{"allOf": []any{schema, object{"required": required}}}, fits, "object"}
	}
	return sample{schema, fits, "object"}
}

// reference adds a definition that may refer to itself.
func (g *schemaGenerator) reference(depth int) sample {
	name := fmt.Sprintf("def %d", len(g.defs))
	g.defs[name] = object{} // reserves the name
	inner := g.schema(depth - 1)
	g.defs[name] = object{"type": "object", "required": []any{"value"}, "properties": object{
		"value": inner.schema, "next": object{"$ref": "#/$defs/" + name}, "all": object{"type": "array", "items": object{"$ref": "#/$defs/" + name}},
	}}
	return sample{object{"$ref": "#/$defs/" + name}, object{"value": inner.fits, "next": object{"value": inner.fits}, "all": []any{}}, 7}
}

// TestRandomSchemas assigns values to the types made of random schemas: the compiler
// must accept those that fit and refuse the others.
func TestRandomSchemas(t *testing.T) {
	t.Parallel()
	sources := map[string]string{}
	for i := range 150 {
		g := &schemaGenerator{rand.New(rand.NewPCG(7, uint64(i))), object{}}
		s := g.schema(3)
		input, err := json.Marshal(object{
			"type": "object", "properties": object{"value": s.schema}, "required": []any{"value"}, "$defs": g.defs,
		})
		if err != nil {
			t.Fatal(err)
		}
		tools := []typedecl.Tool{{Ref: tool.Ref{Space: "s", Name: "t"}, Description: "x */", Input: input, Output: input}}
		source := typedecl.TypeScript(tools)
		if strings.Contains(source, "any") || strings.Contains(source, "unknown") {
			t.Errorf("a described type is declared as any or unknown:\n%s", source)
		}
		checkLua(t, fmt.Sprint(i), typedecl.Lua(tools))
		sources[fmt.Sprintf("fits%d", i)] = source + "\n" + assign(t, s.fits)
		if s.wrong != nil {
			sources[fmt.Sprintf("wrong%d", i)] = source + "\n" + assign(t, s.wrong)
		}
	}
	problems := typedecltest.Check(t, sources)
	for name, source := range sources {
		if refused := len(problems[name]) > 0; refused != strings.HasPrefix(name, "wrong") {
			t.Errorf("%s: refused %t, %s\n%s", name, refused, strings.Join(problems[name], "\n"), source)
		}
	}
}

func assign(t *testing.T, value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return "const args: Parameters<typeof mcp.s.t>[0] = { value: " + string(raw) + " };\nvoid mcp.s.t(args);"
}

// FuzzDeclarations looks for schemas that break out of their declarations.
func FuzzDeclarations(f *testing.F) {
	f.Add("name", "text", `{"type":"object","properties":{"a":{"type":"string"}}}`)
	f.Add("*/", "\n@x */", `{"$ref":"#","anyOf":[{"$ref":"#/anyOf/0"}]}`)
	f.Fuzz(func(t *testing.T, name, text, schema string) {
		tools := []typedecl.Tool{{Ref: tool.Ref{Space: name, Name: text}, Description: text, Input: json.RawMessage(schema), Output: json.RawMessage(schema)}}
		first := typedecl.TypeScript(tools)
		if second := typedecl.TypeScript(tools); first != second {
			t.Errorf("not the same twice:\n%s\n%s", first, second)
		}
		checkLua(t, "fuzz", typedecl.Lua(tools))
	})
}
