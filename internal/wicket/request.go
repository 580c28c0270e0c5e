package wicket

import (
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// names remembers how header names are spelt properly, for those who spell them
// otherwise do so in every request.
type names map[string]string

// mostNames is how many a connection may teach us.
const mostNames = 64

// headLength is how long a request's head is, with the empty line after it; 0 when
// it is not there wholly.
func headLength(in []byte) int {
	if end := bytes.Index(in, []byte("\r\n\r\n")); end >= 0 {
		return end + 4
	}
	return 0
}

// parse reads a head. What is unusual in any way is not ok: others shall judge it.
func (n *names) parse(head []byte) (r *http.Request, ok bool) {
	text := string(head) // everything below is cut out of it
	line, rest, _ := strings.Cut(text, "\r\n")
	target, ok := targetOf(line)
	if !ok {
		return nil, false
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, false
	}
	r = &http.Request{
		Method: http.MethodPost, URL: u, RequestURI: target,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}
	count := strings.Count(rest, "\n")
	r.Header = make(http.Header, count)
	values := make([]string, count)
	for i := 0; rest != "\r\n"; i++ {
		line, rest, _ = strings.Cut(rest, "\r\n")
		key, value, ok := n.field(line)
		if !ok || !frames(r, key, value) {
			return nil, false
		}
		if key == "Host" {
			continue
		}
		if before := r.Header[key]; before != nil {
			r.Header[key] = append(before, value)
			continue
		}
		values[i] = value
		r.Header[key] = values[i : i+1 : i+1]
	}
	return r, r.Host != "" && r.ContentLength >= 0
}

// targetOf is what a plain request line asks for.
func targetOf(line string) (string, bool) {
	target, posted := strings.CutPrefix(line, "POST /")
	target, plain := strings.CutSuffix(target, " HTTP/1.1")
	if !posted || !plain {
		return "", false
	}
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c >= 0x7f {
			return "", false
		}
	}
	return line[len("POST ") : len(line)-len(" HTTP/1.1")], true
}

// field is one line of a head.
func (n *names) field(line string) (key, value string, ok bool) {
	name, value, found := strings.Cut(line, ":")
	if !found || !isToken(name) {
		return "", "", false
	}
	value = strings.Trim(value, " \t")
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "", "", false
		}
	}
	return n.proper(name), value, true
}

// proper is a name as Go spells it.
func (n *names) proper(name string) string {
	if key, known := (*n)[name]; known {
		return key
	}
	key := textproto.CanonicalMIMEHeaderKey(name)
	if key != name && len(*n) < mostNames {
		if *n == nil {
			*n = names{}
		}
		(*n)[strings.Clone(name)] = key
	}
	return key
}

// frames takes note of what a header says about where requests begin and end. What
// says more than a length, or says it twice, is not for us.
func frames(r *http.Request, key, value string) bool {
	switch key {
	case "Host":
		if r.Host != "" || !isHost(value) {
			return false
		}
		r.Host = value
	case "Content-Length":
		if r.ContentLength >= 0 {
			return false
		}
		r.ContentLength = number(value)
		return r.ContentLength >= 0
	case "Connection":
		return strings.EqualFold(value, "keep-alive")
	case "Transfer-Encoding", "Expect", "Upgrade", "Trailer", "Te", "Pragma":
		return false
	}
	return true
}

// number is a length, or -1 when it is none or too large to be for us.
func number(text string) int64 {
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

// isToken tells whether a header may be called so.
func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return name != ""
}

// isHost tells whether a plain name or address, with a port or without, is meant.
func isHost(value string) bool {
	for i := range len(value) {
		c := value[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._:[]", c) >= 0) {
			return false
		}
	}
	return value != ""
}

// Body is a request's that has come wholly, before its handler was called.
type Body struct{ left []byte }

func newBody(all []byte) io.ReadCloser {
	if len(all) == 0 {
		return http.NoBody
	}
	return &Body{all}
}

func (b *Body) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// Close forgets the rest: the memory is used for the next request.
func (b *Body) Close() error {
	b.left = nil
	return nil
}
