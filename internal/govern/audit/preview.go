package audit

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
)

// Limits of a preview.
const (
	longestPreview = 2 << 10
	longestText    = 1500     // of one string
	longestRead    = 16 << 10 // of arguments or a result, from its beginning
	unsureEnd      = 1 << 10  // of a text that was cut while it was read: a secret may have lost its end there
	shortestData   = 256      // of base64 that is left out
	longestKey     = 200
)

// cut stands for what a preview leaves out.
const cut = "…"

// preview shortens JSON to about longestPreview bytes, without what looks secret. It
// stays valid JSON: long strings are cut, and lists and objects end early.
func preview(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || rawjson.IsEmptyObject(raw) {
		return nil
	}
	p := previewer{in: raw[:min(len(raw), longestRead)], out: make([]byte, 0, min(len(raw), longestPreview)+64)}
	for p.at < len(p.in) && len(p.out) < longestPreview {
		p.next()
	}
	if p.at < len(p.in) || len(p.open) > 0 {
		p.out = p.out[:p.whole]
	}
	for i := len(p.open) - 1; i >= 0; i-- {
		p.out = append(p.out, p.open[i]+2) // } follows { by two, and ] follows [
	}
	if !json.Valid(p.out) {
		return nil
	}
	return p.out
}

// previewOf is the preview of a result as scripts see it: the structured content, else
// the text, as JSON if it is that.
func previewOf(result json.RawMessage) json.RawMessage {
	if structured, ok := rawjson.Get(result, "structuredContent"); ok && !rawjson.IsNull(structured) {
		return preview(structured)
	}
	content, _ := rawjson.Get(result, "content")
	items, ok := rawjson.Items(content)
	if !ok || len(items) == 0 {
		return nil
	}
	quoted, isText := rawjson.Get(items[0], "text")
	if !isText || len(items) > 1 {
		return preview(content)
	}
	if inner, ok := quotedJSON(quoted); ok {
		return preview(inner)
	}
	return preview(quoted)
}

// quotedJSON is the list or the object that a quoted text holds. Texts that a preview does not
// read to their end are none.
func quotedJSON(quoted json.RawMessage) (inner json.RawMessage, ok bool) {
	if len(quoted) >= longestRead {
		return nil, false
	}
	text, _ := rawjson.Text(quoted)
	first := rawjson.First([]byte(text))
	if first != '{' && first != '[' || !json.Valid([]byte(text)) {
		return nil, false
	}
	return json.RawMessage(text), true
}

// previewer copies JSON without parsing it: it is for every call.
type previewer struct {
	in     []byte
	at     int
	out    []byte
	whole  int    // so much of out has no begun value, once what is open is closed
	open   []byte // the brackets that are open
	key    string // of the value that follows
	secret bool   // its value is hidden
}

// next copies one token.
func (p *previewer) next() {
	switch c := p.in[p.at]; c {
	case '"':
		p.text()
	case '{', '[':
		if p.secret {
			p.skip()
			return
		}
		p.open, p.out = append(p.open, c), append(p.out, c)
		p.at, p.whole = p.at+1, len(p.out)
	case '}', ']':
		if len(p.open) > 0 {
			p.open = p.open[:len(p.open)-1]
		}
		p.out = append(p.out, c)
		p.at, p.whole, p.secret, p.key = p.at+1, len(p.out), false, ""
	case ',':
		p.whole = len(p.out)
		p.out = append(p.out, c)
		p.at, p.secret = p.at+1, false
	case ' ', '\t', '\r', '\n':
		p.at++
	default: // a number, true, false, null or a colon
		p.out = append(p.out, c)
		p.at++
	}
}

// text copies a string: a key or a value.
func (p *previewer) text() {
	length := quotedLength(p.in[p.at:])
	if length < 0 {
		p.tornText()
		return
	}
	quoted := p.in[p.at : p.at+length]
	p.at += length
	if p.at < len(p.in) && p.in[p.at] == ':' || rawjson.First(p.in[p.at:]) == ':' {
		p.key = string(rawjson.Unquote(quoted))
		p.secret = redact.Secret(p.key)
		p.out = rawjson.AppendText(p.out, redact.Cut(redact.Text(p.key), longestKey))
		return
	}
	p.scalar(quoted)
	p.whole = len(p.out)
}

// quotedLength is the length of the string that text begins with, or -1 if it has no end.
func quotedLength(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

func (p *previewer) scalar(quoted []byte) {
	if (p.key == "data" || p.key == "blob") && len(quoted) > shortestData && bytes.IndexByte(quoted, ' ') < 0 {
		p.out = rawjson.AppendText(p.out, fmt.Sprintf("(%d bytes)", len(quoted)-2))
		return
	}
	if p.secret {
		p.out = rawjson.AppendText(p.out, redact.Hidden)
		return
	}
	p.out = rawjson.AppendText(p.out, redact.Cut(redact.Text(string(rawjson.Unquote(quoted))), p.longest()))
}

// longest is how much of a string there is space for.
func (p *previewer) longest() int { return max(40, min(longestText, longestPreview-len(p.out))) }

// tornText writes the beginning of a string that was cut while it was read.
func (p *previewer) tornText() {
	quoted := p.in[p.at:]
	p.at = len(p.in)
	for range 12 { // an escape, and the one before that it belongs to, are at most that long
		var text string
		if json.Unmarshal(append(bytes.Clone(quoted), '"'), &text) == nil && !p.secret && len(text) > unsureEnd {
			p.out = rawjson.AppendText(p.out, redact.Cut(redact.Text(text[:len(text)-unsureEnd]), p.longest())+cut)
			p.whole = len(p.out)
			return
		}
		quoted = quoted[:max(1, len(quoted)-1)]
	}
}

// skip leaves out a list or an object whose key is secret.
func (p *previewer) skip() {
	for depth := 0; p.at < len(p.in); p.at++ {
		switch p.in[p.at] {
		case '"':
			p.at += max(1, quotedLength(p.in[p.at:])) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				p.at++
				p.out = rawjson.AppendText(p.out, redact.Hidden)
				p.whole = len(p.out)
				return
			}
		}
	}
}
