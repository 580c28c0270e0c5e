package main

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/definition"
	"github.com/luanette/luanette/internal/tools/search"
)

// bm25 is what everybody would write first: BM25 over the words of whole definitions, without
// those that say nothing. It is what the search is compared with.
func bm25(tools []tool.Info) func(text string, limit int) []string {
	const k1, b = 1.2, 0.75
	texts, holders, total := make([]map[string]float64, len(tools)), map[string]float64{}, 0.0
	lengths := make([]float64, len(tools))
	for i := range tools {
		texts[i] = map[string]float64{}
		in := definition.ReadSchema(tools[i].Input)
		said := slices.Concat([]string{tools[i].Name, tools[i].Title, tools[i].Description}, in.Names, in.Texts, in.Values)
		eachTelling(strings.Join(said, " "), func(word string) {
			if texts[i][word]++; texts[i][word] == 1 {
				holders[word]++
			}
			lengths[i]++
			total++
		})
	}
	n := float64(len(tools))
	return func(text string, limit int) []string {
		scores, found := make([]float64, len(tools)), []int{}
		eachTelling(text, func(word string) {
			for i := range tools {
				f := texts[i][word]
				scores[i] += math.Log1p((n-holders[word]+0.5)/(holders[word]+0.5)) * f * (k1 + 1) / (f + k1*(1-b+b*lengths[i]*n/total))
			}
		})
		for i, score := range scores {
			if score > 0 {
				found = append(found, i)
			}
		}
		slices.SortStableFunc(found, func(i, j int) int { return cmp.Compare(scores[j], scores[i]) })
		var names []string
		for _, i := range found[:min(len(found), limit)] {
			names = append(names, tools[i].Ref.String())
		}
		return names
	}
}

// eachTelling calls use for the words of a text that say something.
func eachTelling(text string, use func(word string)) {
	search.EachWord(text, func(word string) {
		if !search.IsFiller(word) {
			use(word)
		}
	})
}
