package search

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/luanette/luanette/internal/core/tool"
)

// The score of a tool is
//
//	words / most words + shareMeaning · nearness / most nearness + shareUse · use³
//
// the first two times what the tool is liked whatever is asked: its priority, and less if it is
// deprecated. A tool whose title, or else name, is the query comes before all others.
//
// words is BM25 over the fields of the definition (index.go), summed over the words of the
// query. A word matches as it is or in other forms, as a word of about the same meaning
// (vocabulary.go), the last one also by its beginning, and one that matches nothing also with
// typing mistakes. The sum is multiplied by how much of the query matched, and by how much of
// the title was asked for.
//
// nearness is the cosine between what the query and the tool mean (meaning.go).
//
// use is how much of the query stood in searches after which the caller used the tool (usage.go).
//
// Of several wordings the words are merged, half the best and half the average, and the
// nearest one counts.
const (
	shareMeaning = float32(0.6) // tuned with the sets tuning, heldout and everyday of bench/search
	shareUse     = float32(1)
	liftOfExact  = float32(3) // more than the rest can be, but for priorities

	leastAlone = float32(0.4) // nearness of a tool that shares no word with the query

	// A search of which no tool covers as much, nor is as near, is answered by nothing well.
	leastFit  = float32(0.4)
	leastNear = float32(0.5)
)

// Weights and limits of scores.
const (
	factorVague     = float32(0.5) // of a special tool of which no word matched that says what it is about
	weightNamed     = float32(1.2) // of a word that says what the tool is about: more than a mention in its description
	coverageMinimum = float32(0.3) // of a score when almost no word matched
	mostQueryWords  = 24
	mostPrefixed    = 2 // words of a query of which the last may be a beginning, although it is a word
)

// score scores all tools by one text; nil if it has no words.
func (s *search) score(text string) []float32 {
	wanted := terms(text, mostQueryWords)
	if len(wanted) == 0 {
		return nil
	}
	probes := make([]probe, len(wanted))
	total, asked := float32(0), float32(0)
	for i, t := range wanted {
		asked += t.weight
		probes[i] = s.probe(t, i == len(wanted)-1 && len(wanted) <= mostPrefixed)
		total += probes[i].importance
	}
	all := make([]float32, s.tools)
	whole := wholeText(text)
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
	asked := p.Index.asked(probes, n)
	for i := range scores {
		if scores[i] == 0 {
			continue
		}
		m := &sum.matched[i]
		covered = max(covered, m.covered)
		scores[i] *= coverageMinimum + (1-coverageMinimum)*m.covered/total
		scores[i] *= p.Index.aptness(i, asked, m.covered/total)
		if p.Index.names[i] == whole {
			m.named = true
		}
		if p.Special && !m.named {
			scores[i] *= factorVague
		}
		s.named[s.offsets[n]+i] = s.named[s.offsets[n]+i] || m.named
		scores[i] *= p.liking(i)
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
	covered float32 // importance of the terms
	named   bool    // one of them is a noun and says what the tool is about
	factor  float32 // of the strongest match of the probe under way
	gain    float32
	all     float32 // gain of all matches of the probe under way
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
			t.named = t.named || m.factor == 1 && p.noun && post.weight >= weightNamed
		}
	}
	for _, m := range matches {
		for _, post := range x.postings[m.word] {
			sum.finish(post.tool, p.importance)
		}
	}
}

// meet notes one match of the probe under way.
func (m *matched) meet(factor, gain float32) {
	m.all += gain
	if gain > m.gain {
		m.factor, m.gain = factor, gain
	}
}

// finish adds the matches of the probe under way to a tool's score, once.
func (s sums) finish(tool uint32, importance float32) {
	if t := &s.matched[tool]; t.gain > 0 {
		s.scores[tool] += t.gain + shareOthers*(t.all-t.gain)
		t.covered += t.factor * importance
		t.gain, t.all = 0, 0
	}
}

// liking is a factor of a tool's scores, whatever the query: each point of its priority adds
// a twentieth, so that ten points lift a tool over matches half as good again, and tools that
// should no longer be used come late.
func (p *Part) liking(tool int) float32 {
	return max(0.25, min(1+float32(p.Tools[tool].Priority)/20, 4)) * p.Index.aged[tool]
}

func agedOf(info *tool.Info) float32 {
	if info.Deprecated() {
		return factorDeprecated
	}
	return 1
}

// Weights and limits of matches.
const (
	factorPrefix   = float32(0.7) // a word that matches by its beginning
	factorEdit     = float32(0.6) // per edit
	mostExpansions = 64           // indexed words that one query word may match, per namespace
	shortestPrefix = 2
)

// probe is one term of the query: the indexed words it matches, per part, and how much it
// counts.
type probe struct {
	matches    [][]match
	importance float32
	noun       bool // it says something, and is no verb of tools
}

// match is an indexed word that the term matches.
type match struct {
	word   int
	factor float32 // how sure it is that the same is meant
	gain   float32 // of the score, per weight in the tool
}

