// Package search ranks tools by how well their definitions match a query. It uses no
// model: it weighs words by where they appear and by how rare they are.
package search

import (
	"container/heap"
	"math"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
)

// DefaultHits is how many tools a search returns when it does not say.
const DefaultHits = 10

// Weights and limits of matches.
const (
	factorPrefix    = float32(0.7) // a word that matches by its beginning
	factorOuter     = float32(0.7) // a word that is not about the tool itself
	factorAround    = float32(0.3) // of the importance of a word that is about no tool itself
	factorEdit      = float32(0.6) // per edit
	factorVague     = float32(0.5) // of a special tool of which no specific word matched
	weightNamed     = float32(1.2) // of a word that says what the tool is about: more than a mention in its description
	coverageMinimum = float32(0.3) // of a score when almost no word matched
	mostExpansions  = 64           // indexed words that one query word may match, per namespace
	mostQueryWords  = 24
	mostPrefixed    = 2 // words of a query of which the last may be a beginning, although it is a word
	longestQuery    = 4096
	shortestPrefix  = 2
)

// Query is a search for tools.
type Query struct {
	// Texts are wordings of what is searched for, each with words in any order. Without a
	// word in them every tool is found.
	Texts []string
	Limit int // zero or less means DefaultHits
	Used  []Use
}

// MostTexts is how many wordings count.
const MostTexts = 5

// Hit is one tool found. Scores compare within one search only.
type Hit struct {
	tool.Info
	Score float64
	Step  int // of the steps found in the query, the one it fits best; 0 is the first
	// Distinct are the words of the name that tell it from similar tools of its namespace
	// among the hits; nil if there are none.
	Distinct []string
}

// Result is what a search found.
type Result struct {
	Hits  []Hit
	Total int      // how many tools matched
	Steps []string // of a task of several steps; else nil
	// Spaces are the namespaces with tools that fit about as well as the hits, best first.
	Spaces []Space
}

// Part is one namespace's tools and their index.
type Part struct {
	Tools []tool.Info
	Index *Index
	// Special says that the tools count less unless words that are specific for them
	// matched.
	Special bool
	// Similar is how similar each tool is to the query by a model of its meaning, of any
	// scale; nil: unknown, and 0 for a tool of which it is unknown.
	Similar []float32
}

// Run finds tools by their definitions, best first; equal ones are in the order of parts,
// so that the result is stable. Words match exactly or in other forms, with words of about
// the same meaning, the last one also by its beginning, and words that match nothing also
// with typing mistakes.
func Run(q Query, parts []Part, l *Lexicon) Result {
	if q.Limit <= 0 {
		q.Limit = DefaultHits
	}
	s := search{parts: parts, limit: q.Limit, lexicon: l}
	for _, p := range parts {
		s.offsets = append(s.offsets, s.tools)
		s.tools += len(p.Tools)
	}
	s.used, s.named = s.locate(q.Used), make([]bool, s.tools)
	return s.run(q.Texts)
}

// search is one query over the indexes of several namespaces.
type search struct {
	parts   []Part
	offsets []int // of each part in a list of all tools
	tools   int
	lexicon *Lexicon
	limit   int
	used    map[string][][]used   // by word and part
	named   []bool                // of each tool: a word matched that says what it is about
	fit     float32               // how much of a text the best tool covers by words, from 0 to 1
	share   map[[2]uint32]float32 // of the text under way that a tool was used after, by part and tool
}

func (s *search) run(texts []string) Result {
	var all []scores
	var split []string
	for _, text := range texts[:min(len(texts), MostTexts)] {
		one, steps := s.task(cut(text, longestQuery))
		if one != nil {
			all, split = append(all, *one), append(split, steps...)
		}
	}
	switch len(all) {
	case 0:
		return s.everything()
	case 1:
		s.addMeaning(all[0].of)
		return s.result(all[0], split)
	default:
		sum := s.merge(all)
		s.addMeaning(sum.of)
		return s.result(sum, nil)
	}
}

// scores are how well all tools fit a text; 0: not at all.
type scores struct {
	of   []float32
	step []uint8 // per tool the step that it fits best; nil: there are no steps
}

