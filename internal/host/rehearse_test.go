package host

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/luanette/luanette/internal/tool"
)

// shelf is tools that are listed and never called.
type shelf []tool.Info

func (s shelf) Tools(context.Context) ([]tool.Info, error) { return s, nil }

func (s shelf) Call(context.Context, tool.Call) (tool.Result, error) {
	panic("a rehearsal called a tool")
}

func TestRehearsalPlansAndMocks(t *testing.T) {
	t.Parallel()
	r := NewRehearsal(shelf{{
		Ref:    tool.Ref{Space: "git", Name: "issue"},
		Output: json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer","minimum":1},"url":{"type":"string"}}}`),
	}}, map[string]json.RawMessage{"git.close": json.RawMessage(`{"closed":true}`)})
	never := func(context.Context) ([]Value, error) { t.Error("done for real"); return nil, nil }
	issue := func(name string) Effect {
		return Effect{Name: "mcp.call", Kind: Write, Args: []Value{"git", name, json.RawMessage(`{"title":"x"}`)}}
	}
	if values, err := r.Pass(t.Context(), Effect{Name: "fs.write", Kind: Repeat, Args: []Value{"a.txt", "hello"}}, never); err != nil || values != nil {
		t.Errorf("write answered %v, %v", values, err)
	}
	for name, want := range map[string]string{"issue": `{"number":1,"url":""}`, "close": `{"closed":true}`, "unknown": `{}`} {
		values, err := r.Pass(t.Context(), issue(name), never)
		if err != nil || len(values) != 1 || fmt.Sprintf("%s", values[0]) != want {
			t.Errorf("%s answered %s, %v, want %s", name, values, err, want)
		}
	}
	looked := false
	read := Effect{Name: "fs.read", Kind: Read, Args: []Value{"a.txt"}}
	if values, err := r.Pass(t.Context(), read, never); err != nil || len(values) != 1 || values[0] != "hello" {
		t.Errorf("what would be written reads as %v, %v", values, err)
	}
	read.Args = []Value{"b.txt"}
	_, _ = r.Pass(t.Context(), read, func(context.Context) ([]Value, error) {
		looked = true
		return nil, nil
	})
	plan := r.Plan()
	if !looked || len(r.Reads()) != 2 || len(plan) != 4 {
		t.Fatalf("looked %t, reads %v, plan %v", looked, r.Reads(), plan)
	}
	if plan[0].Action != `fs.write "a.txt" (5 bytes)` || plan[0].Uncertain || plan[1].Uncertain || !plan[2].Uncertain || r.Certain() {
		t.Errorf("plan %+v", plan)
	}
}

func TestSample(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		``:                               `{}`,
		`{"type":"string","enum":["a"]}`: `"a"`,
		`{"type":["null","number"]}`:     `0`,
		`{"items":{"type":"boolean"}}`:   `[false]`,
		`{"anyOf":[{"const":7},{}]}`:     `7`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}`: `{"b":""}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`:                                   `null`,
	} {
		if got := string(Sample(json.RawMessage(schema))); got != want {
			t.Errorf("Sample(%s) = %s, want %s", schema, got, want)
		}
	}
}
