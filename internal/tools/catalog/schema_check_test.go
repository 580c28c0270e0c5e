package catalog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

const searchSchema = `{
	"type": "object",
	"properties": {
		"query": {"type": "string", "minLength": 2},
		"limit": {"type": "integer", "minimum": 1},
		"mode": {"enum": ["fast", "deep"]},
		"when": {"type": "string", "format": "date-time"},
		"filter": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}, "additionalProperties": false},
		"id": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
		"shape": {"oneOf": [
			{"type": "object", "required": ["radius"], "properties": {"radius": {"type": "number"}}},
			{"type": "string"}
		]}
	},
	"required": ["query"],
	"additionalProperties": false
}`

// TestMisspelledRequiredArgument checks that an argument that the schema does not refuse is
// named when a required one of a similar name is missing, and only once.
func TestMisspelledRequiredArgument(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]%s}`
	for more, want := range map[string]string{
		"":                              `call a.read: path: required but missing, did you mean it by "pth"?`,
		`,"additionalProperties":false`: `call a.read: path: required but missing; pth: unknown argument, did you mean "path"?`,
	} {
		m := newMemory().with("a", "read", fmt.Sprintf(schema, more), nil)
		_, err := open(catalog.Options{}, m).Call(t.Context(), call("a", "read", `{"pth":"x"}`))
		if f := wantFault(t, err, fault.InvalidParams); f.Msg != want {
			t.Errorf("got %s, want %s", f.Msg, want)
		}
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, args string
		want       []string // nil: they fit
	}{
		{"fit", `{"query":"ab","limit":3,"mode":"fast","filter":{"tags":["x"]},"id":7,"shape":{"radius":1.5}}`, nil},
		{"formats are the tool's business", `{"query":"ab","when":"next tuesday"}`, nil},
		{"missing", `{}`, []string{"query: required but missing"}},
		{"none at all", ``, []string{"query: required but missing"}},
		{"wrong type", `{"query":"ab","limit":"ten"}`, []string{`limit: expected integer, got "ten"`}},
		{"all at once", `{"limit":1.5,"mode":"slow"}`, []string{
			"limit: expected integer, got 1.5", `mode: expected one of "fast", "deep", got "slow"`, "query: required but missing"}},
		{"unknown with suggestion", `{"query":"ab","limt":3}`, []string{`limt: unknown argument, did you mean "limit"?`}},
		{"nested", `{"query":"ab","filter":{"tags":["x",5]}}`, []string{"filter.tags[1]: expected string, got 5"}},
		{"nested unknown", `{"query":"ab","filter":{"tag":[]}}`, []string{`filter.tag: unknown argument, did you mean "tags"?`}},
		{"too small", `{"query":"a","limit":0}`, []string{"limit: expected at least 1, got 0", `query: expected at least 2 characters, got "a"`}},
		{"alternatives of type", `{"query":"ab","id":[]}`, []string{"id: expected integer or string, got []"}},
		{"closest alternative", `{"query":"ab","shape":{"radius":"big"}}`, []string{`shape.radius: expected number, got "big"`}},
		{"not an object", `[1]`, []string{"arguments must be an object"}},
		{"not JSON", `{"query":`, []string{"arguments are not valid JSON"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMemory().with("a", "search", searchSchema, nil)
			_, err := open(catalog.Options{}, m).Call(t.Context(), call("a", "search", tt.args))
			if tt.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			f := wantFault(t, err, fault.InvalidParams)
			got, _ := strings.CutPrefix(f.Msg, "call a.search: ")
			if want := strings.Join(tt.want, "; "); !strings.HasPrefix(got, want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if !strings.Contains(f.Hint, `a.search takes (query: string, limit?: integer, mode?: "fast"|"deep"`) {
				t.Errorf("hint = %q", f.Hint)
			}
			if m.called() != 0 {
				t.Error("the tool was called")
			}
		})
	}
}

func TestViolationsAreBoundedAndInDetails(t *testing.T) {
	t.Parallel()
	m := newMemory().with("a", "x", `{"type":"object","additionalProperties":false}`, nil)
	args := map[string]int{}
	for i := range 50 {
		args[fmt.Sprintf("k%02d", i)] = i
	}
	raw, _ := json.Marshal(args)
	_, err := open(catalog.Options{}, m).Call(t.Context(), tool.Call{Ref: ref("a", "x"), Args: raw})
	f := wantFault(t, err, fault.InvalidParams)
	var details struct{ Violations []catalog.Violation }
	if err := json.Unmarshal(f.Details, &details); err != nil {
		t.Fatal(err)
	}
	if n := len(details.Violations); n != 11 || details.Violations[10].Problem != "and 40 more" {
		t.Errorf("%d violations, last %+v", n, details.Violations[n-1])
	}
}

func TestErrorsStayReadable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long", 5000)
	m := newMemory().with("a", "x", `{"properties":{"`+long+`":{"type":"string"}},"additionalProperties":false}`, nil)
	_, err := open(catalog.Options{}, m).Call(t.Context(), call("a", "x", `{"`+long+`1":"`+long+`","`+long+`":5}`))
	if f := wantFault(t, err, fault.InvalidParams); len(f.Msg)+len(f.Hint) > 3000 {
		t.Errorf("message of %d bytes, hint of %d", len(f.Msg), len(f.Hint))
	}
}

// A tool whose schema cannot be used stays callable, and the call stays fast.
func TestUnusableSchemasAcceptEverything(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 64 {
		fmt.Fprintf(&bomb, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	bomb.WriteString(`"d64":{"required":["never"]}}}`)
	deep := `{"$ref":"#/$defs/n","$defs":{"n":{"allOf":[
		{"properties":{"a":{"$ref":"#/$defs/n"}}},{"properties":{"a":{"$ref":"#/$defs/n"}}}]}}}`
	schemas := map[string]string{
		"no schema":          `null`,
		"boolean":            `true`,
		"a number":           `17`,
		"wrong keyword type": `{"type":"object","required":"query"}`,
		"network reference":  `{"$ref":"http://127.0.0.1:1/schema.json"}`,
		"file reference":     `{"$ref":"file:///etc/hostname"}`,
		"unknown dialect":    `{"$schema":"http://example.org/mine","type":"object","required":["q"]}`,
		"endless number":     `{"properties":{"a":{"minimum":1e999999999}}}`,
		"bad pattern":        `{"properties":{"a":{"type":"string","pattern":"(?<!x)y"}}}`,
		"bomb":               bomb.String(),
		"deep bomb":          deep,
		"huge":               `{"type":"object","required":["q"],"description":"` + strings.Repeat("x", 300<<10) + `"}`,
	}
	for name, schema := range schemas {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60)
			m := newMemory().with("a", "x", schema, nil)
			if _, err := open(catalog.Options{}, m).Call(t.Context(), call("a", "x", args)); err != nil {
				t.Errorf("call: %v", err)
			}
		})
	}
}

func TestUnusualArgumentsDoNotBreakTheChecker(t *testing.T) {
	t.Parallel()
	m := newMemory().with("a", "x", `{"properties":{"n":{"type":"integer","multipleOf":3},"s":{"uniqueItems":true}}}`, nil)
	c := open(catalog.Options{}, m)
	for name, args := range map[string]string{
		"endless number": `{"n":1e999999999}`,
		"endless digits": `{"n":` + strings.Repeat("9", 100_000) + `}`,
		"many items":     `{"s":[` + strings.Repeat(`0,`, 400_000) + `0]}`,
		"very long":      `{"t":"` + strings.Repeat("x", 2<<20) + `"}`,
		"very deep":      `{"t":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`,
	} {
		_, err := c.Call(t.Context(), call("a", "x", args))
		if err != nil && fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDraftsAreUnderstood(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"n":{"minimum":1,"exclusiveMinimum":true}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"n":{"exclusiveMinimum":1}},"properties":{"n":{"$ref":"#/definitions/n"}}}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"n":{"exclusiveMinimum":1}},"properties":{"n":{"$ref":"#/$defs/n"}}}`,
		`{"properties":{"n":{"exclusiveMinimum":1}}}`,
	} {
		c := open(catalog.Options{}, newMemory().with("a", "x", schema, nil))
		if _, err := c.Call(t.Context(), call("a", "x", `{"n":2}`)); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
		_, err := c.Call(t.Context(), call("a", "x", `{"n":1}`))
		wantFault(t, err, fault.InvalidParams)
	}
}

func TestAnUnusableSchemaIsReportedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := catalog.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
	c := open(o, newMemory().with("a", "x", `{"type":"thing"}`, nil))
	for range 5 {
		if _, err := c.Call(t.Context(), call("a", "x", "{}")); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "input schema is not usable"); n != 1 || !strings.Contains(log.String(), "tool=a.x") {
		t.Errorf("reported %d times: %s", n, log.String())
	}
}

func TestAChangedSchemaIsReadAgain(t *testing.T) {
	t.Parallel()
	m := newMemory().with("a", "x", `{"required":["old"]}`, nil)
	c := open(catalog.Options{}, m)
	if _, err := c.Call(t.Context(), call("a", "x", `{"old":1}`)); err != nil {
		t.Fatal(err)
	}
	m.without(ref("a", "x"))
	m.with("a", "x", `{"required":["new"]}`, nil)
	if _, err := c.Call(t.Context(), call("a", "x", `{"new":1}`)); err != nil {
		t.Errorf("arguments for the new schema: %v", err)
	}
}

// What models commonly get wrong is corrected if it is clear what was meant, for the tools
// of any source.
func TestArgumentsAreRepaired(t *testing.T) {
	t.Parallel()
	const takes = `{"type":"object","required":["n"],"properties":{
		"n":{"type":"integer"},"tags":{"type":["array","null"],"items":{"type":"string"}},"size":{"type":"integer"},"free":{}}}`
	for given, want := range map[string]string{
		`{"n":"1"}`:                       `{"n":1}`,
		`{"n":1,"size":null}`:             `{"n":1}`,
		`{"n":"1","tags":null}`:           `{"n":1,"tags":null}`,
		`{"n":"1","free":null}`:           `{"n":1,"free":null}`,
		`{"n":1,"tags":"a"}`:              `{"n":1,"tags":["a"]}`,
		`{"n":"1","tags":{},"size":null}`: `{"n":1,"tags":[]}`,
		`{"n":null}`:                      "",
		`{"m":1}`:                         "",
	} {
		m := newMemory().with("a", "x", takes, nil)
		_, err := open(catalog.Options{}, m).Call(t.Context(), call("a", "x", given))
		switch {
		case want == "":
			wantFault(t, err, fault.InvalidParams)
		case err != nil || string(m.calls[0].Args) != want:
			t.Errorf("%s: %v, called with %+v, want %s", given, err, m.calls, want)
		}
	}
}

