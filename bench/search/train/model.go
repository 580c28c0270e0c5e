package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/tools/search"
	"github.com/luanette/luanette/internal/tools/search/meaning"
)

// What words are trained.
const (
	leastUses     = 3 // of a word in the pairs; frequent ones need one
	frequentWords = 15_000
	leastNewUses  = 8 // of a word that has no public vector
	mostNewWords  = 3000
	rankOfNew     = 60_000
	longestPair   = 60 // words of a text that are read
	mostOfText    = 24 // of them, different known ones
)

// model is the vectors under training.
type model struct {
	words   []string
	rank    []int // by frequency in English
	index   map[string]int32
	vectors []meaning.Vector
}

// newModel begins with public vectors for words that the sources use, and with random ones
// for what else they use often.
func newModel(g *glove, sources []source) *model {
	uses := usesOf(sources)
	m := &model{index: map[string]int32{}}
	for rank, word := range g.words {
		if isWorthTraining(word, rank, uses[word]) {
			m.words, m.rank = append(m.words, word), append(m.rank, rank)
		}
	}
	start := g.reduced(m.words)
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // where training starts
	for _, word := range newWords(g, uses) {
		m.words, m.rank = append(m.words, word), append(m.rank, rankOfNew)
		start = append(start, randomRow(random))
	}
	m.begin(start)
	return m
}

// isWorthTraining reports whether a word that has a public vector is used enough: the more
// frequent ones of English need less.
func isWorthTraining(word string, rank, uses int) bool {
	if len(word) < 2 || !isPlain(word, true) {
		return false
	}
	return uses >= leastUses || rank < frequentWords && uses > 0
}

// newWords are words without a public vector that are used often, the most used ones first.
func newWords(g *glove, uses map[string]int) []string {
	var found []string
	for word, count := range uses {
		if g.vectors[word] == nil && count >= leastNewUses && len(word) > 2 && isPlain(word, false) {
			found = append(found, word)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(uses[b], uses[a]), cmp.Compare(a, b)) })
	return found[:min(len(found), mostNewWords)]
}

// randomRow is about half as long as a public vector.
func randomRow(random *rand.Rand) []float64 {
	row := make([]float64, meaning.Dimensions)
	for i := range row {
		row[i] = random.NormFloat64() / math.Sqrt(meaning.Dimensions) / 2
	}
	return row
}

// shareOfFiller is how much a word that says nothing counts at first.
const shareOfFiller = 0.2

// begin sets the vectors before training: the longer, the more a word says.
func (m *model) begin(start [][]float64) {
	m.vectors = make([]meaning.Vector, len(m.words))
	for i, word := range m.words {
		m.index[word] = int32(i)
		weight := rareness(m.rank[i])
		if search.IsFiller(word) {
			weight *= shareOfFiller
		}
		for j, x := range start[i] {
			m.vectors[i][j] = float32(x * weight)
		}
	}
}

// rareness is how much a word says, by its place among the words of English: Zipf's law
// gives how often it is used.
func rareness(rank int) float64 {
	const often = 1e-3
	p := 1 / ((float64(rank) + 2.7) * (math.Log(gloveWords) + 0.58))
	return often / (often + p)
}

// isPlain reports whether a word has small letters only, and maybe digits.
func isPlain(word string, digits bool) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return (r < 'a' || r > 'z') && (!digits || r < '0' || r > '9') })
}

// usesOf counts in how many pairs each word stands.
func usesOf(sources []source) map[string]int {
	uses := map[string]int{}
	for _, s := range sources {
		for _, p := range s.pairs {
			seen := map[string]bool{}
			for _, text := range []string{p.a, p.b} {
				search.EachWord(text, func(word string) {
					if !seen[word] {
						seen[word] = true
						uses[word]++
					}
				})
			}
		}
	}
	return uses
}

// chosen returns the vectors of the words that are most frequent in English or in the
// texts about tools.
func (m *model) chosen(sources []source, count int) map[string]meaning.Vector {
	uses := usesOf(slices.DeleteFunc(slices.Clone(sources), func(s source) bool { return s.prose }))
	order := make([]int, len(m.words))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(uses[m.words[b]], uses[m.words[a]]) })
	place := make([]int, len(order))
	for i, word := range order {
		place[word] = min(m.rank[word], 2*i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(place[a], place[b]), cmp.Compare(a, b)) })
	found := map[string]meaning.Vector{}
	for _, i := range order[:min(len(order), count)] {
		found[m.words[i]] = m.vectors[i]
	}
	return found
}

// text is the known words of a text, each once.
func (m *model) text(text string) []int32 {
	var found []int32
	read := 0
	search.EachWord(text, func(word string) {
		if read++; read > longestPair || len(found) >= mostOfText {
			return
		}
		if i, ok := m.index[word]; ok && !slices.Contains(found, i) {
			found = append(found, i)
		}
	})
	return found
}
