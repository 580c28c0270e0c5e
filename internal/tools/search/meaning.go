package search

import (
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/definition"
	"github.com/luanette/luanette/internal/tools/search/meaning"
)

// Weights and limits of what is read of a tool for its meaning. What is not named counts one.
const (
	weightRest       = float32(0.3) // of what follows the first sentence, and of parameters
	weightNamespace  = float32(0.3)
	longestRest      = 1500
	shortestSentence = 15
	longestSentence  = 300
)

// weighed is a text with the weight of its words.
type weighed struct {
	text   string
	weight float32
}

// meant is what texts mean: the sum of the words that say something and are in the table, each
// once with its largest weight.
func meant(texts ...weighed) (v meaning.Vector) {
	weights := map[int]float32{}
	for _, t := range texts {
		EachWord(t.text, func(word string) {
			if row, known := meaning.Words.Find(word); known && !filler[word] && !isNumber(word) {
				weights[row] = max(weights[row], t.weight)
			}
		})
	}
	for _, row := range slices.Sorted(maps.Keys(weights)) {
		meaning.Words.Add(&v, row, weights[row])
	}
	v.Normalize()
	return v
}

// meantBy is what a tool means.
func meantBy(info *tool.Info) meaning.Vector {
	first, rest := firstSentence(strings.Join(strings.Fields(cut(info.Description, longestText)), " "))
	names := strings.Join(definition.ReadSchema(info.Input).Names, " ")
	return meant(weighed{info.Name, 1}, weighed{info.Title, 1}, weighed{first, 1},
		weighed{cut(rest, longestRest), weightRest}, weighed{names, weightRest}, weighed{info.Space, weightNamespace})
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

// addMeaning adds to the scores how near the tools are to the nearest wording.
func (s *search) addMeaning(scores []float32, texts []string) {
	near := s.nearness(texts)
	s.near = slices.Max(append(near, 0))
	for n := range s.parts {
		p := &s.parts[n]
		for i := range p.Tools {
			if at := s.offsets[n] + i; near[at] >= leastAlone || scores[at] > 0 && near[at] > 0 {
				scores[at] += shareMeaning * p.liking(i) * near[at] / s.near
			}
		}
	}
}

// nearness is how near each tool is to the nearest wording. Special tools must be named, too:
// much of what they say of themselves is about tools in general.
func (s *search) nearness(texts []string) []float32 {
	near := make([]float32, s.tools)
	for _, text := range texts {
		query := meant(weighed{text, 1})
		for n, p := range s.parts {
			for i := range p.Index.vectors {
				if at := s.offsets[n] + i; !p.Special || s.named[at] {
					near[at] = max(near[at], query.Dot(&p.Index.vectors[i]))
				}
			}
		}
	}
	return near
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
		_, inTable := meaning.Words.Find(word)
		if !elsewhere[word] && (inTable || filler[word] || s.has(stem(word))) {
			known++
		}
	})
	return words > 1 && float64(known) <= mostForeign*float64(words)
}

// has reports whether a word is in a definition.
func (s *search) has(word string) bool {
	return slices.ContainsFunc(s.parts, func(p Part) bool { return p.Index.exact(word) != nil })
}
