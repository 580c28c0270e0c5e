package results_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/tools/definition"
	"github.com/luanette/luanette/internal/tools/results"
)

func TestLearn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		values []string
		want   string
	}{
		{"scalars", []string{`1`, `"a"`, `null`}, "string | integer | null"},
		{"numbers", []string{`1`, `1.5`}, "number"},
		{"objects", []string{`{"a":1,"b":"x"}`, `{"b":null,"a":2,"c":true}`}, "{a: integer, b: string | null, c?: boolean}"},
		{"lists", []string{`[{"n":1},{"n":2,"m":[]}]`, `[]`}, "{n: integer, m?: any[]}[]"},
		{"mixed lists", []string{`[1,"a"]`}, "(string | integer)[]"},
		{"people", []string{`{"ada@example.org":1,"bob@example.org":2}`}, "{[key]: integer}"},
		{"ids", []string{`{"total":1,"7c9e6679-7425-40de-944b-e07fc1f90ae7":{"x":1}}`}, "{[key]: {x: integer} | integer}"},
		{"nothing", nil, "any"},
		{"broken", []string{`{"a":`, ``}, "{}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &results.Shape{}
			for _, v := range tt.values {
				s.Learn(json.RawMessage(v))
			}
			if got := s.String(); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestNoValueIsStored(t *testing.T) {
	t.Parallel()
	s := results.ShapeOf(json.RawMessage(`{"secret":"hunter2","list":["hunter2"],"by_user":{"hunter2@example.org":"hunter2"},"hunter2!":1}`))
	raw, err := json.Marshal(s)
	if err != nil || strings.Contains(string(raw), "hunter2") || strings.Contains(string(s.Schema()), "hunter2") {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestShapesStaySmall(t *testing.T) {
	t.Parallel()
	s := &results.Shape{}
	deep := strings.Repeat(`{"a":[`, 500) + strings.Repeat(`]}`, 500)
	s.Learn(json.RawMessage(deep))
	for i := range 2000 {
		var fields []string
		for j := range 30 {
			fields = append(fields, fmt.Sprintf(`"f%c%c%c":{"g%c":[{"h":%d}]}`, 'a'+i%26, 'a'+i/26%26, 'a'+j%26, 'a'+j%26, j))
		}
		s.Learn(json.RawMessage(`{` + strings.Join(fields, ",") + `}`))
	}
	raw, err := json.Marshal(s)
	if err != nil || len(raw) > 40_000 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}

func TestSchemaAndCopies(t *testing.T) {
	t.Parallel()
	s := results.ShapeOf(json.RawMessage(`{"z":[{"id":1,"tag":"x"},{"id":2}],"by":{"a b":1,"1234":2}}`))
	want := `{"type":"object","properties":{"z":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"tag":{"type":"string"}},"required":["id"]}},` +
		`"by":{"type":"object","additionalProperties":{"type":"integer"}}},"required":["z","by"]}`
	if got := string(s.Schema()); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if names := definition.FieldNames(s.Schema()); !slices.Equal(names, []string{"z", "id", "tag", "by"}) {
		t.Errorf("fields %v", names)
	}
	c := s.Clone()
	if !c.Same(s) {
		t.Error("a copy differs")
	}
	c.Learn(json.RawMessage(`{"z":[],"by":{}}`))
	if !c.Same(s) {
		t.Error("the same again makes a difference")
	}
	c.Learn(json.RawMessage(`{"z":[]}`))
	if c.Same(s) {
		t.Error("a field that was missing makes no difference")
	}
	var back results.Shape
	if raw, err := json.Marshal(c); err != nil || json.Unmarshal(raw, &back) != nil || !back.Same(c) {
		t.Errorf("does not survive: %v", err)
	}
}

func FuzzLearn(f *testing.F) {
	f.Add(`{"a":[1,{"b":null}]}`, `{"a":{}}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		s := results.ShapeOf(json.RawMessage(one))
		s.Learn(json.RawMessage(two))
		if !json.Valid(s.Schema()) {
			t.Errorf("schema %s", s.Schema())
		}
	})
}
