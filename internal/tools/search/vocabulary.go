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
)

// The data: how people say what tools do, words that say little, and what tools do.
var (
	//go:embed data/everyday.txt
	everydayText string
	//go:embed data/thesaurus.txt
	thesaurusText string
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

// knownWords are words of English that the search knows.
type knownWords struct {
	means  map[string][]alternative // of a word or phrase, as stems
	begins map[string]int           // how many words the longest phrase has that begins with a stem
	common map[string]bool          // as they are typed
	verbs  map[string]bool          // stems of what tools do
}

// vocabulary reads the data once.
var vocabulary = sync.OnceValue(func() *knownWords {
	v := &knownWords{means: map[string][]alternative{}, begins: map[string]int{}, common: map[string]bool{}, verbs: map[string]bool{}}
	for _, line := range dataLines(commonText) {
		maps.Copy(v.common, wordSet(line))
	}
	for _, line := range dataLines(toolWordsText) {
		for word := range strings.FieldsSeq(line) {
			v.verbs[stem(word)] = true
		}
	}
	for _, line := range dataLines(everydayText) {
		phrases, meaning, _ := strings.Cut(line, " > ")
		for one := range strings.SplitSeq(phrases, " / ") {
			v.add(one, meaning, factorEveryday)
		}
	}
	for _, line := range dataLines(thesaurusText) {
		for word := range strings.FieldsSeq(line) {
			v.add(word, line, factorRelated)
		}
	}
	return v
})

// add adds what a word or a phrase means, unless a line before says so.
func (v *knownWords) add(text, meaning string, factor float32) {
	stems := strings.Fields(text)
	for i, word := range stems {
		stems[i] = stem(word)
	}
	if len(stems) > 1 {
		factor = factorPhrase
	}
	key := strings.Join(stems, " ")
	for word := range strings.FieldsSeq(meaning) {
		other := stem(word)
		isKnown := func(a alternative) bool { return a.stem == other }
		if other != key && len(v.means[key]) < mostRelated && !slices.ContainsFunc(v.means[key], isKnown) {
			v.means[key] = append(v.means[key], alternative{other, factor})
		}
	}
	v.begins[stems[0]] = max(v.begins[stems[0]], len(stems))
}

// longest returns how many words the longest phrase has with which a text begins, and what it
// means. A word that is no phrase counts one.
func (v *knownWords) longest(stems []string) (length int, means []alternative) {
	for length = min(v.begins[stems[0]], len(stems)); length > 1; length-- {
		if means = v.means[strings.Join(stems[:length], " ")]; means != nil {
			return length, means
		}
	}
	return 1, v.means[stems[0]]
}

// weightCommon is the weight of words that say little.
const weightCommon = float32(0.3)

// weight is how much a word counts, by what it says: nothing, little or something.
func (v *knownWords) weight(word string) float32 {
	switch {
	case filler[word] || isNumber(word):
		return 0
	case v.common[word]:
		return weightCommon
	}
	return 1
}

// dataLines are the lines of a file without comments.
func dataLines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" || line[0] == '#' })
}

// mostRelated is how many words of the same meaning a word may have.
const mostRelated = 16

// editsAllowed is how many typing mistakes a word of that length may contain
// and still be recognised.
func editsAllowed(length int) int {
	switch {
	case length < 4:
		return 0
	case length < 8:
		return 1
	default:
		return 2
	}
}
