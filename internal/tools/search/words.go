package search

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
// created and creation, colour and color become one. The result need not be a word; it is
// the same for query and index.
func stem(word string) string {
	if base, ok := vocabulary().irregular[word]; ok {
		word = base
	}
	return regularStem(word)
}

func regularStem(word string) string {
	word = singular(word)
	if root, found := strings.CutSuffix(word, "ship"); found && len(root) > 4 {
		word = root
	}
	for _, ending := range []string{"ing", "ed"} {
		if root, found := strings.CutSuffix(word, ending); found && len(root) >= 3 && strings.ContainsAny(root, "aeiouy") {
			word = undoubled(root)
			break
		}
	}
	if len(word) < 5 {
		return word
	}
	return american(word)
}

// american removes the differences between British and American spelling, and endings of
// nouns made of verbs.
func american(word string) string {
	for _, e := range [...][2]string{
		{"isation", "iz"}, {"ization", "iz"}, {"ise", "iz"}, {"ize", "iz"}, {"yse", "yz"}, {"our", "or"}, {"ogue", "og"}, {"tre", "ter"},
		{"scribe", "script"}, {"scrib", "script"}, {"ence", "ens"}, {"ense", "ens"}, {"amme", "am"}, {"ll", "l"},
	} {
		if root, found := strings.CutSuffix(word, e[0]); found && len(root) >= 3 {
			return root + e[1]
		}
	}
	if len(word) >= 8 && strings.HasSuffix(word, "tion") {
		return word[:len(word)-3]
	}
	return strings.TrimSuffix(word, "e")
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
var filler = wordSet(`a an and the to of for in on at by from with as or that this these those how do does did
	can could would should i me my we our you your it its is are was were be been am has have will what why
	some any something somebody someone tool want need please let us there here one into about s`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}
