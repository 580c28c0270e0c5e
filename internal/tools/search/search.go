// Package search ranks tools by how well their definitions match a query. It uses no
// model: it weighs words by where they appear and by how rare they are.
package search

import (
	"slices"
	"strings"
	"sync"

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

// term is one word of a query, or a phrase that means something together.
type term struct {
	typed  string // as it was typed, lower case; "" for a phrase
	stem   string // "" for a phrase
	weight float32
	means  []alternative
}

// Weights of words that say little, and of words that ask: these count by what they mean
// only.
const (
	weightCommon   = float32(0.3)
	weightQuestion = float32(1)
)

var questions = wordSet("which where who when")

// mostGap is how many words may stand within a phrase such as "throw it away".
const mostGap = 3

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
			found = append(found, v.phraseTerm(p, tokens, i))
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
	case questions[t.typed]:
		return term{weight: weightQuestion, means: v.single[t.stem]}
	case filler[t.typed]:
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
		if !p.split {
			continue
		}
		for gap := 1; gap <= mostGap && at+1+gap < len(tokens); gap++ {
			if tokens[at+1+gap].stem == p.words[1] && !tokens[at+1+gap].used {
				tokens[at].used, tokens[at+1+gap].used = true, true
				return p
			}
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

// phraseTerm is a phrase as a term. Words in it that say something by themselves count as
// well.
func (v *knownWords) phraseTerm(p *phrase, tokens []token, at int) term {
	t := term{weight: 1, means: p.means}
	for i := range p.words {
		if word := tokens[at+i]; word.used && word.stem == p.words[i] && !filler[word.typed] && !v.common[word.typed] && !v.verbs[word.stem] && !particles[word.typed] {
			t.means = addAlternatives([]alternative{{word.stem, 1}}, t.means)
		}
	}
	return t
}

// intent is what a query wants.
type intent int

// The intents.
const (
	unclear intent = iota
	asks           // for things that it names, without saying how they are got
	reads          // says how: list, show, find
	acts           // wants something done
)

// Weights of tools that do not suit the intent.
const (
	factorReadOnly = float32(0.6) // of a tool that only reads, when something is to be done
	factorWriting  = float32(0.7) // of a tool that may write, when something is asked for
)

// Words that a query may begin with.
var (
	readingVerbs = sync.OnceValue(func() map[string]bool {
		set := map[string]bool{}
		for word := range wordSet(`list show display enumerate view see get read fetch retrieve search find lookup query locate check
			count compare download describe inspect browse identify preview watch look tell know`) {
			set[stem(word)] = true
		}
		return set
	})
	determiners = wordSet("a an the this that these those my our your his her their all every each another it them him me us everybody somebody")
	politely    = wordSet("please kindly can could would you i we want need to like let lets me us help now then just also id")
)

// intentOf tells the intent by the first word or phrase: a verb in its plain form wants
// something done. Other forms are things, as in labels of an issue.
func intentOf(text string) intent {
	v := vocabulary()
	tokens := tokenize(text, mostQueryWords)
	for i, t := range tokens {
		if politely[t.typed] {
			continue
		}
		next := ""
		if i+1 < len(tokens) {
			next = tokens[i+1].typed
		}
		return v.intentOf(tokens, i, determiners[next])
	}
	return unclear
}

// intentOf tells the intent by a token; determined says that a word such as "the" follows,
// which makes a verb of a word that may also be a noun: email an invoice, email of Anna.
func (v *knownWords) intentOf(tokens []token, at int, determined bool) intent {
	t := tokens[at]
	isNoun, verb := v.nouns[t.stem], t.stem
	if p := v.phraseAt(tokens, at); p != nil {
		isNoun, verb = false, p.means[0].stem
	} else if means := v.single[t.stem]; !isNoun && !v.verbs[verb] && len(means) > 0 {
		verb = means[0].stem
	}
	switch {
	case questions[t.typed] || !plainForm(t.typed):
		return asks
	case readingVerbs()[verb]:
		return reads
	case isNoun && determined || v.verbs[verb] && !isNoun:
		return acts
	case v.verbs[verb]: // build artifacts
		return unclear
	}
	return asks
}

// plainForm reports whether a word has none of the endings of other forms of a verb.
func plainForm(word string) bool {
	return !hasAnySuffix(word, "s", "ing", "ed") || hasAnySuffix(word, "ss")
}

// suits is the weight of a tool by the intent. Only servers that say of some tools that
// they only read say something about the others.
func (i intent) suits(x *Index, info *tool.Info) float32 {
	switch {
	case i == acts && info.Hints.ReadOnly:
		return factorReadOnly
	case (i == asks || i == reads) && x.readers && !info.Hints.ReadOnly:
		return factorWriting
	}
	return 1
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
