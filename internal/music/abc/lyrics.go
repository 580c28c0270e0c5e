package abc

import (
	"strings"
)

// lyrics assigns the syllables of w: lines to the notes before them. Consecutive
// lines are the verses of the same notes.
type lyrics struct {
	from  int // the first step that the next w: line may apply to
	verse int // number of w: lines since the last note
}

// music records a note at a step: later w: lines start there.
func (l *lyrics) music(at int) {
	if l.verse > 0 {
		l.from, l.verse = at, 0
	}
}

// maxVerses is the largest number of w: lines for the same notes.
const maxVerses = 32

// sing assigns a line of syllables to the notes since the last ones.
func (l *lyrics) sing(steps []step, text string) {
	if l.verse++; l.verse > maxVerses {
		return
	}
	at := l.from
	for _, syllable := range syllables(text) {
		if syllable == "|" {
			at = nextBar(steps, at)
			continue
		}
		for at < len(steps) && len(steps[at].sounds) == 0 {
			at++
		}
		if at >= len(steps) {
			return
		}
		if s := &steps[at]; syllable != "*" && syllable != "_" {
			for len(s.words) < l.verse-1 {
				s.words = append(s.words, "")
			}
			s.words = append(s.words, syllable)
		}
		at++
	}
}

// nextBar returns the step after the next bar line.
func nextBar(steps []step, at int) int {
	for ; at < len(steps); at++ {
		if steps[at].bar != nil && steps[at].bar.line {
			return at + 1
		}
	}
	return at
}

// syllables splits a w: line: one for each note, with "-" at the end if the word
// continues and " " if it ends. "_" holds the previous syllable, "*" leaves a
// note without one, "|" skips to the next bar.
func syllables(text string) []string {
	var list []string
	var word strings.Builder
	flush := func(end string) {
		if word.Len() > 0 {
			list = append(list, word.String()+end)
			word.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && text[i+1] == '-':
			word.WriteByte('-')
			i++
		case c == '~':
			word.WriteByte(' ')
		case c == '-' && word.Len() == 0 && len(list) > 0:
			list = append(list, "_") // a syllable held over another note
		case c == '-':
			flush("-")
		case c == ' ' || c == '\t':
			flush(" ")
		case c == '_' || c == '*' || c == '|':
			flush(" ")
			list = append(list, text[i:i+1])
		default:
			word.WriteByte(c)
		}
	}
	flush(" ")
	return list
}
