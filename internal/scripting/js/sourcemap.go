package js

import (
	"errors"
	iter "maps"
	"slices"
	"strings"
)

// lead is put before every source: the engine counts the columns of the first line wrongly.
const lead = "\n"

// sourceMaps map positions in the code that ran to the original sources, by file name.
// Sources that ran unchanged have no entry.
type sourceMaps map[string]sourceMap

// maxSourceMaps is the largest number of source maps that a session stores.
const maxSourceMaps = 64

// set adds, replaces or removes an entry.
func (maps sourceMaps) set(file string, m sourceMap) {
	delete(maps, file)
	if m == (sourceMap{}) {
		return
	}
	if len(maps) >= maxSourceMaps {
		delete(maps, slices.Min(slices.Collect(iter.Keys(maps))))
	}
	maps[file] = m
}

// sourceMap maps positions in one text to another. The zero value removes lead only.
type sourceMap struct {
	// Wrapped is the length of the text inserted before the first line of the code that ran.
	Wrapped int `json:"wrapped,omitempty"`
	// Mappings is in the format of source maps, revision 3; "" maps nothing.
	Mappings string `json:"mappings,omitempty"`
	// Shifted is the length of the text inserted before the first line of the source that
	// Mappings refer to.
	Shifted int `json:"shifted,omitempty"`
}

// original maps a frame to its position in the source. Frames of code that scripts create
// themselves, in files such as <input>, are unchanged.
func (maps sourceMaps) original(f Frame) Frame {
	if strings.HasPrefix(f.File, "<") {
		return f
	}
	m := maps[f.File]
	f.Line -= len(lead)
	if f.Line == 1 {
		f.Column = max(1, f.Column-m.Wrapped)
	}
	if m.Mappings != "" {
		f.Line, f.Column = m.lookup(f.Line, f.Column)
	}
	if f.Line == 1 {
		f.Column = max(1, f.Column-m.Shifted)
	}
	return f
}

// wraps reports whether the source was wrapped in a function.
func (m sourceMap) wraps() bool { return m.Wrapped+m.Shifted > 0 }

// lookup finds the last mapping at or before a position of the generated text. Lines and
// columns count from 1.
func (m sourceMap) lookup(line, column int) (int, int) {
	var d mappingDecoder
	bestLine, bestColumn := line, column
	for n, text := range strings.Split(m.Mappings, ";") {
		if n >= line {
			break
		}
		d.column = 0
		for segment := range strings.SplitSeq(text, ",") {
			if segment == "" || d.next(segment) != nil {
				continue
			}
			if n == line-1 && d.column <= column-1 {
				bestLine, bestColumn = d.sourceLine+1, d.sourceColumn+1
			}
		}
	}
	return bestLine, bestColumn
}

// mappingDecoder sums the relative numbers of a source map.
type mappingDecoder struct{ column, source, sourceLine, sourceColumn int }

func (d *mappingDecoder) next(segment string) error {
	for _, field := range []*int{&d.column, &d.source, &d.sourceLine, &d.sourceColumn} {
		if segment == "" {
			return nil // a segment may end after its column
		}
		v, rest, err := decodeVLQ(segment)
		if err != nil {
			return err
		}
		*field += v
		segment = rest
	}
	return nil
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// decodeVLQ reads one number: base-64 digits of five bits, least significant first,
// the sign in the lowest bit.
func decodeVLQ(s string) (v int, rest string, err error) {
	for i := range len(s) {
		digit := strings.IndexByte(base64Digits, s[i])
		if digit < 0 || i > 6 {
			break
		}
		v |= (digit & 31) << (5 * i)
		if digit < 32 {
			if v&1 != 0 {
				return -(v >> 1), s[i+1:], nil
			}
			return v >> 1, s[i+1:], nil
		}
	}
	return 0, "", errors.New("broken source map")
}