// probe looks a term up, and says how much it counts.
func (s *search) probe(t term, prefixed bool) probe {
	p := probe{matches: make([][]match, len(s.parts))}
	p.noun = t.stem != "" && t.weight == 1 && !vocabulary().verbs[t.stem]
	if s.lookUp(&p, t, prefixed) { // words that no tool contains are data
		p.importance = t.weight
	}
	return p
}

// lookUp adds what a term matches, and reports whether there is anything: the term as it is, as
// a beginning if it may be one, other words of the same meaning, and if nothing matches, words
// with typing mistakes.
func (s *search) lookUp(p *probe, t term, prefixed bool) bool {
	found := s.typed(p, t, prefixed)
	found = s.alike(p, t) || found
	return found || t.stem != "" && s.misspelt(p, t)
}

// typed adds the word itself, and words that begin with it if it may be a beginning or is none of
// the words. It reports whether the word is there or may be a beginning.
func (s *search) typed(p *probe, t term, prefixed bool) (found bool) {
	if t.stem == "" {
		return false
	}
	holders := s.collect(p, t.weight, 1, func(x *Index) []int { return x.exact(t.stem) }, 0)
	if (prefixed || holders == 0) && len(t.stem) >= shortestPrefix {
		found = s.collect(p, t.weight, factorPrefix, func(x *Index) []int { return x.beginning(t.stem) }, holders) > 0 && prefixed
	}
	return holders > 0 || found
}

// alike adds the words that mean about the same, and reports whether there are any.
func (s *search) alike(p *probe, t term) (found bool) {
	for _, other := range t.means {
		found = s.collect(p, t.weight, other.factor, func(x *Index) []int { return x.exact(other.stem) }, 0) > 0 || found
	}
	return found
}

// misspelt adds the words with the fewest typing mistakes, and reports whether there are any.
func (s *search) misspelt(p *probe, t term) bool {
	factor := float32(1)
	for edits := range editsAllowed(len(t.typed)) {
		factor *= factorEdit
		if s.collect(p, t.weight, factor, func(x *Index) []int { return x.misspelt(t, edits+1) }, 0) > 0 {
			return true
		}
	}
	return false
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

// Weights of titles.
const (
	titleMinimum = float32(0.75) // of a score when the query asks for nothing of the title
	factorTitle  = float32(2)    // of a title that says what the query says, and no more
	weightVerb   = float32(0.75) // of a verb in a title, compared with a noun

	factorDeprecated = float32(0.5)
)

// titleWord is a word of a tool's title that says something.
type titleWord struct {
	word uint32
	verb bool
}

// title notes the words of a tool's title, or of its name if it has none.
func (b *builder) title(info *tool.Info) {
	start := len(b.titles)
	words(cmp.Or(info.Title, info.Name), func(word string) {
		root := stem(word)
		one := titleWord{b.id(root), vocabulary().verbs[root]}
		if !filler[word] && !slices.Contains(b.titles[start:], one) {
			b.titles = append(b.titles, one)
		}
	})
}

// titleOf returns the words of a tool's title.
func (x *Index) titleOf(tool int) []titleWord {
	start := uint32(0)
	if tool > 0 {
		start = x.ends[tool-1]
	}
	return x.titles[start:x.ends[tool]]
}

// asked is how surely the words of the index are meant by a query.
func (x *Index) asked(probes []probe, part int) []float32 {
	sure := make([]float32, len(x.words))
	for i := range probes {
		for _, m := range probes[i].matches[part] {
			sure[m.word] = max(sure[m.word], m.factor)
		}
	}
	return sure
}

// titleShare is how much of a tool's title the query asks for, from 0 to 1: a tool that
// does just what is asked comes before one that does something more special. Who asks for
// things need not say that they are to be listed.
func (x *Index) titleShare(tool int, asked []float32) float32 {
	sum, total := float32(0), float32(0)
	for _, t := range x.titleOf(tool) {
		weight := float32(1)
		if t.verb {
			weight = weightVerb
		}
		sum += weight * asked[t.word]
		total += weight
	}
	if total == 0 {
		return 0
	}
	return sum / total
}

// aptness is how well a tool fits beyond the words that match, by how much of its title the query
// asks for. covered is how much of the query the tool covers.
func (x *Index) aptness(tool int, asked []float32, covered float32) float32 {
	share := x.titleShare(tool, asked)
	same := share * covered
	return (titleMinimum + (1-titleMinimum)*share) * (1 + (factorTitle-1)*same*same*same)
}

// ranked is a tool with its score; part and tool say which, in catalog order.
type ranked struct {
	score      float32
	part, tool int
}

// offer adds a tool to the best so far, which are best first; equal ones stay in catalog order.
func (s *search) offer(best []ranked, r ranked) []ranked {
	at := sort.Search(len(best), func(i int) bool { return best[i].score < r.score })
	if at == s.limit {
		return best
	}
	best = slices.Insert(best, at, r)
	return best[:min(len(best), s.limit)]
}
