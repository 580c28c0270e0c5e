package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/luanette/luanette/internal/mcp/wire"
)

func TestHeaderValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain name":      "plain name",
		"":                "",
		" led":            "=?base64?IGxlZA==?=",
		"é":               "=?base64?w6k=?=",
		"a\nb":            "=?base64?YQpi?=",
		"=?base64?eA==?=": "=?base64?PT9iYXNlNjQ/ZUE9PT89?=",
	} {
		got := wire.EncodeHeader(text)
		if got != want {
			t.Errorf("EncodeHeader(%q) = %q, want %q", text, got, want)
		}
		if back, err := wire.DecodeHeader(got); err != nil || back != text {
			t.Errorf("DecodeHeader(%q) = %q, %v", got, back, err)
		}
	}
	if _, err := wire.DecodeHeader("=?base64?%%?="); err == nil {
		t.Error("broken base64 was decoded")
	}
}

func TestHeaderParams(t *testing.T) {
	t.Parallel()
	params, err := wire.HeaderParams(json.RawMessage(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"page":{"type":"object","properties":{"size":{"type":"integer","x-mcp-header":"Size"}}},
		"plain":{"type":"string"}}}`))
	if err != nil || len(params) != 2 {
		t.Fatalf("HeaderParams = %v, %v", params, err)
	}
	args := json.RawMessage(`{"region":"é","page":{"size":20.0}}`)
	for i, want := range []string{"Mcp-Param-Region: =?base64?w6k=?=", "Mcp-Param-Size: 20"} {
		value, ok := params[i].Value(args)
		if got := params[i].Header + ": " + value; !ok || got != want {
			t.Errorf("header = %q, want %q", got, want)
		}
		if !params[i].Matches(value, args) || params[i].Matches("other", args) {
			t.Errorf("Matches misjudges %q", value)
		}
	}
	if _, ok := params[1].Value(json.RawMessage(`{"page":{"size":1.5}}`)); ok {
		t.Error("a fraction became a header")
	}
	if _, ok := params[0].Value(json.RawMessage(`{"region":null}`)); ok {
		t.Error("null became a header")
	}
}

func TestHeaderParamsRefuses(t *testing.T) {
	t.Parallel()
	for _, properties := range []string{
		`{"a":{"type":"number","x-mcp-header":"A"}}`,
		`{"a":{"type":"string","x-mcp-header":""}}`,
		`{"a":{"type":"string","x-mcp-header":"a b"}}`,
		`{"a":{"type":"string","x-mcp-header":7}}`,
		`{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}`,
	} {
		if got, err := wire.HeaderParams(json.RawMessage(`{"properties":` + properties + `}`)); err == nil {
			t.Errorf("HeaderParams(%s) = %v, want an error", properties, got)
		}
	}
}

func TestRevisions(t *testing.T) {
	t.Parallel()
	if wire.EraOf("2026-07-28") != wire.Modern || wire.EraOf("2024-11-05") != wire.Legacy || wire.EraOf("1999-01-01") != wire.Unknown {
		t.Error("eras are mixed up")
	}
	if wire.Negotiate("2025-06-18") != "2025-06-18" || wire.Negotiate("2026-07-28") != "2025-11-25" || wire.Negotiate("x") != "2025-11-25" {
		t.Error("negotiation picks another revision")
	}
	if got := wire.Revisions(); len(got) != 5 || got[1] != wire.NewestLegacy {
		t.Errorf("revisions = %v", got)
	}
}

func TestNameOf(t *testing.T) {
	t.Parallel()
	if name, ok := wire.NameOf("resources/read", json.RawMessage(`{"uri":"file:///x"}`)); !ok || name != "file:///x" {
		t.Errorf("name of a read = %q, %v", name, ok)
	}
	if _, ok := wire.NameOf("tools/list", json.RawMessage(`{"name":"x"}`)); ok {
		t.Error("tools/list has a name")
	}
}
