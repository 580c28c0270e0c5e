package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// set is questions about tools.
type set struct {
	name  string
	tools []tool.Info
	asked []question
}

// question is a query of a user, with the tools that answer it.
type question struct {
	texts []string // the question itself, then other wordings of it
	want  []string // names of tools, each of which is a right answer
}

// worded reports whether the questions have other wordings.
func (s *set) worded() bool {
	return !slices.ContainsFunc(s.asked, func(q question) bool { return len(q.texts) < 3 })
}

// mean is an average with the half width of its 95 % confidence interval.
type mean struct{ mean, margin float64 }

func (m mean) String() string { return fmt.Sprintf("%.3f ± %.3f", m.mean, m.margin) }

func meanOf(values []float64) mean {
	n, sum, squares := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		sum += v
		squares += v * v
	}
	if n < 2 {
		return mean{sum, 0}
	}
	variance := (squares - sum*sum/n) / (n - 1)
	return mean{sum / n, 1.96 * math.Sqrt(max(0, variance)/n)}
}

// figures are how well a set was answered.
type figures struct {
	any5, all5, any10, all10, mrr mean
	missed                        []string // questions without a right answer among the first five
}

// measure asks the questions of a set, each in so many wordings.
func measure(s set, wordings int) figures {
	c := catalog.New(catalog.Options{Sources: []tool.Source{source(s.tools)}})
	return measureWith(s.asked, func(q question) []catalog.Hit { return ask(c, q, wordings) })
}

// measureWith measures the answers of a search.
func measureWith(asked []question, answer func(question) []catalog.Hit) figures {
	var f figures
	var columns [5][]float64
	for _, q := range asked {
		hits := names(answer(q))
		first := slices.IndexFunc(hits, func(name string) bool { return slices.Contains(q.want, name) })
		reciprocal := 0.0
		if first >= 0 {
			reciprocal = 1 / float64(first+1)
		}
		any5, all5 := among(hits, q.want, 5)
		any10, all10 := among(hits, q.want, 10)
		for i, v := range []float64{any5, all5, any10, all10, reciprocal} {
			columns[i] = append(columns[i], v)
		}
		if any5 == 0 {
			f.missed = append(f.missed, fmt.Sprintf("  %s: %v at %d; got %v", q.texts[0], q.want, first+1, hits[:min(len(hits), 5)]))
		}
	}
	for i, to := range []*mean{&f.any5, &f.all5, &f.any10, &f.all10, &f.mrr} {
		*to = meanOf(columns[i])
	}
	return f
}

func ask(c *catalog.Catalog, q question, wordings int) []catalog.Hit {
	hits, _ := c.Search(context.Background(), catalog.Query{Text: q.texts[0], Others: q.texts[1:min(wordings, len(q.texts))], Limit: 20})
	return hits
}

// among reports, as 1 or 0, whether any and whether all right answers are among the first
// n hits; if there are more than n, n of them count as all.
func among(hits, want []string, n int) (some, all float64) {
	found := 0
	for _, name := range hits[:min(len(hits), n)] {
		if slices.Contains(want, name) {
			found++
		}
	}
	if found > 0 {
		some = 1
	}
	if found >= min(len(want), n) {
		all = 1
	}
	return some, all
}

func names(hits []catalog.Hit) []string {
	all := make([]string, len(hits))
	for i, h := range hits {
		all[i] = h.Ref.String()
	}
	return all
}
