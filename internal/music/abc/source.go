package abc

import (
	"strings"
	"unicode/utf8"
)

// line is one line of the text, without its end.
type line struct {
	text   string
	number int // from 1
	offset int // of its first byte in the whole text
}

// splitLines cuts text at \n, \r\n and \r.
func splitLines(text string) []line {
	var lines []line
	start := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '\n' && text[i] != '\r' {
			continue
		}
		lines = append(lines, line{text[start:i], len(lines) + 1, start})
		if text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n' {
			i++
		}
		start = i + 1
	}
	return append(lines, line{text[start:], len(lines) + 1, start})
}

// at is the position of a byte of the line.
func (l line) at(i int) Position {
	return Position{l.number, utf8.RuneCountInString(l.text[:min(i, len(l.text))]) + 1}
}

// blank reports whether nothing is on the line.
func (l line) blank() bool { return strings.TrimSpace(l.text) == "" }

// field splits a line "K:G % comment" into its letter and its value; ok is
// false for lines of another sort. start is the value's first byte.
func (l line) field() (name byte, value string, start int, ok bool) {
	if len(l.text) < 2 || l.text[1] != ':' {
		return 0, "", 0, false
	}
	name = l.text[0]
	if (name < 'A' || name > 'Z') && (name < 'a' || name > 'z') && name != '+' {
		return 0, "", 0, false
	}
	value, start = trimmed(uncommented(l.text[2:]), 2)
	return name, value, start, true
}

// uncommented cuts a comment off; \% is no comment.
func uncommented(text string) string {
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && (i == 0 || text[i-1] != '\\') {
			return text[:i]
		}
	}
	return text
}

// trimmed cuts outer space off text that begins at start, and moves start along.
func trimmed(text string, start int) (string, int) {
	left := strings.TrimLeft(text, " \t")
	return strings.TrimRight(left, " \t"), start + len(text) - len(left)
}
