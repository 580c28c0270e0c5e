package main

import (
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
		if f := measure(s, 1); f.any5.mean < least[s.name][0] || f.mrr.mean < least[s.name][1] {
			t.Errorf("%s: any@5 %s, MRR %s\n%s", s.name, f.any5, f.mrr, strings.Join(f.missed, "\n"))
		}
		if f := measure(s, 3); s.worded() && (f.any5.mean < 0.94 || f.mrr.mean < 0.88) {
			t.Errorf("%s with three wordings: any@5 %s, MRR %s\n%s", s.name, f.any5, f.mrr, strings.Join(f.missed, "\n"))
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
		"golden/corpus_v1.tools.json": `{"tools":[{"server":"fs","tool":"read","description":"Reads."},{"server":"fs","tool":"write","description":"Writes."}]}`,
		"golden/some_golden_v1.json":  `{"queries":[{"query":"see it","labels":[{"tool_id":"fs:read","relevance":2},{"tool_id":"fs:write","relevance":0}]}]}`,
		"tasks/tools.json":            `[{"name":"X","tools":{"b":{"tools":[{"name":"go","description":"Goes."}]},"a":{"tools":[{"name":"go"},{"name":"stop"}]}}}]`,
		"tasks/all_annotations.json":  `[{"Question":"Move.","Annotator Metadata":{"Tools":"1. go\n2. gone"}},{"Question":"None.","Annotator Metadata":{"Tools":"1. gone"}}]`,
		"plain/tools.json":            `[{"tools":{"a":{"tools":[{"name":"go"}]}}}]`,
		"plain/questions.txt":         "move | go => a.go\n",
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

func TestMeanHasAConfidenceInterval(t *testing.T) {
	t.Parallel()
	if got := meanOf([]float64{1, 1, 0, 0, 1, 1, 0, 0}).String(); got != "0.500 ± 0.370" {
		t.Error(got)
	}
}

func TestAnyAndAllAnswersAreCounted(t *testing.T) {
	t.Parallel()
	hits := []string{"a", "b", "c", "d"}
	for want, sums := range map[string][2]float64{"a b": {1, 1}, "a d": {1, 0}, "d": {0, 0}, "a b c d": {1, 1}} {
		if some, all := among(hits, strings.Fields(want), 3); some != sums[0] || all != sums[1] {
			t.Errorf("%s: %v %v", want, some, all)
		}
	}
}
