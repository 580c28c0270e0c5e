// Package search ranks tools by how well their definitions match a query. It uses no
// model: it weighs words by where they appear and by how rare they are.
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
	intent  intent                // of the text under way
	asked   []asked               // of the part under way, by word
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
