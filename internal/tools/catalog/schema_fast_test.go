package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFastSchemaRecognizesCommonArguments(t *testing.T) {
	t.Parallel()
	g := newFastSchema(json.RawMessage(`{"type":"object","properties":{
		"path":{"type":"string","description":"x"},"n":{"type":["integer","null"]},"mode":{"enum":["a","b"]},
		"tags":{"type":"array","items":{"type":"string"}},"size":{"type":"integer","minimum":3}},
		"required":["path"],"additionalProperties":false}`))
	for args, want := range map[string]bool{
		`{"path":"x"}`: true,
		`{ "path" : "x", "n": null , "mode": "b" }`:          true,
		`{"path":"x","tags":["a","b"],"n":9007199254740993}`: true,
		`{"path":"x","n":1.0}`:                               false, // an integer, but that takes a closer look
		`{"path":"x","size":5}`:                              false,
		`{"n":1}`:                                            false,
		`{"path":"x","other":1}`:                             false,
		`{"path":"x","tags":["a",1]}`:                        false,
		`{"path":"x","mode":"c"}`:                            false,
	} {
		if got := g.fits(json.RawMessage(args)); got != want {
			t.Errorf("fits(%s) = %v, want %v", args, got, want)
		}
	}
	for _, schema := range []string{`true`, `null`, `{"$ref":"#"}`, `{"type":"thing"}`, `{"allOf":[]}`, `{"properties":{},"minProperties":1}`} {
		if newFastSchema(json.RawMessage(schema)) != nil {
			t.Errorf("%s passes for a plain schema", schema)
		}
	}
}

// Arguments that the fast schema accepts pass the full check.
func TestFastSchemaNeverAcceptsInvalidArguments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := drawSchema(2).Draw(t, "schema")
		compiled, err := compile(json.RawMessage(text))
		if err != nil {
			t.Skip(err)
		}
		args := drawValue(3).Draw(t, "args")
		g := newFastSchema(json.RawMessage(text))
		if found := (&schema{compiled: compiled}).check(json.RawMessage(args)); g.fits(json.RawMessage(args)) && len(found) > 0 && args[0] == '{' {
			t.Fatalf("the fast schema accepts %s for %s, but: %v", args, text, found)
		}
	})
}

func drawSchema(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var keywords []string
		add := func(format string, args ...any) { keywords = append(keywords, fmt.Sprintf(format, args...)) }
		for _, keyword := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{
			"type", "types", "enum", "required", "properties", "closed", "items", "minimum", "description",
		}), rapid.ID).Draw(t, "keywords") {
			switch keyword {
			case "type":
				add(`"type":%q`, rapid.SampledFrom([]string{"object", "string", "integer", "number", "array", "null", "boolean"}).Draw(t, "type"))
			case "enum":
				add(`"enum":["a",1,null,{"a":1}]`)
			case "required":
				add(`"required":[%s]`, rapid.SampledFrom([]string{`"a"`, `"b"`, `"a","b"`}).Draw(t, "required"))
			case "closed":
				add(`"additionalProperties":%v`, rapid.Bool().Draw(t, "open"))
			case "minimum":
				add(`"minimum":2`)
			case "description":
				add(`"description":"d"`)
			case "properties":
				if depth > 0 {
					add(`"properties":{"a":%s,"b":%s}`, drawSchema(depth-1).Draw(t, "a"), drawSchema(depth-1).Draw(t, "b"))
				}
			case "items":
				if depth > 0 {
					add(`"items":%s`, drawSchema(depth-1).Draw(t, "items"))
				}
			}
		}
		return "{" + strings.Join(keywords, ",") + "}"
	})
}

func drawValue(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if depth == 3 || depth > 0 && rapid.Bool().Draw(t, "nested") {
			if depth == 3 || rapid.Bool().Draw(t, "object") {
				var members []string
				for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3).Draw(t, "names") {
					members = append(members, fmt.Sprintf("%q:%s", name, drawValue(depth-1).Draw(t, name)))
				}
				return "{" + strings.Join(members, ",") + "}"
			}
			return "[" + strings.Join(rapid.SliceOfN(drawValue(depth-1), 0, 3).Draw(t, "items"), ",") + "]"
		}
		return rapid.SampledFrom([]string{`"a"`, `"b"`, `1`, `1.0`, `-3`, `1e1`, `2.5`, `null`, `true`, `false`}).Draw(t, "scalar")
	})
}
