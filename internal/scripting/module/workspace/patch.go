package workspace

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
)

// hunk is one change of a unified diff: the lines before and after, and the expected
// position of the first. Lines keep their newlines; a last line without one has none.
type hunk struct {
	at     int // index of the first line before
	before []string
	after  []string
	size   int  // number of lines before, from the header
	last   byte // first character of the last line
}

var hunkHead = lazyregexp.New(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// parseDiff reads the hunks of a unified diff of one file.
func parseDiff(diff string) ([]hunk, error) {
	var hunks []hunk
	named := 0
	for line := range strings.Lines(diff) {
		head := hunkHead().FindStringSubmatch(line)
		switch {
		case head != nil:
			at, _ := strconv.Atoi(head[1])
			if head[2] == "0" {
				at++ // an insertion names the line before it
			}
			hunks = append(hunks, hunk{at: max(at-1, 0), size: count(head[2])})
		case len(hunks) == 0 || strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
			// lines before the first hunk only name the file
		case strings.HasPrefix(line, "--- ") && hunks[len(hunks)-1].complete():
			named++
		default:
			if err := hunks[len(hunks)-1].add(line); err != nil {
				return nil, err
			}
		}
	}
	if len(hunks) == 0 || named > 0 {
		return nil, fault.New(fault.InvalidParams, "patch_file: not a unified diff of one file").
			WithHint("a diff has hunks such as:\n@@ -1,2 +1,2 @@\n same line\n-old line\n+new line")
	}
	return hunks, nil
}

// count reads a number of lines, by default 1.
func count(text string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return 1
}

// complete reports whether the hunk has the number of lines in its header. Headers are
// often wrong, so it only decides whether "--- " removes a line or names another file.
func (h *hunk) complete() bool { return len(h.before) >= h.size }

func (h *hunk) add(line string) error {
	text := line[1:]
	switch line[0] {
	case ' ':
		h.before, h.after = append(h.before, text), append(h.after, text)
	case '\n': // an empty line whose blank was trimmed
		h.before, h.after = append(h.before, line), append(h.after, line)
	case '-':
		h.before = append(h.before, text)
	case '+':
		h.after = append(h.after, text)
	case '\\':
		h.chomp()
	default:
		return fault.New(fault.InvalidParams, "patch_file: a line of the diff begins with %q", line[:1]).
			WithHint("lines of a hunk begin with a blank, - or +")
	}
	h.last = line[0]
	return nil
}

// chomp removes the newline of the line that was added last.
func (h *hunk) chomp() {
	cut := func(lines []string) {
		if n := len(lines); n > 0 {
			lines[n-1] = strings.TrimSuffix(lines[n-1], "\n")
		}
	}
	if h.last != '+' {
		cut(h.before)
	}
	if h.last != '-' {
		cut(h.after)
	}
}

// createsFile reports whether the diff creates a file.
func createsFile(hunks []hunk) bool {
	return len(hunks) == 1 && hunks[0].at == 0 && len(hunks[0].before) == 0
}

// apply changes a text. If the lines of a hunk are not at its position, the nearest
// place with exactly those lines is used.
func apply(text string, hunks []hunk) (string, error) {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, line)
	}
	var out []string
	done, drift := 0, 0
	for i, h := range hunks {
		at := place(lines, h, h.at+drift, done)
		if at < 0 {
			return "", fmt.Errorf("hunk %d does not apply: %s", i+1, misfit(lines, h, h.at+drift))
		}
		drift = at - h.at
		out = append(out, lines[done:at]...)
		out = append(out, h.after...)
		done = at + len(h.before)
	}
	return strings.Join(append(out, lines[done:]...), ""), nil
}

// misfit returns what differs where a hunk was expected.
func misfit(lines []string, h hunk, at int) string {
	for i, want := range h.before {
		switch {
		case at+i >= len(lines):
			return fmt.Sprintf("the file ends before line %d, which should be %q", at+i+1, want)
		case lines[at+i] != want:
			return fmt.Sprintf("line %d is %q, not %q", at+i+1, lines[at+i], want)
		}
	}
	return fmt.Sprintf("the file ends before line %d", at+1)
}

// place finds the line where a hunk applies, nearest to at and not before first; -1 if
// there is none.
func place(lines []string, h hunk, at, first int) int {
	for away := 0; away <= len(lines); away++ {
		for _, try := range []int{at - away, at + away} {
			if try >= first && try+len(h.before) <= len(lines) && fits(lines[try:], h.before) {
				return try
			}
		}
	}
	return -1
}

func fits(lines, before []string) bool {
	for i, want := range before {
		if lines[i] != want {
			return false
		}
	}
	return true
}
