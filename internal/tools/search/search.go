// Package search ranks tools by how well their definitions match a query: by the words that
// both have, and by what their words mean. score.go has the formula.
package search

import (
	"slices"

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
func Run(q Query, parts []Part) Result {
	if q.Limit <= 0 {
		q.Limit = DefaultHits
	}
	s := search{parts: parts, limit: q.Limit, used: q.Used}
	for _, p := range parts {
		s.offsets = append(s.offsets, s.tools)
		s.tools += len(p.Tools)
	}
	s.named = make([]bool, s.tools)
	return s.run(q.Texts)
}

// search is one query over the indexes of several namespaces.
type search struct {
	parts   []Part
	offsets []int // of each part in a list of all tools
	tools   int
	limit   int
	used    []Use
	named   []bool  // of each tool: a word matched that says what it is about
	fit     float32 // how much of a text the best tool covers by words, from 0 to 1
	near    float32 // how near the nearest tool is by meaning
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
	s.addUse(sum, read)
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

// terms are the words and phrases of a query, in their order and at most limit. Words
// that say nothing are left out unless there is nothing else.
func terms(query string, limit int) []term {
	v := vocabulary()
	var typed, stems []string
	EachWord(query, func(word string) {
		if len(typed) < 4*limit {
			typed, stems = append(typed, word), append(stems, stem(word))
		}
	})
	var found, ignored []term
	seen := map[string]bool{}
	for len(typed) > 0 {
		length, means := v.longest(stems)
		one := term{typed: typed[0], stem: stems[0], weight: v.weight(typed[0]), means: means}
		if length > 1 {
			one = term{weight: 1, means: means}
		}
		typed, stems = typed[length:], stems[length:]
		switch {
		case one.stem != "" && seen[one.stem]:
		case one.weight > 0:
			found = append(found, one)
		default:
			one.weight = 1
			ignored = append(ignored, one)
		}
		seen[one.stem] = true
	}
	if len(found) == 0 {
		found = ignored
	}
	return found[:min(len(found), limit)]
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
