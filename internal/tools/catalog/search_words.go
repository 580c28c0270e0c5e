package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestWord bounds one indexed word, in bytes: longer ones are data, not words.
const longestWord = 48

// words splits text into lower-case words and calls emit for each: at everything that
// is neither letter nor digit, and where camelCase or an ACRONYMWord changes case.
// Scripts written without spaces give a word per character.
func words(text string, emit func(word string)) {
	start := -1 // where the word under way begins
	var before, last rune
	flush := func(end int) {
		if start >= 0 && end-start <= longestWord {
			emit(strings.ToLower(text[start:end]))
		}
		start = -1
	}
	for i, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
		case spaceless(r):
			flush(i)
			emit(string(r))
		case start < 0:
			start = i
		case unicode.IsUpper(r) && !unicode.IsUpper(last):
			flush(i)
			start = i
		case unicode.IsLower(r) && unicode.IsUpper(last) && unicode.IsUpper(before):
			turn := i - utf8.RuneLen(last)
			flush(turn)
			start = turn
		}
		before, last = last, r
	}
	flush(len(text))
}

// spaceless tells whether r belongs to a script that puts no spaces between words.
func spaceless(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// stem removes the most common endings of an English word: files and file, creating,
// created and create become one. The result need not be a word; it is the same for
// query and index.
func stem(word string) string {
	word = singular(word)
	for _, ending := range []string{"ing", "ed"} {
		if root, found := strings.CutSuffix(word, ending); found && len(root) >= 3 && strings.ContainsAny(root, "aeiouy") {
			word = undoubled(root)
			break
		}
	}
	if len(word) >= 5 && word[len(word)-1] == 'e' {
		return word[:len(word)-1]
	}
	return word
}

func singular(word string) string {
	n := len(word)
	switch {
	case n < 4 || word[n-1] != 's':
		return word
	case strings.HasSuffix(word, "ies"):
		return word[:n-3] + "y"
	case hasAnySuffix(word, "sses", "shes", "ches", "xes"):
		return word[:n-2]
	case hasAnySuffix(word, "ss", "us", "is"):
		return word
	default:
		return word[:n-1]
	}
}

// undoubled makes run of runn, from running.
func undoubled(root string) string {
	n := len(root)
	if root[n-1] == root[n-2] && !strings.ContainsRune("lsz", rune(root[n-1])) {
		return root[:n-1]
	}
	return root
}

func hasAnySuffix(word string, suffixes ...string) bool {
	for _, s := range suffixes {
		if strings.HasSuffix(word, s) {
			return true
		}
	}
	return false
}

// filler are the words of a question that say nothing about the tool.
var filler = wordSet(`a an and the to of for in on at by from with as or that which this these those how do does did
	can could would should i me my we our you your it its is are was were be been am has have will what when where why who
	some any something somebody someone tool want need please let us there here one into about s`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// queryWord is a word of the query as it was typed, and its stem.
type queryWord struct {
	typed, stem string
}

// queryWords are the words of a query with distinct stems, in their order and at
// most limit. Filler is left out unless there is nothing else.
func queryWords(query string, limit int) []queryWord {
	var all, telling []queryWord
	seen := map[string]bool{}
	words(query, func(typed string) {
		word := queryWord{typed, stem(typed)}
		if seen[word.stem] || len(all) >= limit {
			return
		}
		seen[word.stem] = true
		all = append(all, word)
		if !filler[typed] {
			telling = append(telling, word)
		}
	})
	if len(telling) > 0 {
		return telling
	}
	return all
}
