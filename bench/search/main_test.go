package main

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

// least is what each set must reach: any@5 and MRR, with one wording.
var least = map[string][2]float64{
	"tuning":     {0.93, 0.86},
	"heldout":    {0.92, 0.86},
	"everyday":   {0.70, 0.57},
	"2026-11-17": {0.78, 0.57},
}

// TestToolsAreFound checks the figures that make bench-search prints.
func TestToolsAreFound(t *testing.T) {
	t.Parallel()
	tools, err := corpus()
	if err != nil {
		t.Fatal(err)
	}
	sets, err := ownSets(tools)
	if err != nil {
		t.Fatal(err)
	}
	if len(tools) < 500 || len(sets) != len(least) {
		t.Errorf("%d tools, %d sets", len(tools), len(sets))
	}
	for _, s := range sets {
		for _, q := range s.asked {
			for _, want := range q.want {
				if !slices.ContainsFunc(tools, func(info tool.Info) bool { return info.Ref.String() == want }) {
					t.Errorf("%s: no tool %s", s.name, want)
				}
			}
		}
		if f := measure(s, 1); mean(f.any5) < least[s.name][0] || mean(f.mrr) < least[s.name][1] {
			t.Errorf("%s: any@5 %.3f, MRR %.3f\n%s", s.name, mean(f.any5), mean(f.mrr), strings.Join(f.missed, "\n"))
		}
		if f := measure(s, 3); s.worded() && (mean(f.any5) < 0.94 || mean(f.mrr) < 0.88) {
			t.Errorf("%s with three wordings: any@5 %.3f, MRR %.3f\n%s", s.name, mean(f.any5), mean(f.mrr), strings.Join(f.missed, "\n"))
		}
		if dated := s.name[0] == '2'; dated && len(s.asked) < 150 {
			t.Errorf("%s: %d questions", s.name, len(s.asked))
		}
	}
}

func TestPublicSetsAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"golden/corpus_v1.tools.json":         `{"tools":[{"server":"fs","tool":"read","description":"Reads."},{"server":"fs","tool":"write","description":"Writes."}]}`,
		"golden/some_golden_v1.json":          `{"queries":[{"query":"see it","labels":[{"tool_id":"fs:read","relevance":2},{"tool_id":"fs:write","relevance":0}]}]}`,
		"tasks/tools.json":                    `[{"name":"X","tools":{"b":{"tools":[{"name":"go","description":"Goes."}]},"a":{"tools":[{"name":"go"},{"name":"stop"}]}}}]`,
		"tasks/all_annotations.json":          `[{"Question":"Move.","Annotator Metadata":{"Tools":"1. go\n2. gone"}},{"Question":"None.","Annotator Metadata":{"Tools":"1. gone"}}]`,
		"bfcl/BFCL_v4_x.json":                 `{"id":"1","question":[[{"role":"user","content":"Go."}]],"function":[{"name":"go","description":"Goes."},{"name":"stop"}]}`,
		"bfcl/possible_answer/BFCL_v4_x.json": `{"id":"1","ground_truth":[{"go":{}}]}`,
		"calls/x_single.json":                 `[{"query":"Go.","tools":[{"name":"go"},{"name":"run"}],"mcp_tools_dict":{"a":["go"],"b":["run"]},"function_call_label":[{"name":"go","similar_tools":[{"name":"run"}]}]}]`,
		"plain/tools.json":                    `[{"tools":{"a":{"tools":[{"name":"go"}]}}}]`,
		"plain/questions.txt":                 "move | go => a.go\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sets, err := publicSets(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]question{}
	for _, s := range sets {
		got[s.name] = s.asked
	}
	want := map[string][]question{
		"golden": {{[]string{"see it"}, []string{"fs.read"}}},
		"tasks":  {{[]string{"Move."}, []string{"a.go", "b.go"}}},
		"bfcl":   {{[]string{"Go.\n"}, []string{"bfcl.go"}}},
		"calls":  {{[]string{"Go."}, []string{"a.go", "b.run"}}},
		"plain":  {{[]string{"move", "go"}, []string{"a.go"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "tasks", "tools.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := publicSets(dir); err == nil || !strings.Contains(err.Error(), "tasks: tools.json") {
		t.Errorf("error = %v", err)
	}
}

func TestIntervalsHoldTheMean(t *testing.T) {
	t.Parallel()
	values := slices.Repeat([]float64{1, 0}, 50)
	got := bootstrap(values)
	if math.Abs(got.mean-0.5) > 1e-9 || got.low > 0.45 || got.low < 0.35 || got.high < 0.55 || got.high > 0.65 || got != bootstrap(values) {
		t.Errorf("%v", got)
	}
	if got := bootstrap(minus(values, values)); got != (interval{}) {
		t.Errorf("nothing differs, but %v", got)
	}
}

// TestBaselineFindsWords checks that the search is compared with one that works.
func TestBaselineFindsWords(t *testing.T) {
	t.Parallel()
	tools, err := corpus()
	if err != nil {
		t.Fatal(err)
	}
	if got := bm25(tools)("merge pull request", 1); len(got) != 1 || got[0] != "github.merge_pull_request" {
		t.Errorf("found %v", got)
	}
}
