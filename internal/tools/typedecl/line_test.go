package typedecl_test

import (
	"encoding/json"
	"testing"

	"github.com/luanette/luanette/internal/tools/typedecl"
)

func TestSignature(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"properties":{"b":{"type":"integer"},"a":{"type":"string"}},"required":["a"]}`: "(a: string, b?: integer)",
		`{"properties":{"tags":{"type":"array","items":{"type":"string"}}}}`:             "(tags?: string[])",
		`{"properties":{"m":{"enum":["x",1]},"n":{"type":["string","null"]},"o":{}}}`:    `(m?: "x"|1, n?: string, o?: any)`,
		`{"type":"object"}`:                "()",
		`null`:                             "()",
		`{"properties":[],"required":"a"}`: "()",
	} {
		if got := typedecl.Signature(json.RawMessage(schema)); got != want {
			t.Errorf("Signature(%s) = %s, want %s", schema, got, want)
		}
	}
}