// task scores a text, and if it is a task of several steps, these; nil without words.
func (s *search) task(text string) (*scores, []string) {
	bare := withoutData(text)
	whole := s.score(bare)
	if whole == nil {
		return nil, nil
	}
	split := steps(bare)
	if len(split) == 0 {
		return &scores{of: whole}, nil
	}
	return s.combine(whole, split), split
}

// Shares of the whole text and of the best step in a task's score.
const (
	shareWhole = float32(0.3)
	shareStep  = 1 - shareWhole
)

func (s *search) combine(whole []float32, split []string) *scores {
	sum := scores{of: whole, step: make([]uint8, s.tools)}
	normalize(whole, shareWhole)
	best := make([]float32, s.tools)
	for n, step := range split {
		one := s.score(step)
		normalize(one, shareStep)
		for i, v := range one {
			if v > best[i] {
				best[i], sum.step[i] = v, uint8(n)
			}
		}
	}
	for i, v := range best {
		sum.of[i] += v
	}
	return &sum
}

// normalize makes the best score the given one.
func normalize(scores []float32, best float32) {
	top := float32(0)
	for _, v := range scores {
		top = max(top, v)
	}
	if top == 0 {
		return
	}
	for i := range scores {
		scores[i] *= best / top
	}
}

// merge joins the scores of several wordings: half is the best, half the average, so that
// wordings that agree count more.
func (s *search) merge(all []scores) scores {
	sum := scores{of: make([]float32, s.tools)}
	for _, one := range all {
		normalize(one.of, 1)
	}
	for i := range sum.of {
		best, total := float32(0), float32(0)
		for _, one := range all {
			best, total = max(best, one.of[i]), total+one.of[i]
		}
		sum.of[i] = (best + total/float32(len(all))) / 2
	}
	return sum
}

// result makes the hits of the best scores.
func (s *search) result(sum scores, split []string) Result {
	s.dropVague(sum.of)
	best := ranking{limit: s.limit}
	r := Result{Steps: split}
	for n, p := range s.parts {
		for i := range p.Tools {
			at := s.offsets[n] + i
			if sum.of[at] <= 0 {
				continue
			}
			r.Total++
			step := 0
			if sum.step != nil {
				step = int(sum.step[at])
			}
			best.offer(ranked{sum.of[at], n, i, step})
		}
	}
	r.Hits = best.hits(s.parts)
	distinguish(r.Hits)
	r.Spaces = s.spaces(sum.of, r.Hits)
	return r
}

// dropVague removes special tools of which only a mention in their texts matched, if an
// ordinary tool fits better.
func (s *search) dropVague(scores []float32) {
	best := float32(0)
	for n, p := range s.parts {
		if !p.Special {
			best = max(best, slices.Max(append(scores[s.offsets[n]:][:len(p.Tools):len(p.Tools)], 0)))
		}
	}
	for n, p := range s.parts {
		for i := range p.Tools {
			if at := s.offsets[n] + i; p.Special && !s.named[at] && scores[at] < best {
				scores[at] = 0
			}
		}
	}
}

// everything answers a query without words: all tools in their order.
func (s *search) everything() Result {
	r := Result{Total: s.tools}
	for _, p := range s.parts {
		for _, info := range p.Tools[:min(len(p.Tools), s.limit-len(r.Hits))] {
			r.Hits = append(r.Hits, Hit{Info: info})
		}
	}
	return r
}

// probe is one term of the query: the indexed words it matches, per part, and how much it
// counts.
type probe struct {
	matches    [][]match
	used       [][]used // nil: no tool was used after searches with it
	importance float32
	noun       bool // it is no verb of tools
	specific   bool // nor a word that says little
}

// match is an indexed word that the term matches.
type match struct {
	word   int
	factor float32 // how sure it is that the same is meant
	gain   float32 // of the score, per weight in the tool
}

