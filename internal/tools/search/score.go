package search

import "strings"

// Weights and limits of scores.
const (
	factorVague     = float32(0.5) // of a special tool of which no specific word matched
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
	s.share = s.shareOf(wanted)
	s.intent = intentOf(text)
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
	query := s.ask(n, probes)
	defer s.answered(n, probes)
	for i := range scores {
		if scores[i] == 0 {
			continue
		}
		m := &sum.matched[i]
		covered = max(covered, m.covered)
		scores[i] *= coverageMinimum + (1-coverageMinimum)*m.covered/total
		scores[i] *= s.aptness(n, i, query, m.covered/total) * s.intent.suits(p.Index, &p.Tools[i])
		if p.Index.joined[i] == whole {
			scores[i] *= 2
			m.specific, m.named = true, true
		}
		if p.Special && !m.specific {
			scores[i] *= factorVague
		}
		s.named[s.offsets[n]+i] = s.named[s.offsets[n]+i] || m.named
		scores[i] *= preference(p.Tools[i].Priority) * p.Index.likings[i]
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
