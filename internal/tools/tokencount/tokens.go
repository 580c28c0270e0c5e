// Package tokencount estimates how many tokens of a model's context a text takes,
// without a model's vocabulary. It counts as tokenizers of current models do: a word
// with the space before it is one token, a long word takes one more for every few
// letters, digits are grouped by three and adjacent punctuation by four. For English,
// JSON and code the sum is close to what the public vocabularies give, and rather more
// than less; docs/code_mode.md describes the measurement.
package tokencount

import (
	"unicode"
	"unicode/utf8"
)

// Characters per token.
const (
	wordLetters = 10 // of a word; each further token takes
	moreLetters = 5
	digits      = 3
	marks       = 4
	spaces      = 12 // of indentation
)

// Estimate returns about how many tokens a text takes.
func Estimate(text string) int {
	n := 0
	for len(text) > 0 {
		length, cost := piece(text)
		text = text[length:]
		n += cost
	}
	return n
}

// piece is the length of the next token group of a text, and the tokens it takes.
func piece(text string) (length, cost int) {
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case r == ' ' && len(text) > 1 && isWord(text[1]):
		length, cost = word(text[1:])
		return length + 1, cost
	case r == ' ' && len(text) > 1 && isMark(text[1]):
		length, cost = run(text[1:], marks, isMark)
		return length + 1, cost
	case r < utf8.RuneSelf && unicode.IsLetter(r):
		return word(text)
	case r < utf8.RuneSelf && unicode.IsDigit(r):
		return run(text, digits, func(c byte) bool { return c >= '0' && c <= '9' })
	case r < utf8.RuneSelf && isSpace(text[0]):
		return run(text, spaces, isSpace)
	case r < utf8.RuneSelf:
		return run(text, marks, isMark)
	case unicode.IsLetter(r) && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai):
		return otherWord(text)
	default:
		return size, 1
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// word is a run of letters up to a change of case.
func word(text string) (length, cost int) {
	for length < len(text) && isWord(text[length]) {
		if length > 0 && text[length] <= 'Z' && text[length-1] >= 'a' {
			break
		}
		length++
	}
	if length <= wordLetters {
		return length, 1
	}
	return length, 1 + (length-wordLetters+moreLetters-1)/moreLetters
}

// otherWord is a word of another alphabet: two letters a token.
func otherWord(text string) (length, cost int) {
	letters := 0
	for length < len(text) {
		r, size := utf8.DecodeRuneInString(text[length:])
		if !unicode.IsLetter(r) {
			break
		}
		length += size
		letters++
	}
	return length, (letters + 1) / 2
}

func run(text string, each int, in func(c byte) bool) (length, cost int) {
	for length < len(text) && in(text[length]) {
		length++
	}
	length = max(length, 1)
	return length, (length + each - 1) / each
}

func isWord(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isMark(c byte) bool {
	return c < utf8.RuneSelf && c > ' ' && !isWord(c) && (c < '0' || c > '9')
}