// probe looks a term up: as it is, as a beginning if it may be one, by other words of the
// same meaning, and if nothing matches, with typing mistakes.
func (s *search) probe(t term, prefixed bool) probe {
	p := probe{matches: make([][]match, len(s.parts))}
	p.noun = t.stem != "" && !vocabulary().verbs[t.stem]
	p.specific = p.noun && t.weight == 1
	holders := s.typed(&p, t, prefixed)
	found := s.alike(&p, t, holders) || holders > 0
	found = s.learned(&p, t, holders) || found
	around := s.around(&p, t, holders)
	if !found && !around && t.stem != "" {
		found = s.misspelt(&p, t)
	}
	switch { // words that no tool contains are data
	case found:
		p.importance = t.weight
	case around:
		p.importance = t.weight * factorAround
	}
	return p
}

// typed adds the word itself, and words that begin with it if it may be a beginning. It
// returns how many tools hold the word.
func (s *search) typed(p *probe, t term, prefixed bool) (holders int) {
	if t.stem == "" {
		return 0
	}
	holders = s.collect(p, t.weight, 1, func(x *Index) []int { return x.exact(t.stem) }, 0)
	if (prefixed || holders == 0) && len(t.stem) >= shortestPrefix {
		s.collect(p, t.weight, factorPrefix, func(x *Index) []int { return x.beginning(t.stem) }, holders)
	}
	return holders
}

// around adds the word where it is not about the tools themselves, and reports whether
// there is such a place.
func (s *search) around(p *probe, t term, holders int) bool {
	return t.stem != "" && s.collect(p, t.weight, factorOuter, func(x *Index) []int { return x.exact(outer + t.stem) }, holders) > 0
}

// alike adds the words that mean about the same; common ones count less. It reports
// whether there are any.
func (s *search) alike(p *probe, t term, holders int) (found bool) {
	for _, other := range s.related(t) {
		have := 0
		for _, part := range s.parts {
			have += part.Index.holders(part.Index.exact(other.stem))
		}
		if have == 0 {
			continue
		}
		rare := rarity(s.tools, have)
		if holders > 0 {
			rare = min(rare, rarity(s.tools, holders))
		}
		found = true
		for i, part := range s.parts {
			for _, word := range part.Index.exact(other.stem) {
				p.matches[i] = append(p.matches[i], match{word, other.factor, t.weight * other.factor * rare})
			}
		}
	}
	return found
}

// misspelt adds the nearest similar words, and reports whether there are any.
func (s *search) misspelt(p *probe, t term) bool {
	used, holders := 0, 0
	for _, candidate := range s.lexicon.near(t) {
		factor := float32(math.Pow(float64(factorEdit), float64(candidate.edits)))
		found := s.collect(p, t.weight, factor, func(x *Index) []int { return x.exact(candidate.word) }, 0)
		holders += found
		if used += min(found, 1); used == mostExpansions {
			break
		}
	}
	return holders > 0
}

// collect adds what find finds in each part, and returns how many tools hold it. It counts
// as a word that at least so many tools hold.
func (s *search) collect(p *probe, weight, factor float32, find func(*Index) []int, least int) (holders int) {
	found := make([][]int, len(s.parts))
	for i, part := range s.parts {
		found[i] = find(part.Index)
		holders += part.Index.holders(found[i])
	}
	gain := weight * factor * rarity(s.tools, max(holders, least))
	for i := range found {
		for _, word := range found[i] {
			p.matches[i] = append(p.matches[i], match{word, factor, gain})
		}
	}
	return holders
}

// rarity is BM25's inverse document frequency.
func rarity(tools, holders int) float32 {
	h := min(float64(holders), float64(tools))
	return float32(math.Log1p((float64(tools) - h + 0.5) / (h + 0.5)))
}

func (x *Index) exact(word string) []int {
	if i, ok := slices.BinarySearch(x.words, word); ok {
		return []int{i}
	}
	return nil
}

// beginning matches the words that begin with prefix and are longer.
func (x *Index) beginning(prefix string) []int {
	var found []int
	i, exact := slices.BinarySearch(x.words, prefix)
	if exact {
		i++
	}
	for ; i < len(x.words) && strings.HasPrefix(x.words[i], prefix) && len(found) < mostExpansions; i++ {
		found = append(found, i)
	}
	return found
}

func (x *Index) holders(words []int) int {
	n := 0
	for _, word := range words {
		n += len(x.postings[word])
	}
	return n
}

