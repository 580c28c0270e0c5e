package search

import "math"

// Weights and limits of matches.
const (
	factorPrefix   = float32(0.7) // a word that matches by its beginning
	factorOuter    = float32(0.7) // a word that is not about the tool itself
	factorAround   = float32(0.3) // of the importance of a word that is about no tool itself
	factorEdit     = float32(0.6) // per edit
	mostExpansions = 64           // indexed words that one query word may match, per namespace
	shortestPrefix = 2
)

// probe is one term of the query: the indexed words it matches, per part, and how much it
// counts.
type probe struct {
	matches    [][]match
	used       [][]used // nil: no tool was used after searches with it
	importance float32
	noun       bool // it is no verb of tools
	specific   bool // nor a word that says little
	form       wordForm
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
	p := probe{matches: make([][]match, len(s.parts)), form: formOf(t.typed)}
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
