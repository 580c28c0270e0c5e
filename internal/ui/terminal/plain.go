package terminal

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain is text that is safe to write to a terminal: no escape sequences, no line
// breaks, no invisible characters that change the direction of text. All text on the
// screen has this type. A plain comes from JSON or from clean.
type plain string

// maxPlain is the longest text in bytes; a hostile server may send more.
const maxPlain = 4 << 10

// UnmarshalJSON cleans a JSON string. Other values stay as JSON text.
func (p *plain) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		text = string(raw)
	}
	*p = clean(text)
	return nil
}

// clean returns text as one safe line.
func clean(text string) plain {
	if len(text) > maxPlain {
		text = text[:maxPlain] + "…"
	}
	return plain(strings.Map(fewMarks(), strings.ToValidUTF8(text, string(utf8.RuneError))))
}

// maxMarks is how many combining marks may follow a character.
const maxMarks = 2

// fewMarks replaces harmful characters and drops combining marks after the first ones:
// terminals disagree about the width of long sequences.
func fewMarks() func(rune) rune {
	marks := 0
	return func(r rune) rune {
		if !unicode.Is(unicode.M, r) {
			marks = 0
			return harmless(r)
		}
		if marks++; marks > maxMarks || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return r
	}
}

// harmless replaces or removes a character that a terminal could interpret.
func harmless(r rune) rune {
	switch {
	case unicode.IsSpace(r): // line breaks, line and paragraph separators
		return ' '
	case unicode.IsControl(r):
		return utf8.RuneError
	case unicode.Is(unicode.Cf, r): // invisible: direction marks, joiners, tags
		return -1
	}
	return r
}

// lines splits a text into safe lines.
func lines(text string) []plain {
	const most = 2000
	var list []plain
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if len(list) == most {
			return append(list, "…")
		}
		list = append(list, clean(strings.ReplaceAll(line, "\t", "    ")))
	}
	return list
}
