package search

import (
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/search/meaning"
)

// Weights and limits of what is read of a tool for its meaning. What is not named counts one.
const (
	weightRest       = float32(0.2) // of what follows the first sentence, and of parameters
	weightNamespace  = float32(0.3)
	longestRest      = 1500
	shortestSentence = 15
	longestSentence  = 300
)

// vectorOf is what a tool means: the sum of its words, each once.
func vectorOf(info *tool.Info) (v meaning.Vector) {
	weights := map[int]float32{}
	add := func(text string, weight float32) {
		eachMeaning(text, func(row int) { weights[row] = max(weights[row], weight) })
	}
	first, rest := firstSentence(strings.Join(strings.Fields(cut(info.Description, longestText)), " "))
	for _, text := range []string{info.Name, info.Title, first} {
		add(text, 1)
	}
	add(cut(rest, longestRest), weightRest)
	add(info.Space, weightNamespace)
	for _, name := range readSchema(info.Input).names {
		add(name, weightRest)
	}
	for _, row := range slices.Sorted(maps.Keys(weights)) {
		v.Add(row, weights[row])
	}
	v.Normalize()
	return v
}

// eachMeaning calls use for the words that say something and are in the table.
func eachMeaning(text string, use func(row int)) {
	EachWord(text, func(word string) {
		if row, known := meaning.Find(word); known && !filler[word] && !isNumber(word) {
			use(row)
		}
	})
}

func firstSentence(text string) (first, rest string) {
	for i := shortestSentence; i < min(len(text), longestSentence); i++ {
		if strings.IndexByte(".!?", text[i]) >= 0 && (i+1 == len(text) || text[i+1] == ' ') {
			return text[:i+1], text[i+1:]
		}
	}
	first = cut(text, longestSentence)
	return first, text[len(first):]
}

// addMeaning adds to the scores how near the tools are to the nearest wording. Special tools
// must be named, too: much of what they say of themselves is about tools in general.
func (s *search) addMeaning(scores []float32, texts []string) {
	near := make([]float32, s.tools)
	for _, text := range texts {
		query := vectorOfQuery(text)
		s.raiseNearness(near, &query)
	}
	if s.near = slices.Max(append(near, 0)); s.near == 0 {
		return
	}
	for n := range s.parts {
		p := &s.parts[n]
		for i := range p.Tools {
			if at := s.offsets[n] + i; near[at] >= leastAlone || scores[at] > 0 && near[at] > 0 {
				scores[at] += shareMeaning * p.liking(i) * near[at] / s.near
			}
		}
	}
}

// vectorOfQuery is what a wording means: the sum of its words, each once.
func vectorOfQuery(text string) (v meaning.Vector) {
	seen := map[int]bool{}
	eachMeaning(text, func(row int) {
		if !seen[row] {
			seen[row] = true
			v.Add(row, 1)
		}
	})
	v.Normalize()
	return v
}

// raiseNearness raises how near the tools are to how near they are to the query.
func (s *search) raiseNearness(near []float32, query *meaning.Vector) {
	for n := range s.parts {
		p := &s.parts[n]
		for i := range p.Index.vectors {
			if at := s.offsets[n] + i; !p.Special || s.named[at] {
				near[at] = max(near[at], query.Dot(&p.Index.vectors[i]))
			}
		}
	}
}

// liftExact lifts the tools whose title, or else name, is what is asked for.
func (s *search) liftExact(scores []float32, texts []string) {
	for _, text := range texts {
		wanted := wholeText(text)
		for n := range s.parts {
			x := s.parts[n].Index
			for i := range x.whole {
				if wanted != "" && (x.whole[i] == wanted || x.names[i] == wanted) {
					scores[s.offsets[n]+i] += liftOfExact
				}
			}
		}
	}
}

// wholeText is a text as one word, without what says nothing, for comparing it as a whole.
func wholeText(text string) string {
	var b strings.Builder
	EachWord(text, func(word string) {
		if !filler[word] {
			b.WriteString(singular(word))
		}
	})
	return b.String()
}

// mostForeign is how many of the words may be known if a text is in another language.
const mostForeign = 0.5

// elsewhere are small words of other languages. The table has them from names.
var elsewhere = wordSet(`der das und ist mir mein meine meinen von zu den dem ein eine einen wie für ich bitte auf mit
	le les des une est mon mes je pour dans avec sur moi du la el los las una para por mi con en es de
	il di che gli della per sono os uma em meu minha het een van mijn voor`)

// isForeign reports whether at least half of the words of the texts are in no definition and not
// in the table of meanings, or small words of other languages.
func (s *search) isForeign(texts []string) bool {
	words, known := 0, 0
	EachWord(strings.Join(texts, " "), func(word string) {
		if isData(word) {
			return
		}
		words++
		_, inTable := meaning.Find(word)
		if !elsewhere[word] && (inTable || filler[word] || s.lexicon.has(stem(word))) {
			known++
		}
	})
	return words > 1 && float64(known) <= mostForeign*float64(words)
}
