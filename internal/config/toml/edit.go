package toml

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// ErrNoHeader says that a table is written without a header of its own: as an inline
// table or with dotted keys.
var ErrNoHeader = errors.New("the table has no header of its own")

// tableHeader is a table with a header.
type tableHeader struct {
	path  []string
	start int // of the header's line
}

// tables returns the tables of a text in its order.
func tables(text []byte) ([]tableHeader, error) {
	var found []tableHeader
	err := walk(text, func(e *unstable.Node, path []string, start int) {
		if e.Kind != unstable.KeyValue {
			found = append(found, tableHeader{path, start})
		}
	})
	return found, err
}

// walk calls do with every header and assignment of a text, its whole key, and where
// its line begins.
func walk(text []byte, do func(e *unstable.Node, path []string, start int)) error {
	var p unstable.Parser
	p.Reset(text)
	var section []string
	for p.NextExpression() {
		e := p.Expression()
		var path []string
		if e.Kind == unstable.KeyValue {
			path = slices.Clone(section)
		}
		start := -1
		for key := e.Key(); key.Next(); {
			if start < 0 {
				start = bytes.LastIndexByte(text[:key.Node().Raw.Offset], '\n') + 1
			}
			path = append(path, string(key.Node().Data))
		}
		if e.Kind != unstable.KeyValue {
			section = path
		}
		do(e, path, start)
	}
	return p.Error()
}

// Lines returns on which line each key below path first appears. It stops at an error.
func Lines(text []byte, path ...string) map[string]int {
	lines := map[string]int{}
	_ = walk(text, func(_ *unstable.Node, found []string, start int) {
		if len(found) <= len(path) || !slices.Equal(found[:len(path)], path) {
			return
		}
		if name := found[len(path)]; lines[name] == 0 {
			lines[name] = 1 + bytes.Count(text[:start], []byte("\n"))
		}
	})
	return lines
}

// Append adds a value at the end of a text, after an empty line: a document that has
// nothing but the table at path.
func Append(text []byte, path []string, document any) ([]byte, error) {
	added, err := Marshal(document)
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(path); i++ { // headers of parents are not needed, and the text may have them
		added = bytes.TrimPrefix(added, []byte("["+strings.Join(path[:i], ".")+"]\n"))
	}
	return appendTable(text, added), nil
}

// AppendObject adds a table at the end of a text, after an empty line. Its content is
// a JSON object, whose order is kept.
func AppendObject(text []byte, path []string, object json.RawMessage) []byte {
	return appendTable(text, bytes.TrimPrefix(encodeTable(nil, path, object), []byte("\n")))
}

func appendTable(text, added []byte) []byte {
	newline := lineEnd(text)
	added = bytes.ReplaceAll(added, []byte("\n"), []byte(newline))
	out := bytes.Clone(text)
	if kept := bytes.TrimRight(out, "\r\n"); len(kept) > 0 && !bytes.HasSuffix(out, []byte(newline+newline)) {
		out = append(kept, newline+newline...)
	}
	return append(out, added...)
}

// CutTable removes a table and the tables below it. It returns ErrNoHeader for a table
// without a header.
func CutTable(text []byte, path ...string) ([]byte, error) {
	all, err := tables(text)
	if err != nil {
		return nil, err
	}
	var kept []byte
	at, found := 0, false
	for i, t := range all {
		if len(t.path) < len(path) || !slices.Equal(t.path[:len(path)], path) {
			continue
		}
		end := len(text)
		if i+1 < len(all) {
			end = all[i+1].start
		}
		kept = append(kept, text[at:t.start]...)
		at, found = cutEnd(text, t.start, end), true
	}
	if !found {
		return nil, ErrNoHeader
	}
	if kept, rest := bytes.TrimRight(kept, "\r\n"), text[at:]; len(bytes.TrimSpace(rest)) == 0 && len(kept) > 0 {
		return append(kept, lineEnd(text)...), nil // it was the last table
	}
	return append(kept, text[at:]...), nil
}

// cutEnd returns where the text of a table ends that begins at start, if the next one
// begins at end: comments directly above the next header belong to that one.
func cutEnd(text []byte, start, end int) int {
	if end == len(text) {
		return end
	}
	for {
		line := bytes.LastIndexByte(text[start:end-1], '\n') + 1 + start
		if line <= start || !bytes.HasPrefix(bytes.TrimLeft(text[line:end], " \t"), []byte("#")) {
			return end
		}
		end = line
	}
}

func lineEnd(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

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

// SetFirst puts a value that is in no table where it was before, or else before the first
// table, after the comment with which the text begins. A null value only removes it.
func SetFirst(text []byte, key string, value json.RawMessage) ([]byte, error) {
	text, was, err := cutValue(text, nil, key)
	if err != nil || rawjson.IsNull(value) {
		return text, err
	}
	at, newline := was.start, lineEnd(text)
	if at < 0 {
		at = firstComment(text)
	}
	line := append(appendKey(nil, key), " = "...)
	line = append(appendValue(line, value), was.comment...)
	return slices.Concat(text[:at], append(line, newline...), text[at:]), nil
}

// firstComment is where the comment ends with which a text begins, with the empty line
// after it; a comment directly above a value or table belongs to that.
func firstComment(text []byte) (end int) {
	for rest := text; ; {
		line, after, more := bytes.Cut(rest, []byte("\n"))
		switch trimmed := bytes.TrimSpace(line); {
		case more && len(trimmed) == 0:
			return len(text) - len(after)
		case !more || trimmed[0] != '#':
			return 0
		}
		rest = after
	}
}

// InsertEntry puts an entry before the others of an array of tables, or at the end of a text
// that has none.
func InsertEntry(text []byte, array string, entry any) ([]byte, error) {
	content, err := Marshal(entry)
	if err != nil {
		return nil, err
	}
	newline := lineEnd(text)
	added := bytes.ReplaceAll(slices.Concat([]byte("[["+array+"]]\n"), content), []byte("\n"), []byte(newline))
	all, err := tables(text)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(t tableHeader) bool { return slices.Equal(t.path, []string{array}) })
	if at < 0 {
		return appendTable(text, added), nil
	}
	begin := 0
	if at > 0 {
		begin = all[at-1].start
	}
	place := commentAbove(text, begin, all[at].start)
	return slices.Concat(text[:place], added, []byte(newline), text[place:]), nil
}

// commentAbove is where the comment directly above the line at end begins.
func commentAbove(text []byte, begin, end int) int {
	for end > begin {
		line := bytes.LastIndexByte(text[begin:end-1], '\n') + 1 + begin
		if !bytes.HasPrefix(bytes.TrimSpace(text[line:end]), []byte("#")) {
			return end
		}
		end = line
	}
	return end
}

// CutEntry removes an entry of an array of tables. It returns ErrNoHeader if there are
// no such headers.
func CutEntry(text []byte, array string, number int) ([]byte, error) {
	all, err := tables(text)
	if err != nil {
		return nil, err
	}
	for i, t := range all {
		if !slices.Equal(t.path, []string{array}) {
			continue
		}
		if number--; number >= 0 {
			continue
		}
		end := len(text)
		if i+1 < len(all) {
			end = all[i+1].start
		}
		end = cutEnd(text, t.start, end)
		kept := bytes.Clone(text[:t.start])
		if end == len(text) && len(bytes.TrimSpace(kept)) > 0 {
			return append(bytes.TrimRight(kept, "\r\n"), lineEnd(text)...), nil
		}
		return append(kept, text[end:]...), nil
	}
	return nil, ErrNoHeader
}
