package toml

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
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
	added, err := toml.Marshal(document)
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
