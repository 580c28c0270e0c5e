package terminal

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain is text that a terminal shows and does not obey: no escape sequences, no
// line breaks, nothing invisible that turns the direction of writing. Whatever is
// showsInline has this type, and there are two ways to get one: read it from JSON, or
// clean a string.
type plain string

// maxPlain bounds one text, for a hostile server may send a very long one.
const maxPlain = 4 << 10

// UnmarshalJSON cleans what it reads. What is no string becomes its JSON.
func (p *plain) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		text = string(raw)
	}
	*p = clean(text)
	return nil
}

// clean makes a line of whatever text there is.
func clean(text string) plain {
	if len(text) > maxPlain {
		text = text[:maxPlain] + "…"
	}
	return plain(strings.Map(harmless, strings.ToValidUTF8(text, string(utf8.RuneError))))
}

// harmless replaces a character that would do something.
func harmless(r rune) rune {
	switch {
	case unicode.IsSpace(r): // line breaks, and the separators of lines and paragraphs
		return ' '
	case unicode.IsControl(r):
		return utf8.RuneError
	case unicode.Is(unicode.Cf, r): // turns of direction, joiners, tags: nobody sees them
		return -1
	}
	return r
}

// lines makes lines of a text of several.
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
