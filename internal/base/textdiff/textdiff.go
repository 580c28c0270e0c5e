// Package textdiff shows what differs between two texts.
package textdiff

import (
	"fmt"
	"slices"
	"strings"
)

// diffContext is how many unchanged lines are shown around a change.
const diffContext = 3

// Unified returns what differs between two texts, as a unified diff with one hunk.
func Unified(path string, before, after []byte) string {
	a, b := lines(before), lines(after)
	head, tail := common(a, b)
	if head == len(a) && head == len(b) {
		return ""
	}
	from, to := path, path
	if before == nil {
		from = "/dev/null"
	}
	if after == nil {
		to = "/dev/null"
	}
	first := max(0, head-diffContext)
	lastA, lastB := min(len(a), len(a)-tail+diffContext), min(len(b), len(b)-tail+diffContext)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n@@ -%s +%s @@\n", from, to, span(first, lastA), span(first, lastB))
	write := func(mark string, text []string) {
		for _, line := range text {
			out.WriteString(mark + strings.TrimRight(line, "\r\n") + "\n")
			if !strings.HasSuffix(line, "\n") {
				out.WriteString("\\ No newline at end of file\n")
			}
		}
	}
	write(" ", a[first:head])
	write("-", a[head:len(a)-tail])
	write("+", b[head:len(b)-tail])
	write(" ", a[len(a)-tail:lastA])
	return out.String()
}

// common returns how many lines are the same at the beginning and at the end.
func common(a, b []string) (head, tail int) {
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

func lines(text []byte) []string { return slices.Collect(strings.Lines(string(text))) }

// span writes the lines of a hunk.
func span(first, last int) string {
	if last == first {
		return fmt.Sprintf("%d,0", first)
	}
	return fmt.Sprintf("%d,%d", first+1, last-first)
}
