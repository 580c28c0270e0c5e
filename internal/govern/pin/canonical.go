package pin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
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

// node is a parsed JSON value.
type node struct {
	kind byte   // '{', '[', '"', or 0 for other values
	name string // of a member
	text string // the value of a string; the source text of other values without parts
	kids []node
}

// parse parses a value in one pass, however deep it nests. Of invalid JSON it returns
// what comes before the error.
func parse(raw []byte) node {
	p := parser{data: raw}
	n, _ := p.value()
	return n
}

// parser leaves strictness to rawjson.Valid.
type parser struct {
	data  []byte
	at    int
	depth int
}

// peek is the next byte that is not white space, or 0 at the end.
func (p *parser) peek() byte {
	for ; p.at < len(p.data); p.at++ {
		if c := p.data[p.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

func (p *parser) value() (n node, ok bool) {
	switch c := p.peek(); c {
	case '{', '[':
		return p.inside(c)
	case '"':
		n.kind = '"'
		n.text, ok = p.text()
		return n, ok
	}
	end := bytes.IndexAny(p.data[p.at:], " \n\t\r,:]}")
	if end < 0 {
		end = len(p.data) - p.at
	}
	n.text = string(p.data[p.at : p.at+end])
	p.at += end
	return n, end > 0
}

// inside reads what is between brackets.
func (p *parser) inside(open byte) (n node, ok bool) {
	n.kind = open
	shut := open + 2 // in ASCII
	p.at++
	if p.depth++; p.depth > rawjson.MaxDepth {
		return n, false
	}
	for p.peek() != shut {
		if len(n.kids) > 0 {
			if p.peek() != ',' {
				return n, false
			}
			p.at++
		}
		kid, ok := p.part(open)
		n.kids = append(n.kids, kid)
		if !ok {
			return n, false
		}
	}
	p.at++
	p.depth--
	return n, true
}

// part reads an item of a list, or a member of an object.
func (p *parser) part(open byte) (n node, ok bool) {
	if open == '[' {
		return p.value()
	}
	name, ok := p.text()
	if !ok || p.peek() != ':' {
		return n, false
	}
	p.at++
	n, ok = p.value()
	n.name = name
	return n, ok
}

// text reads a string.
func (p *parser) text() (text string, ok bool) {
	if p.peek() != '"' {
		return "", false
	}
	begin := p.at
	for p.at++; p.at < len(p.data); p.at++ {
		switch p.data[p.at] {
		case '\\':
			p.at++
		case '"':
			p.at++
			return rawjson.Text(p.data[begin:p.at])
		}
	}
	return "", false
}

// appendNormalized writes a text in lower case, with lookalikes replaced by what they
// look like, without hidden characters and emphasis, and with runs of white space as
// one blank.
func appendNormalized(out []byte, text string) []byte {
	blank := false
	for _, r := range text {
		as := normalizedRune(r)
		switch {
		case as == ' ':
			blank = len(out) > 0
			continue
		case as == 0:
			continue
		case blank:
			out = append(out, ' ')
			blank = false
		}
		if as < utf8.RuneSelf {
			out = append(out, byte(as))
		} else {
			out = utf8.AppendRune(out, as)
		}
	}
	return out
}

// normalizedRune is the character that stands for r, 0 for none.
func normalizedRune(r rune) rune {
	if r < utf8.RuneSelf {
		return rune(ascii[r])
	}
	return normalizeRune(r)
}

// ascii is normalizeRune for ASCII.
var ascii = func() (table [utf8.RuneSelf]byte) {
	for r := range table {
		table[r] = byte(normalizeRune(rune(r)))
	}
	return table
}()

func normalizeRune(r rune) rune {
	switch r {
	case ' ', '\n', '\t', '\r', '\u00a0':
		return ' '
	case '*', '`':
		return 0
	}
	if invisibleKind(r) != "" {
		return 0
	}
	return letterOf(r)
}

// letterOf is the lower-case Latin letter that a character looks like.
func letterOf(r rune) rune {
	if r >= 0xff01 && r <= 0xff5e { // full width
		r -= 0xfee0
	} else if r >= utf8.RuneSelf {
		if like, ok := lookalikes[r]; ok {
			r = like
		}
	}
	if r >= 'A' && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

// plainText reports whether a text has visible ASCII characters only.
func plainText(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c >= 0x7f) && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// kind is the role of a byte of normalized text in words.
type kind byte

const (
	other  kind = iota // between words
	letter             // part of a word
	joint              // part of a name of several words
)

// kinds are the kinds of all bytes. Letters are the characters of \w.
var kinds = func() (table [256]kind) {
	for c := range table {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_':
			table[c] = letter
		case c == '-', c == '.':
			table[c] = joint
		}
	}
	return table
}()

// walker calls visit for every text of a definition, names of members included.
type walker struct {
	visit func(text string)
	twice bool   // an object may have a name twice
	path  []step // to the current text
}

// step is one step into a definition.
type step struct {
	name string
	at   int // in a list; -1 for a member
}

// where is the readable path to the current text.
func (w *walker) where() string {
	path := ""
	for _, step := range w.path {
		if step.at < 0 {
			path = join(path, step.name, false)
		} else {
			path = join(path, strconv.Itoa(step.at), true)
		}
	}
	return orWhole(path)
}

// value visits every text in a value.
func (w *walker) value(n *node) {
	switch n.kind {
	case '"':
		w.visit(n.text)
	case '[':
		for i := range n.kids {
			w.step(step{at: i}, &n.kids[i])
		}
	case '{':
		name := distinct(n.kids, w.twice)
		for i := range n.kids {
			w.step(step{name(i), -1}, &n.kids[i])
		}
	}
}

func (w *walker) step(to step, n *node) {
	w.path = append(w.path, to)
	if to.at < 0 {
		w.visit(to.name)
	}
	w.value(n)
	w.path = w.path[:len(w.path)-1]
}

// distinct returns the names of members, with a name of its own for each repeated one.
func distinct(members []node, twice bool) func(i int) string {
	if !twice {
		return func(i int) string { return members[i].name }
	}
	used := map[string]bool{}
	return func(i int) string {
		name := freeName(members[i].name, func(name string) bool { return used[name] })
		used[name] = true
		return name
	}
}
