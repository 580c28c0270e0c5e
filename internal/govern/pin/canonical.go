package pin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// canonical writes JSON in one form: members sorted by name, no white space, strings
// escaped alike. Numbers keep their digits. If an object has two members of one name
// both stay, so that a definition cannot show one to us and the other to another
// reader. ok is false for what is not JSON or not text; that is returned unchanged. The
// tree is what was written, in the same order.
func canonical(raw []byte) (out []byte, tree node, ok bool) {
	if !utf8.Valid(raw) {
		return slices.Clone(raw), parse(readable(raw)), false
	}
	tree = parse(raw)
	if rawjson.Valid(raw) != nil {
		return slices.Clone(raw), tree, false
	}
	tree.sort()
	return tree.append(make([]byte, 0, len(raw))), tree, true
}

// readable replaces each byte that is not text.
func readable(raw []byte) []byte { return []byte(string([]rune(string(raw)))) }

// sort sorts members.
func (n *node) sort() {
	for i := range n.kids {
		n.kids[i].sort()
	}
	if n.kind == '{' {
		slices.SortStableFunc(n.kids, func(a, b node) int { return strings.Compare(a.name, b.name) })
	}
}

// repeats reports whether any object of a sorted tree has two members of one name.
func (n *node) repeats() bool {
	for i := range n.kids {
		if n.kind == '{' && i > 0 && n.kids[i-1].name == n.kids[i].name || n.kids[i].repeats() {
			return true
		}
	}
	return false
}

// append writes a value.
func (n *node) append(out []byte) []byte {
	switch n.kind {
	case 0:
		return append(out, n.text...)
	case '"':
		return appendText(out, n.text)
	}
	out = append(out, n.kind)
	for i := range n.kids {
		if i > 0 {
			out = append(out, ',')
		}
		if n.kind == '{' {
			out = append(appendText(out, n.kids[i].name), ':')
		}
		out = n.kids[i].append(out)
	}
	return append(out, n.kind+2) // the closing one, in ASCII
}

// appendText writes a string with as few escapes as possible.
func appendText(out []byte, text string) []byte {
	if !escapes(text) {
		return append(append(append(out, '"'), text...), '"')
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // text always encodes
	return append(out, bytes.TrimRight(b.Bytes(), "\n")...)
}

// escapes reports whether a text may contain anything that encoding/json escapes. That
// includes the line and paragraph separators, which begin with 0xe2.
func escapes(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c == 0xe2 {
			return true
		}
	}
	return false
}

// digestOf is the SHA-256 of canonical JSON.
func digestOf(definition []byte) string {
	sum := sha256.Sum256(definition)
	return hex.EncodeToString(sum[:])
}
