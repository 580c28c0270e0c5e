package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// TestToolsAreFound checks the figures that make bench-search prints.
func TestToolsAreFound(t *testing.T) {
	t.Parallel()
	tools, err := corpus()
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.New(catalog.Options{Sources: []tool.Source{source(tools)}})
	if spaces := len(c.Namespaces(t.Context())); len(tools) < 500 || spaces < 30 {
		t.Errorf("%d tools of %d servers", len(tools), spaces)
	}
	total := 0
	for _, set := range []string{"tuning", "heldout"} {
		asked, err := questions(set)
		if err != nil {
			t.Fatal(err)
		}
		total += len(asked)
		for _, q := range asked {
			for _, want := range q.want {
				if !slices.ContainsFunc(tools, func(info tool.Info) bool { return info.Ref.String() == want }) {
					t.Errorf("%s: no tool %s", set, want)
				}
			}
		}
		if s := measure(c, asked); s.recall < 0.88 || s.mrr < 0.80 {
			t.Errorf("%s: recall@5 %.3f, MRR %.3f\n%s", set, s.recall, s.mrr, strings.Join(s.missed, "\n"))
		}
	}
	if total < 150 {
		t.Errorf("%d questions", total)
	}
}