// An empty Lua table has no type: it is sent as the list or object that is
// wanted, wherever it is, and everything else stays as it was written.
func TestEmptyTablesGetTheWantedType(t *testing.T) {
	t.Parallel()
	const takes = `{"type":"object","additionalProperties":false,"properties":{
		"n":{"type":"number"},"tags":{"type":["array","null"]},"meta":{"type":"object"},"either":{"anyOf":[{"type":"array"},{"type":"string"}]},
		"hints":{"type":"array","items":{"type":"object","properties":{"of":{"type":"array"}}}}}}`
	for given, want := range map[string]string{
		`{"tags":{},"n":1.50}`:                   `{"tags":[],"n":1.50}`,
		`{"tags":{"a":1}}`:                       "",
		`{"tags":{},"n":"x"}`:                    "",
		`{"meta":[],"tags":null}`:                `{"meta":{},"tags":null}`,
		`{"meta":[1]}`:                           "",
		`{"either":{}}`:                          `{"either":[]}`,
		`{"hints":[{"z":1,"of":[2]},{"of":{}}]}`: `{"hints":[{"z":1,"of":[2]},{"of":[]}]}`,
		`{"n":{}}`:                               "",
	} {
		m := newMemory().with("a", "x", takes, nil)
		_, err := open(catalog.Options{}, m).Call(t.Context(), call("a", "x", given))
		switch {
		case want == "":
			wantFault(t, err, fault.InvalidParams)
		case err != nil || string(m.calls[0].Args) != want:
			t.Errorf("%s: %v, called with %+v, want %s", given, err, m.calls, want)
		}
	}
}

// Whatever schema and arguments are, a call either goes through or is refused.
func FuzzCheck(f *testing.F) {
	f.Add(searchSchema, `{"query":"ab","limit":"x","shape":{}}`)
	f.Add(`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#"}}}}`, `{"a":[[[]]]}`)
	f.Add(`{"properties":{"a":{"multipleOf":1e-300}}}`, `{"a":1e300}`)
	f.Add(`{"$dynamicRef":"#x","$dynamicAnchor":"x"}`, `{"a":1}`)
	f.Add(`{"unevaluatedProperties":{"not":{}},"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":null}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		if !json.Valid([]byte(schema)) {
			t.Skip("no JSON, hence no schema")
		}
		c := open(catalog.Options{}, newMemory().with("a", "x", schema, func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Output("done", nil)
		}))
		_, err := c.Call(t.Context(), tool.Call{Ref: ref("a", "x"), Args: json.RawMessage(args)})
		if err != nil && fault.CodeOf(err) != fault.InvalidParams {
			t.Fatal(err)
		}
	})
}
