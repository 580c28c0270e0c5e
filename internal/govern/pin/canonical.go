package pin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// node is a JSON value with its parts.
type node struct {
	kind byte   // '{', '[', '"', or 0 for other values
	name string // of a member
	text string // the value of a string; what is written of other values without parts
	kids []node
}

// canonical writes JSON in one form: members sorted by name, no white space, strings
// escaped alike. Numbers keep their digits. If an object has two members of one name
// both stay, so that a definition cannot show one to us and the other to another
// reader. ok is false for what is not JSON or not text; that is returned unchanged. The
// tree is what was written, in the same order.
func canonical(raw []byte) (out []byte, tree node, ok bool) {
	if tree, ok = parse(raw); !ok || !utf8.Valid(raw) {
		return slices.Clone(raw), tree, false
	}
	tree.sort()
	return tree.encode(), tree, true
}

// parse reads a value in one pass, however deep it nests. ok is false for what is not JSON; the
// value is what comes before the error then. Bytes that are not text are replaced.
func parse(raw []byte) (n node, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	n, err := read(d, 1)
	return n, err == nil && rawjson.Valid(raw) == nil
}

var errTooDeep = errors.New("the value is nested too deeply")

func read(d *json.Decoder, depth int) (n node, err error) {
	if depth > rawjson.MaxDepth {
		return n, errTooDeep
	}
	token, err := d.Token()
	if err != nil {
		return n, err
	}
	switch t := token.(type) {
	case json.Delim:
		return readParts(d, byte(t), depth)
	case string:
		return node{kind: '"', text: t}, nil
	case nil:
		return node{text: "null"}, nil
	default: // a bool or json.Number
		return node{text: fmt.Sprint(t)}, nil
	}
}

// readParts reads what is between brackets, and the closing one.
func readParts(d *json.Decoder, open byte, depth int) (node, error) {
	n := node{kind: open}
	for d.More() {
		name := ""
		if open == '{' {
			token, err := d.Token()
			if err != nil {
				return n, err
			}
			name, _ = token.(string)
		}
		kid, err := read(d, depth+1)
		kid.name = name
		n.kids = append(n.kids, kid)
		if err != nil {
			return n, err
		}
	}
	_, err := d.Token()
	return n, err
}

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

// names are those of an object's members, or the numbers of a list's items. Repeated members are
// parts of their own, so each has another name.
func (n *node) names() []string {
	names, used := make([]string, len(n.kids)), make(map[string]bool, len(n.kids))
	for i := range n.kids {
		name := strconv.Itoa(i)
		if n.kind == '{' {
			name = n.kids[i].name
			for again := 2; used[name]; again++ {
				name = fmt.Sprintf("%s#%d", n.kids[i].name, again)
			}
		}
		names[i], used[name] = name, true
	}
	return names
}

// encode writes a value, strings with as few escapes as possible.
func (n *node) encode() []byte {
	var out bytes.Buffer
	texts := json.NewEncoder(&out)
	texts.SetEscapeHTML(false)
	n.write(&out, texts)
	return out.Bytes()
}

func (n *node) write(out *bytes.Buffer, texts *json.Encoder) {
	text := func(text string) {
		_ = texts.Encode(text) // text always encodes
		out.Truncate(out.Len() - len("\n"))
	}
	switch n.kind {
	case 0:
		out.WriteString(n.text)
		return
	case '"':
		text(n.text)
		return
	}
	out.WriteByte(n.kind)
	for i := range n.kids {
		if i > 0 {
			out.WriteByte(',')
		}
		if n.kind == '{' {
			text(n.kids[i].name)
			out.WriteByte(':')
		}
		n.kids[i].write(out, texts)
	}
	out.WriteByte(n.kind + 2) // the closing one, in ASCII
}

// place is where something is in a definition: the last step to it, and the place above. nil is
// the definition itself. A path can be much longer than the text at its end, and most are never
// needed, so it is written only when it is.
type place struct {
	above *place
	name  string // as node.names has it
	list  bool
}

// step is the place of a part.
func (n *node) step(at *place, name string) *place { return &place{at, name, n.kind == '['} }

// String is the readable path.
func (p *place) String() string {
	var steps []string
	for ; p != nil; p = p.above {
		if p.list {
			steps = append(steps, "["+p.name+"]")
		} else {
			steps = append(steps, "."+Visible(p.name))
		}
	}
	slices.Reverse(steps)
	return cmp.Or(strings.TrimPrefix(strings.Join(steps, ""), "."), "definition")
}