// score scores all tools by one text; nil if it has no words.
func (s *search) score(text string) []float32 {
	wanted := terms(text, mostQueryWords)
	if len(wanted) == 0 {
		return nil
	}
	s.share = s.shareOf(wanted)
	probes := make([]probe, len(wanted))
	total, asked := float32(0), float32(0)
	for i, t := range wanted {
		asked += t.weight
		probes[i] = s.probe(t, i == len(wanted)-1 && len(wanted) <= mostPrefixed)
		total += probes[i].importance
	}
	all := make([]float32, s.tools)
	whole := joinedQuery(text)
	covered := float32(0)
	for n, p := range s.parts {
		covered = max(covered, s.scorePart(n, all[s.offsets[n]:][:len(p.Tools)], probes, total, whole))
	}
	s.fit = max(s.fit, covered/asked)
	return all
}

// scorePart scores the tools of one part, and returns how much of the query the best covers.
func (s *search) scorePart(n int, scores []float32, probes []probe, total float32, whole string) (covered float32) {
	p := &s.parts[n]
	sum := sums{scores, make([]matched, len(p.Tools))}
	for i := range probes {
		p.Index.add(&probes[i], n, sum)
	}
	for i := range scores {
		if scores[i] == 0 {
			continue
		}
		m := &sum.matched[i]
		covered = max(covered, m.covered)
		scores[i] *= coverageMinimum + (1-coverageMinimum)*m.covered/total
		if p.Index.joined[i] == whole {
			scores[i] *= 2
			m.specific, m.named = true, true
		}
		if p.Special && !m.specific {
			scores[i] *= factorVague
		}
		s.named[s.offsets[n]+i] = s.named[s.offsets[n]+i] || m.named
		scores[i] *= preference(p.Tools[i].Priority)
	}
	return covered
}

// sums are the scores of a part's tools under way.
type sums struct {
	scores  []float32
	matched []matched
}

// matched is what of a query has matched a tool.
type matched struct {
	covered  float32 // importance of the terms
	specific bool    // one of them is specific and stands in the tool as it was typed
	named    bool    // one of them is a noun and says what the tool is about
	factor   float32 // of the strongest match of the probe under way
	gain     float32
	all      float32 // gain of all matches of the probe under way
}

// shareOthers is how much the weaker matches of a probe count.
const shareOthers = float32(0.25)

// add adds one probe to the scores. If a tool contains several of the words that a probe
// matches, the strongest counts, and the others a little.
func (x *Index) add(p *probe, part int, sum sums) {
	matches := p.matches[part]
	for _, m := range matches {
		for _, post := range x.postings[m.word] {
			t := &sum.matched[post.tool]
			t.meet(m.factor, post.weight*m.gain)
			if m.factor == 1 {
				t.tell(p, post.weight)
			}
		}
	}
	var used []used
	if p.used != nil {
		used = p.used[part]
	}
	for _, u := range used {
		t := &sum.matched[u.tool]
		t.meet(1, u.gain)
		t.specific, t.named = true, true
	}
	for _, m := range matches {
		for _, post := range x.postings[m.word] {
			sum.finish(post.tool, p.importance)
		}
	}
	for _, u := range used {
		sum.finish(u.tool, p.importance)
	}
}

// meet notes one match of the probe under way.
func (m *matched) meet(factor, gain float32) {
	m.all += gain
	if gain > m.gain {
		m.factor, m.gain = factor, gain
	}
}

// tell notes what an exact match tells about the tool.
func (m *matched) tell(p *probe, weight float32) {
	m.specific = m.specific || p.specific
	m.named = m.named || p.noun && weight >= weightNamed
}

// finish adds the matches of the probe under way to a tool's score, once.
func (s sums) finish(tool uint32, importance float32) {
	if t := &s.matched[tool]; t.gain > 0 {
		s.scores[tool] += t.gain + shareOthers*(t.all-t.gain)
		t.covered += t.factor * importance
		t.gain, t.all = 0, 0
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
	step       int
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
func (r *ranking) hits(parts []Part) []Hit {
	slices.SortFunc(r.best, func(a, b ranked) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	hits := make([]Hit, len(r.best))
	for i, k := range r.best {
		hits[i] = Hit{Info: parts[k.part].Tools[k.tool], Score: float64(k.score), Step: k.step}
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
