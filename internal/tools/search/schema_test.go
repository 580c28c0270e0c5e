package search

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

// TestAllOfADefinitionIsSearched checks that a tool is found by every part of its
// definition, and by what is known about it otherwise.
func TestAllOfADefinitionIsSearched(t *testing.T) {
	t.Parallel()
	tools := []tool.Info{
		{Ref: tool.Ref{Space: "x", Name: "other"}, Description: "Does another thing."},
		{
			Ref: tool.Ref{Space: "x", Name: "op"}, Title: "Titular", Description: "Does a thing.", Tags: []string{"payroll"},
			Input: json.RawMessage(`{"type": "object", "properties": {
				"invoice": {"description": "Voucher of the sale", "enum": ["draft", "overdue", 7]},
				"lines": {"type": "array", "items": {"type": "object", "properties": {"warehouse": {"type": "string"}}}},
				"contact": {"anyOf": [{"$ref": "#/$defs/Person"}, {"type": "null"}]}},
				"$defs": {"Person": {"properties": {"nickname": {"type": "string"}}}}}`),
			Raw: json.RawMessage(`{"name": "op", "_meta": {"_fastmcp": {"tags": ["bookkeeping"]}}}`),
		},
		{Ref: tool.Ref{Space: "x", Name: "out"}, Description: "Does it.", Output: json.RawMessage(`{"properties": {"telephone": {"type": "string"}}}`)},
	}
	x := NewIndex(tools, Context{Fields: func(ref tool.Ref) []string {
		return map[string][]string{"other": {"barometer"}, "out": {"unused"}}[ref.Name]
	}})
	find := func(query string) []string {
		return found(Run(Query{Texts: []string{query}}, []Part{{Tools: tools, Index: x}}))
	}
	for query, want := range map[string]string{
		"titular": "x.op", "invoice": "x.op", "voucher": "x.op", "overdue": "x.op", "warehouse": "x.op", "nickname": "x.op",
		"payroll": "x.op", "bookkeeping": "x.op", "telephone": "x.out", "barometer": "x.other",
	} {
		if got := find(query); len(got) == 0 || got[0] != want {
			t.Errorf("%s: found %v", query, got)
		}
	}
	if got := find("unused"); slices.Contains(got, "x.out") {
		t.Errorf("learned fields beside an output schema: %v", got)
	}
}

// TestServersAreFoundByWhatTheySay checks that a server's text finds its tools, after
// tools whose own texts have the word.
func TestServersAreFoundByWhatTheySay(t *testing.T) {
	t.Parallel()
	a, b := []tool.Info{{Ref: tool.Ref{Space: "a", Name: "query"}, Description: "Query a data source."}},
		[]tool.Info{{Ref: tool.Ref{Space: "b", Name: "query"}, Description: "Query a data source."}, {Ref: tool.Ref{Space: "b", Name: "dashboard_list"}, Description: "Lists."}}
	parts := []Part{
		{Tools: a, Index: NewIndex(a, Context{Server: "Use these tools for dashboards and alerts of Grafana."})},
		{Tools: b, Index: NewIndex(b, Context{})},
	}
	for query, want := range map[string]string{"query Grafana": "a.query", "dashboards": "b.dashboard_list"} {
		if got := found(Run(Query{Texts: []string{query}}, parts)); len(got) < 2 || got[0] != want {
			t.Errorf("%s: found %v", query, got)
		}
	}
}

func TestUsedToolsComeFirst(t *testing.T) {
	t.Parallel()
	parts := []Part{partOf(sample...)}
	use := func(word, name string, weight float64) Use {
		return Use{Word: word, Ref: tool.Ref{Space: "math", Name: name}, Weight: weight}
	}
	for query, want := range map[string]string{"reckon": "math.add", "reckon numbers": "math.add", "two factor": "math.two_factor", "read file": "fs.read_file"} {
		r := Run(Query{Texts: []string{query}, Used: []Use{use("reckon", "add", 1), use("number", "add", 1), use("factor", "add", 1), use("file", "gone", 1)}}, parts)
		if got := found(r); len(got) == 0 || got[0] != want {
			t.Errorf("%s: found %v", query, got)
		}
	}
}
