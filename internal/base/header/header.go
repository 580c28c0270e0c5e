// Package header reads the header lines of plain HTTP/1.1 messages. It is no parser
// for whatever may come: what it finds odd is left to net/http, which knows how to
// judge it. For the rest it costs a good part less.
package header

import (
	"bytes"
	"net/http"
	"net/textproto"
	"strings"
)

// Length is how long a message's head is, with the empty line after it; 0 when it
// is not there wholly.
func Length(message []byte) int {
	if end := bytes.Index(message, []byte("\r\n\r\n")); end >= 0 {
		return end + 4
	}
	return 0
}

// Verdict is what is to be done with a header.
type Verdict uint8

// Verdicts.
const (
	Odd  Verdict = iota // the message is not for us
	Keep                // it is one of the headers
	Skip                // it is known now, and not needed any more
)

// Reader reads heads, one after the other. It remembers the lines of the one before,
// for most of them come again with every message, and how names are spelt properly,
// for those who spell them otherwise do so each time. The zero value is ready; it is
// not safe for concurrent use.
type Reader struct {
	lines []field
	names map[string]string
}

// field is a line, and what it says.
type field struct{ line, key, value string }

// How much of a peer's is remembered.
const (
	mostLines = 32
	mostNames = 64
)

// Read reads lines up to the empty one at their end; heed judges each. The headers
// share the memory of lines.
func (r *Reader) Read(lines string, heed func(key, value string) Verdict) (http.Header, bool) {
	if !strings.HasSuffix(lines, "\r\n") {
		return nil, false
	}
	count := strings.Count(lines, "\n")
	// One line is empty and one is a request's Host: eight headers, as requests often
	// have, fit into the smallest map there is.
	headers := make(http.Header, max(0, count-2))
	values := make([]string, count)
	for i := 0; lines != "\r\n"; i++ {
		line, rest, _ := strings.Cut(lines, "\r\n")
		lines = rest
		key, value, ok := r.field(i, line)
		if !ok {
			return nil, false
		}
		switch heed(key, value) {
		case Odd:
			return nil, false
		case Skip:
			continue
		case Keep:
		}
		if before := headers[key]; before != nil {
			headers[key] = append(before, value)
			continue
		}
		values[i] = value
		headers[key] = values[i : i+1 : i+1]
	}
	return headers, true
}

// field reads one line, which is the same as in the message before more often than
// not.
func (r *Reader) field(i int, line string) (key, value string, ok bool) {
	if i < len(r.lines) && r.lines[i].line == line {
		return r.lines[i].key, r.lines[i].value, true
	}
	if key, value, ok = r.parse(line); !ok {
		return "", "", false
	}
	switch {
	case i < len(r.lines):
		r.lines[i] = field{line, key, value}
	case i < mostLines:
		r.lines = append(r.lines, field{line, key, value})
	}
	return key, value, true
}

func (r *Reader) parse(line string) (key, value string, ok bool) {
	name, value, found := strings.Cut(line, ":")
	if !found || !IsName(name) {
		return "", "", false
	}
	value = strings.Trim(value, " \t")
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "", "", false
		}
	}
	return r.proper(name), value, true
}

// proper is a name as Go spells it.
func (r *Reader) proper(name string) string {
	if key, known := r.names[name]; known {
		return key
	}
	key := textproto.CanonicalMIMEHeaderKey(name)
	if key != name && len(r.names) < mostNames {
		if r.names == nil {
			r.names = map[string]string{}
		}
		r.names[strings.Clone(name)] = key
	}
	return key
}

// IsName tells whether a header may plainly be called so.
func IsName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return name != ""
}

// Frames judges what a header says about where its message ends. length is that of
// the body, -1 until a header has said it. What says more than a length, or says it
// twice, is odd.
func Frames(key, value string, length *int64) Verdict {
	switch key {
	case "Content-Length":
		if *length >= 0 {
			return Odd
		}
		if *length = Number(value); *length < 0 {
			return Odd
		}
	case "Connection":
		if !strings.EqualFold(value, "keep-alive") {
			return Odd
		}
	case "Transfer-Encoding", "Trailer", "Upgrade", "Pragma":
		return Odd
	}
	return Keep
}

// Number is a length of at most six digits, or -1 when it is none or larger.
func Number(text string) int64 {
	if text == "" || len(text) > 6 {
		return -1
	}
	sum := int64(0)
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' {
			return -1
		}
		sum = 10*sum + int64(c-'0')
	}
	return sum
}
