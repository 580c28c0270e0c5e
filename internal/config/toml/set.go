package toml

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/pelletier/go-toml/v2/unstable"
)

// SetValue puts a value on one line at the beginning of a table with a header, in place
// of what the key had before. A null value only removes that. It returns ErrNoHeader for
// a table without a header.
func SetValue(text []byte, table []string, key string, value json.RawMessage) ([]byte, error) {
	path := append(slices.Clone(table), key)
	text, err := cutValue(text, path)
	if err != nil || rawjson.IsNull(value) {
		return text, err
	}
	all, err := tables(text)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(t tableHeader) bool { return slices.Equal(t.path, table) })
	if at < 0 {
		return nil, ErrNoHeader
	}
	newline := lineEnd(text)
	end := bytes.IndexByte(text[all[at].start:], '\n') + 1 + all[at].start
	if end == all[at].start { // the header is all there is
		text, end = append(text, newline...), len(text)+len(newline)
	}
	line := append(appendKey(nil, key), " = "...)
	line = append(appendValue(line, value), newline...)
	return slices.Concat(text[:end], line, text[end:]), nil
}

// cutValue removes what a key has: a value, values of dotted keys, or tables.
func cutValue(text []byte, path []string) ([]byte, error) {
	if cut, err := CutTable(text, path...); err == nil {
		text = cut
	}
	var kept []byte
	at, inside := 0, false
	err := walk(text, func(e *unstable.Node, found []string, start int) {
		if inside {
			at, inside = valueEnd(text, at, start), false
		}
		if e.Kind == unstable.KeyValue && len(found) >= len(path) && slices.Equal(found[:len(path)], path) {
			kept = append(kept, text[at:start]...)
			at, inside = start, true
		}
	})
	if err != nil {
		return nil, err
	}
	if inside {
		at = valueEnd(text, at, len(text))
	}
	return append(kept, text[at:]...), nil
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
