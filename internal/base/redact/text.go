package redact

import (
	"strings"
	"unicode/utf8"
)

// Text hides what looks secret in text: the values of settings with secret names,
// passwords in URLs, private keys, tokens of well-known services, and words that look
// random. Ids, hashes, paths, encoded images, prose and code stay.
func Text(text string) string {
	if !mayHide(text) {
		return text
	}
	found := spans{}
	found.keyBlocks(text)
	found.values(text)
	found.words(text)
	return found.hide(text)
}

// mayHide is a quick look at text that has nothing to hide: most has neither an
// assignment nor a long word.
func mayHide(text string) bool {
	run := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '=' || c == ':':
			return true
		case wordByte[c]:
			if run++; run >= shortestWord {
				return true
			}
		default:
			run = 0
		}
	}
	return strings.Contains(text, "earer ")
}

// span is a part of a text that is hidden.
type span struct{ from, to int }

// spans are the hidden parts of a text.
type spans []span

func (s *spans) add(from, to int) {
	if from < to {
		*s = append(*s, span{from, to})
	}
}

// covers reports whether a part is hidden already.
func (s spans) covers(from, to int) bool {
	for _, other := range s {
		if from < other.to && other.from < to {
			return true
		}
	}
	return false
}

// hide replaces the parts; those that overlap become one.
func (s spans) hide(text string) string {
	if len(s) == 0 {
		return text
	}
	hidden := make([]bool, len(text))
	for _, part := range s {
		for i := part.from; i < part.to; i++ {
			hidden[i] = true
		}
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		if !hidden[i] {
			_, size := utf8.DecodeRuneInString(text[i:])
			out.WriteString(text[i : i+size])
			i += size
			continue
		}
		out.WriteString(Hidden)
		for i < len(text) && hidden[i] {
			i++
		}
	}
	return out.String()
}

// keyBlocks finds private keys in PEM.
func (s *spans) keyBlocks(text string) {
	const begin, end = "-----BEGIN ", "-----END "
	for at := 0; ; {
		from := strings.Index(text[at:], begin)
		if from < 0 {
			return
		}
		from += at
		title, _, _ := strings.Cut(text[from+len(begin):], "-----")
		at = from + len(begin)
		if len(title) > 60 || !strings.Contains(title, "PRIVATE KEY") {
			continue
		}
		to := len(text) // without an end, the rest may be the key
		if closing := strings.Index(text[at:], end); closing >= 0 {
			to = at + closing
		}
		s.add(from+len(begin)+len(title)+len("-----"), to)
		at = to
	}
}
