package toml

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/pelletier/go-toml/v2/unstable"
)

// SetValue puts a value on one line into a table with a header: where the key was before,
// with the comment after it, or else at the table's beginning. A null value only removes
// what was there. It returns ErrNoHeader for a table without a header.
func SetValue(text []byte, table []string, key string, value json.RawMessage) ([]byte, error) {
	text, was, err := cutValue(text, table, key)
	if err != nil || rawjson.IsNull(value) {
		return text, err
	}
	newline := lineEnd(text)
	at := was.start
	if at < 0 {
		if text, at, err = beginning(text, table); err != nil {
			return nil, err
		}
	}
	line := append(appendKey(nil, key), " = "...)
	line = append(appendValue(line, value), was.comment...)
	line = append(line, newline...)
	return slices.Concat(text[:at], line, text[at:]), nil
}

// HasHeader reports whether a table has a header of its own.
func HasHeader(text []byte, table ...string) bool {
	all, err := tables(text)
	return err == nil && slices.ContainsFunc(all, func(t tableHeader) bool { return slices.Equal(t.path, table) })
}

// beginning returns where the first line after a table's header begins, in a text that may
// have got the end of the header's line.
func beginning(text []byte, table []string) ([]byte, int, error) {
	all, err := tables(text)
	if err != nil {
		return nil, 0, err
	}
	at := slices.IndexFunc(all, func(t tableHeader) bool { return slices.Equal(t.path, table) })
	if at < 0 {
		return nil, 0, ErrNoHeader
	}
	end := bytes.IndexByte(text[all[at].start:], '\n')
	if end < 0 { // the header is all there is
		text = append(bytes.Clone(text), lineEnd(text)...)
		return text, len(text), nil
	}
	return text, all[at].start + end + 1, nil
}

// removedValue is what cutValue removed.
type removedValue struct {
	start   int    // of its line, in the text without it; less than 0 if there was none in the table itself
	comment string // after it on its line, with the space before
}

// cutValue removes what a key of a table has: a value, values of dotted keys, or tables.
func cutValue(text []byte, table []string, key string) (rest []byte, was removedValue, err error) {
	path := append(slices.Clone(table), key)
	if cut, err := CutTable(text, path...); err == nil {
		text = cut
	}
	var kept []byte
	was.start = -1
	at, inside := 0, false
	end := func(next int) {
		if inside {
			next = valueEnd(text, at, next)
			was.comment = cmp.Or(was.comment, commentOf(text[at:next]))
			at, inside = next, false
		}
	}
	err = walk(text, func(e *unstable.Node, found []string, start int) {
		end(start)
		if e.Kind != unstable.KeyValue || len(found) < len(path) || !slices.Equal(found[:len(path)], path) {
			return
		}
		kept = append(kept, text[at:start]...)
		if was.start < 0 && keyParts(e) == len(found)-len(table) { // the line is in the table itself
			was.start = len(kept)
		}
		at, inside = start, true
	})
	if err != nil {
		return nil, was, err
	}
	end(len(text))
	return append(kept, text[at:]...), was, nil
}

// keyParts is of how many names the key of an assignment is made.
func keyParts(e *unstable.Node) (parts int) {
	for key := e.Key(); key.Next(); {
		parts++
	}
	return parts
}

// commentOf returns the comment after a value on one line, with the space before it.
func commentOf(assignment []byte) string {
	line := strings.TrimRight(string(assignment), "\r\n")
	if strings.Contains(line, "\n") {
		return ""
	}
	var quote rune
	escaped := false
	for i, c := range line {
		switch {
		case escaped:
			escaped = false
		case quote == '"' && c == '\\':
			escaped = true
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#':
			return line[len(strings.TrimRight(line[:i], " \t")):]
		}
	}
	return ""
}

// valueEnd is where the value ends that begins at start, if the next expression begins at
// end: empty lines and comments before that stay.
func valueEnd(text []byte, start, end int) int {
	for end > start {
		line := bytes.LastIndexByte(text[start:end-1], '\n') + 1 + start
		if rest := bytes.TrimSpace(text[line:end]); line <= start || len(rest) > 0 && rest[0] != '#' {
			return end
		}
		end = line
	}
	return end
}
