package search

import "strings"

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
