package pin

import (
	"bytes"

	"github.com/luanette/luanette/internal/base/rawjson"
)

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
