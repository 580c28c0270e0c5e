// Package search ranks tools by how well their definitions match a query: by the words that
// both have, and by what their words mean. score.go has the formula.
package search

import (
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
)

// longestQuery is how much of a text is read, in bytes.
const longestQuery = 4096

// DefaultHits is how many tools a search returns when it does not say.
const DefaultHits = 10

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
	// Distinct are the words of the name that tell it from similar tools of its namespace
	// among the hits; nil if there are none.
	Distinct []string
}

// Result is what a search found.
type Result struct {
	Hits  []Hit
	Total int // how many tools matched
	// Weak says that no tool fits well: the hits are the nearest ones.
	Weak bool
	// Foreign says that most words are of no language that the definitions or the table of
	// meanings have.
	Foreign bool
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
}

// Run finds tools by their definitions, best first; equal ones are in the order of parts,
// so that the result is stable.
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
	near    float32               // how near the nearest tool is by meaning
	asked   []float32             // how surely a word of the part under way is meant
	share   map[[2]uint32]float32 // of the text under way that a tool was used after, by part and tool
}

func (s *search) run(texts []string) Result {
	var read []string
	var all [][]float32
	for _, text := range texts[:min(len(texts), MostTexts)] {
		text = withKinds(cut(text, longestQuery))
		if one := s.score(text); one != nil {
			read, all = append(read, text), append(all, one)
		}
	}
	if len(all) == 0 {
		return s.everything()
	}
	sum := s.merge(all)
	s.addMeaning(sum, read)
	s.liftExact(sum, read)
	return s.result(sum, read)
}

// result makes the hits of the best scores.
func (s *search) result(scores []float32, texts []string) Result {
	s.dropVague(scores)
	var best []ranked
	r := Result{}
	for n, p := range s.parts {
		for i := range p.Tools {
			if at := s.offsets[n] + i; scores[at] > 0 {
				r.Total++
				best = s.offer(best, ranked{scores[at], n, i})
			}
		}
	}
	for _, k := range best {
		r.Hits = append(r.Hits, Hit{Info: s.parts[k.part].Tools[k.tool], Score: float64(k.score)})
	}
	r.Weak = s.fit < leastFit && s.near < leastNear
	r.Foreign = r.Weak && s.isForeign(texts)
	distinguish(r.Hits)
	r.Spaces = s.spaces(scores, r.Hits)
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

// term is one word of a query, or a phrase that means something together.
type term struct {
	typed  string // as it was typed, lower case; "" for a phrase
	stem   string // "" for a phrase
	weight float32
	means  []alternative
}

// weightCommon is the weight of words that say little.
const weightCommon = float32(0.3)

// token is one word as it stands in a query.
type token struct {
	typed, stem string
	used        bool // by a phrase
}

// terms are the words and phrases of a query, in their order and at most limit. Words
// that say nothing are left out unless there is nothing else.
func terms(query string, limit int) []term {
	v := vocabulary()
	tokens := tokenize(query, 4*limit)
	var found, ignored []term
	seen := map[string]bool{}
	for i := range tokens {
		if p := v.phraseAt(tokens, i); p != nil {
			found = append(found, term{weight: 1, means: p.means})
		}
		t := tokens[i]
		if t.used || seen[t.stem] {
			continue
		}
		seen[t.stem] = true
		if one := v.wordTerm(t); one.weight > 0 {
			found = append(found, one)
		} else {
			one.weight = 1
			ignored = append(ignored, one)
		}
	}
	if len(found) == 0 {
		found = ignored
	}
	return found[:min(len(found), limit)]
}

func tokenize(query string, limit int) []token {
	var tokens []token
	words(apostrophes.Replace(query), func(typed string) {
		if len(tokens) < limit {
			tokens = append(tokens, token{typed: typed, stem: stem(typed)})
		}
	})
	return tokens
}

var apostrophes = strings.NewReplacer("'", "", "’", "")

// wordTerm is a word as a term, of weight 0 if it says nothing.
func (v *knownWords) wordTerm(t token) term {
	weight := float32(1)
	switch {
	case filler[t.typed] || isNumber(t.typed):
		weight = 0
	case v.common[t.typed]:
		weight = weightCommon
	}
	return term{typed: t.typed, stem: t.stem, weight: weight, means: v.single[t.stem]}
}

// phraseAt returns the longest phrase that begins at a token, and marks its tokens as
// used; nil if there is none.
func (v *knownWords) phraseAt(tokens []token, at int) *phrase {
	if tokens[at].used {
		return nil
	}
	list := v.phrases[tokens[at].stem]
	for i := range list {
		p := &list[i]
		if matchesAt(tokens[at:], p.words) {
			for j := range p.words {
				tokens[at+j].used = true
			}
			return p
		}
	}
	return nil
}

func matchesAt(tokens []token, words []string) bool {
	if len(tokens) < len(words) {
		return false
	}
	for i, word := range words {
		if tokens[i].stem != word || tokens[i].used {
			return false
		}
	}
	return true
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
// wordings that agree count more. The best score becomes one.
func (s *search) merge(all [][]float32) []float32 {
	sum := make([]float32, s.tools)
	for _, one := range all {
		normalize(one, 1)
	}
	for i := range sum {
		best, total := float32(0), float32(0)
		for _, one := range all {
			best, total = max(best, one[i]), total+one[i]
		}
		sum[i] = (best + total/float32(len(all))) / 2
	}
	normalize(sum, 1)
	return sum
}
