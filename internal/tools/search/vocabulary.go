package search

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Factors of a match with other words than those of the query, by how sure it is that they
// mean the same.
const (
	factorPhrase   = float32(0.8)
	factorEveryday = float32(0.65)
	factorRelated  = float32(0.55)
	factorWordNet  = float32(0.35)
)

// The data: how people say what tools do, synonyms made by tools/wordlist, and words that
// say little.
var (
	//go:embed data/everyday.txt
	everydayText string
	//go:embed data/wordnet.txt
	wordnetText string
	//go:embed data/common.txt
	commonText string
	//go:embed data/toolwords.txt
	toolWordsText string
)

// alternative is a word that means about the same as one of the query.
type alternative struct {
	stem   string
	factor float32
}

// phrase is several words that mean something together.
type phrase struct {
	words []string // stems
	split bool     // other words may stand before the last one, as in "throw it away"
	means []alternative
}

// words of English that the search knows.
type knownWords struct {
	irregular map[string]string        // form of a word: the word
	single    map[string][]alternative // by stem
	phrases   map[string][]phrase      // by the stem of the first word, longest first
	common    map[string]bool          // as they are typed
	verbs     map[string]bool          // stems of what tools do
	nouns     map[string]bool          // and of what they do it with
}

// vocabulary reads the data once.
var vocabulary = sync.OnceValue(func() *knownWords {
	v := &knownWords{
		irregular: map[string]string{}, single: map[string][]alternative{}, phrases: map[string][]phrase{},
		common: map[string]bool{}, verbs: map[string]bool{}, nouns: map[string]bool{},
	}
	for line := range dataLines(wordnetText) {
		if form, word, ok := strings.Cut(line, " < "); ok {
			v.irregular[form] = word
		}
	}
	for line := range dataLines(commonText) {
		maps.Copy(v.common, wordSet(line))
	}
	for line := range dataLines(toolWordsText) {
		v.addWords(line, "verbs: ", v.verbs)
		v.addWords(line, "nouns: ", v.nouns)
	}
	v.meanings(everydayText, factorEveryday)
	for _, line := range thesaurus {
		for word := range strings.FieldsSeq(line) {
			v.means(word, line, factorRelated)
		}
	}
	v.meanings(wordnetText, factorWordNet)
	for _, list := range v.phrases {
		slices.SortStableFunc(list, func(a, b phrase) int { return len(b.words) - len(a.words) })
	}
	return v
})

// addWords reads a line "verbs: word word".
func (v *knownWords) addWords(line, kind string, to map[string]bool) {
	if list, ok := strings.CutPrefix(line, kind); ok {
		for word := range strings.FieldsSeq(list) {
			to[v.stem(word)] = true
		}
	}
}

// stem is as the function, which needs a complete vocabulary.
func (v *knownWords) stem(word string) string {
	if base, ok := v.irregular[word]; ok {
		word = base
	}
	return regularStem(word)
}

// meanings reads lines "phrase / phrase > word word".
func (v *knownWords) meanings(text string, factor float32) {
	for line := range dataLines(text) {
		if phrases, meaning, ok := strings.Cut(line, " > "); ok {
			for one := range strings.SplitSeq(phrases, " / ") {
				v.means(one, meaning, factor)
			}
		}
	}
}

// means adds what a word or a phrase means.
func (v *knownWords) means(text, meaning string, factor float32) {
	var stems []string
	for word := range strings.FieldsSeq(text) {
		stems = append(stems, v.stem(word))
	}
	if len(stems) > 1 && factor > factorWordNet {
		factor = factorPhrase
	}
	var means []alternative
	for word := range strings.FieldsSeq(meaning) {
		if s := v.stem(word); s != stems[0] || len(stems) > 1 {
			means = append(means, alternative{s, factor})
		}
	}
	if len(stems) == 1 {
		v.single[stems[0]] = addAlternatives(v.single[stems[0]], means)
		return
	}
	last := stems[len(stems)-1]
	v.phrases[stems[0]] = append(v.phrases[stems[0]], phrase{stems, len(stems) == 2 && particles[last], means})
}

// addAlternatives appends those that are new; earlier ones are surer.
func addAlternatives(to, more []alternative) []alternative {
	for _, m := range more {
		if !slices.ContainsFunc(to, func(a alternative) bool { return a.stem == m.stem }) {
			to = append(to, m)
		}
	}
	return to
}

// particles make another verb of the one before.
var particles = wordSet("out away off up down back on in into onto over together aside forward apart")

// dataLines are the lines of a file without comments.
func dataLines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && line[0] != '#' && !yield(line) {
				return
			}
		}
	}
}
