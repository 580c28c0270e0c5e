package typedecl_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/tools/typedecl"
)

func TestSignature(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"properties":{"b":{"type":"integer"},"a":{"type":"string"}},"required":["a"]}`:                                                                                                   "(a: string, b?: integer)",
		`{"properties":{"tags":{"type":"array","items":{"type":"string"}}}}`:                                                                                                               "(tags?: string[])",
		`{"properties":{"m":{"enum":["x",1]},"n":{"type":["string","null"]},"o":{}}}`:                                                                                                      `(m?: "x"|1, n?: string, o?: any)`,
		`{"properties":{"book":{"$ref":"#/$defs/Book","description":"x"},"all":{"type":"array","items":{"$ref":"#/$defs/Id"}}},"$defs":{"Book":{"type":"object"},"Id":{"type":"string"}}}`: "(book?: object, all?: string[])",
		`{"type":"object"}`:                "()",
		`null`:                             "()",
		`{"properties":[],"required":"a"}`: "()",
	} {
		if got := typedecl.Signature(json.RawMessage(schema)); got != want {
			t.Errorf("Signature(%s) = %s, want %s", schema, got, want)
		}
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	const schema = `{"properties":{"n":{"type":"integer","description":"how many","maximum":9},"to":{"enum":["a","b"]}},"required":["n"]}`
	want := []typedecl.Parameter{{"n", "integer", true, "how many (integer, maximum 9)"}, {"to", `"a"|"b"`, false, ""}}
	if got := typedecl.Parameters(json.RawMessage(schema)); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	const schema = `{"properties":{
		"book":{"$ref":"#/$defs/Book"}, "maybe":{"anyOf":[{"$ref":"#/$defs/Book"},{"type":"null"}]}, "n":{"type":["integer","null"]},
		"list":{"type":"array"}, "pair":{"prefixItems":[{"type":"string"}]}, "size":{"enum":["s","l"]}, "on":{"type":"boolean"},
		"either":{"type":["string","object"]}, "any":{}, "lost":{"$ref":"#/$defs/Nothing"}},
		"$defs":{"Book":{"type":"object","properties":{"title":{"type":"string"}}}}}`
	want := map[string]string{
		"book": "object", "maybe": "object", "n": "integer", "list": "array", "pair": "array", "size": "string", "on": "boolean",
	}
	if got := typedecl.Kinds(json.RawMessage(schema)); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
