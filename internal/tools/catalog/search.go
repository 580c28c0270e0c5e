package catalog

import (
	"container/heap"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// DefaultHits is how many tools a search returns when it does not say.
const DefaultHits = 10

// Weights and limits of matches.
const (
	factorPrefix    = float32(0.7) // a word that matches by its beginning
	factorEdit      = float32(0.6) // per edit
	coverageMinimum = float32(0.3) // of a score when almost no word matched
	mostExpansions  = 64           // indexed words that one query word may match, per namespace
	mostQueryWords  = 16
	longestQuery    = 1024 // bytes
	shortestPrefix  = 2
)

// Query is a search for tools.
type Query struct {
	Text      string // words, in any order; empty finds every tool
	Namespace string // only there; empty means everywhere, our own tools included
	Limit     int    // zero or less means DefaultHits
}

// Hit is one tool found. Scores compare within one search only.
type Hit struct {
	tool.Info
	Score float64
}

// Search finds tools by their definitions, best first; equal ones are in catalog order,
// so that the result is stable. Words match exactly or as plurals, the last one also by
// its beginning, and words that match nothing also with typing mistakes. The second
// result is how many tools matched in all.
func (c *Catalog) Search(ctx context.Context, q Query) ([]Hit, int) {
	if q.Limit <= 0 {
		q.Limit = DefaultHits
	}
	v := c.visible(ctx, c.refresh(ctx))
	s := search{limit: q.Limit, lexicon: c.lexicon}
	for _, name := range v.sorted {
		if n := v.namespaces[name]; q.Namespace == "" || q.Namespace == name {
			s.parts = append(s.parts, part{n.tools, n.index(c.lexicon)})
		}
	}
	if q.Namespace == "" && tool.ScopeOf(ctx) == nil && principal.Of(ctx).Admin() {
		c.lexicon.prune(s.parts)
	}
	return s.run(q.Text)
}

// search is one query over the indexes of several namespaces.
type search struct {
	parts   []part
	lexicon *lexicon
	limit   int
}

// part is one namespace's tools and their index.
type part struct {
	tools []tool.Info
	index *index
}

func (s *search) run(query string) ([]Hit, int) {
	query = cut(query, longestQuery)
	wanted := queryWords(query, mostQueryWords)
	if len(wanted) == 0 {
		return s.everything()
	}
	probes := make([]probe, len(wanted))
	for i, word := range wanted {
		probes[i] = s.probe(word, i == len(wanted)-1)
	}
	best := ranking{limit: s.limit}
	whole := joinedQuery(query)
	total := 0
	for n, p := range s.parts {
		total += p.score(n, probes, whole, &best)
	}
	return best.hits(s.parts), total
}

// everything answers a query without words: all tools in their order.
func (s *search) everything() ([]Hit, int) {
	var hits []Hit
	total := 0
	for _, p := range s.parts {
		total += len(p.tools)
		for _, info := range p.tools[:min(len(p.tools), s.limit-len(hits))] {
			hits = append(hits, Hit{Info: info})
		}
	}
	return hits, total
}

// probe is one word of the query: the indexed words it matches, per part, and how rare
// it is.
type probe struct {
	matches [][]match
	rarity  float32
}

// match is an indexed word that the query's word matches.
type match struct {
	word   int
	factor float32
}

// probe looks a word up: as it is, the last one also as a prefix, and if nothing
// matches, with typing mistakes.
func (s *search) probe(word queryWord, last bool) probe {
	p := probe{matches: make([][]match, len(s.parts))}
	holders := s.collect(&p, func(x *index) []match { return x.exact(word.stem, 1) })
	if last && len(word.stem) >= shortestPrefix {
		begun := s.collect(&p, func(x *index) []match { return x.beginning(word.stem) })
		if holders == 0 { // otherwise the word as it was typed decides how rare it is
			holders = begun
		}
	}
	holders = s.alike(&p, word.stem, holders)
	if holders == 0 {
		holders = s.misspelt(&p, word)
	}
	p.rarity = rarity(s.tools(), holders)
	return p
}

// misspelt adds the nearest similar words.
func (s *search) misspelt(p *probe, word queryWord) (holders int) {
	used := 0
	for _, candidate := range s.lexicon.near(word) {
		factor := float32(math.Pow(float64(factorEdit), float64(candidate.edits)))
		found := s.collect(p, func(x *index) []match { return x.exact(candidate.word, factor) })
		holders += found
		if used += min(found, 1); used == mostExpansions {
			break
		}
	}
	return holders
}

// collect adds what find finds in each part, and returns how many tools hold it.
func (s *search) collect(p *probe, find func(*index) []match) (holders int) {
	for i, part := range s.parts {
		found := find(part.index)
		p.matches[i] = append(p.matches[i], found...)
		holders += part.index.holders(found)
	}
	return holders
}

func (s *search) tools() int {
	n := 0
	for _, p := range s.parts {
		n += len(p.tools)
	}
	return n
}

// rarity is BM25's inverse document frequency.
func rarity(tools, holders int) float32 {
	h := min(float64(holders), float64(tools))
	return float32(math.Log1p((float64(tools) - h + 0.5) / (h + 0.5)))
}

func (x *index) exact(word string, factor float32) []match {
	if i, ok := slices.BinarySearch(x.words, word); ok {
		return []match{{i, factor}}
	}
	return nil
}

// beginning matches the words that begin with prefix and are longer.
func (x *index) beginning(prefix string) []match {
	var found []match
	i, exact := slices.BinarySearch(x.words, prefix)
	if exact {
		i++
	}
	for ; i < len(x.words) && strings.HasPrefix(x.words[i], prefix) && len(found) < mostExpansions; i++ {
		found = append(found, match{i, factorPrefix})
	}
	return found
}

func (x *index) holders(matches []match) int {
	n := 0
	for _, m := range matches {
		n += len(x.postings[m.word])
	}
	return n
}

// score ranks the tools of one part. It returns how many matched.
func (p part) score(n int, probes []probe, whole string, best *ranking) int {
	scores := make([]float32, len(p.tools))
	matched := make([]float32, len(p.tools)) // how many words; a synonym counts less than one
	strongest := make([]strength, len(p.tools))
	for _, probe := range probes {
		p.index.add(probe, n, scores, matched, strongest)
	}
	found := 0
	for i, score := range scores {
		if matched[i] == 0 {
			continue
		}
		found++
		covered := matched[i] / float32(len(probes))
		score *= coverageMinimum + (1-coverageMinimum)*covered
		if p.index.joined[i] == whole {
			score *= 2
		}
		score *= preference(p.tools[i].Priority)
		best.offer(ranked{score, n, i})
	}
	return found
}

// strength is the weight in a tool of the strongest word that a probe matches, and the
// factor of that match.
type strength struct{ weight, factor float32 }

// add adds the weight of one probe to the scores. If a tool contains several of the
// words that a probe matches, the strongest counts.
func (x *index) add(p probe, part int, scores, matched []float32, strongest []strength) {
	matches := p.matches[part]
	for _, m := range matches {
		for _, post := range x.postings[m.word] {
			if w := post.weight * m.factor; w > strongest[post.tool].weight {
				strongest[post.tool] = strength{w, m.factor}
			}
		}
	}
	for _, m := range matches {
		for _, post := range x.postings[m.word] {
			if s := strongest[post.tool]; s.weight > 0 {
				scores[post.tool] += s.weight * p.rarity
				matched[post.tool] += s.factor
				strongest[post.tool] = strength{}
			}
		}
	}
}

// preference is the effect of a tool's priority on its score: each point adds a
// twentieth, so that ten points lift a tool over matches half as good again.
func preference(priority int) float32 {
	return max(0.25, min(1+float32(priority)/20, 4))
}

func joinedQuery(query string) string {
	var b strings.Builder
	words(query, func(word string) { b.WriteString(word) })
	return b.String()
}

// ranked is a tool with its score; part and tool say which, in catalog order.
type ranked struct {
	score      float32
	part, tool int
}

func (a ranked) before(b ranked) bool {
	switch {
	case a.score != b.score:
		return a.score > b.score
	case a.part != b.part:
		return a.part < b.part
	default:
		return a.tool < b.tool
	}
}

// ranking holds the best tools so far, as a heap with the worst on top.
type ranking struct {
	limit int
	best  []ranked
}

func (r *ranking) offer(c ranked) {
	switch {
	case len(r.best) < r.limit:
		heap.Push(r, c)
	case c.before(r.best[0]):
		r.best[0] = c
		heap.Fix(r, 0)
	}
}

// hits empties the ranking, best first.
func (r *ranking) hits(parts []part) []Hit {
	slices.SortFunc(r.best, func(a, b ranked) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	hits := make([]Hit, len(r.best))
	for i, k := range r.best {
		hits[i] = Hit{Info: parts[k.part].tools[k.tool], Score: float64(k.score)}
	}
	return hits
}

func (r *ranking) Len() int           { return len(r.best) }
func (r *ranking) Less(i, j int) bool { return r.best[j].before(r.best[i]) }
func (r *ranking) Swap(i, j int)      { r.best[i], r.best[j] = r.best[j], r.best[i] }
func (r *ranking) Push(x any)         { r.best = append(r.best, x.(ranked)) }

func (r *ranking) Pop() any {
	last := r.best[len(r.best)-1]
	r.best = r.best[:len(r.best)-1]
	return last
}
