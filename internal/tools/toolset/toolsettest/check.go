// Package toolsettest checks tools against the rules of the strictest clients.
package toolsettest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

// LongestDescription is in bytes: models read all of them with every request.
const LongestDescription = 600

// Check fails the test if a tool breaks a rule. Each rule is there because some
// client refused a server that broke it.
func Check(t *testing.T, info tool.Info) {
	t.Helper()
	if n := len(info.Description); n == 0 || n > LongestDescription {
		t.Errorf("description has %d bytes, want 1 to %d", n, LongestDescription)
	}
	if info.Title == "" || len(info.Name) > 48 {
		t.Errorf("title %q, name of %d characters", info.Title, len(info.Name))
	}
	checkSchema(t, "input", info.Input)
	if info.Output != nil {
		checkSchema(t, "output", info.Output)
	}
	checkDefinition(t, info)
}

func checkSchema(t *testing.T, what string, raw json.RawMessage) {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	if s["type"] != "object" {
		t.Errorf("%s: type is %v", what, s["type"])
	}
	if _, ok := s["required"].([]any); !ok {
		t.Errorf("%s: required is %v, want an array", what, s["required"])
	}
	checkStrict(t, what, s, what == "input")
}

func checkStrict(t *testing.T, place string, s map[string]any, described bool) {
	t.Helper()
	for _, forbidden := range []string{"$schema", "format", "default", "$ref", "anyOf", "oneOf", "allOf", "not"} {
		if _, found := s[forbidden]; found {
			t.Errorf("%s: has %s", place, forbidden)
		}
	}
	if _, ok := s["type"].(string); !ok {
		t.Errorf("%s: type is %v, want one", place, s["type"])
	}
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		inner, ok := p.(map[string]any)
		if !ok {
			t.Errorf("%s.%s: is %v, want a schema object", place, name, p)
			continue
		}
		if described && inner["description"] == nil {
			t.Errorf("%s.%s: has no description", place, name)
		}
		checkStrict(t, place+"."+name, inner, false)
	}
	if items, found := s["items"]; found {
		inner, _ := items.(map[string]any)
		checkStrict(t, place+"[]", inner, false)
	}
}

func checkDefinition(t *testing.T, info tool.Info) {
	t.Helper()
	var d struct {
		Name, Title, Description  string
		InputSchema, OutputSchema json.RawMessage
		Annotations               map[string]bool
	}
	if err := json.Unmarshal(info.Raw, &d); err != nil {
		t.Fatal(err)
	}
	if d.Name != info.Name || d.Title != info.Title || d.Description != info.Description ||
		!bytes.Equal(d.InputSchema, info.Input) || !bytes.Equal(d.OutputSchema, info.Output) {
		t.Errorf("definition differs: %s", info.Raw)
	}
	a := d.Annotations
	if len(a) != 4 || a["readOnlyHint"] && (a["destructiveHint"] || !a["idempotentHint"]) || a["readOnlyHint"] != info.Hints.ReadOnly {
		t.Errorf("annotations %v of %+v", a, info.Hints)
	}
}
