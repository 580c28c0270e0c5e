package wicket

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/base/cancel"
	"github.com/luanette/luanette/internal/base/header"
)

// exchange is a request and its answer, in one piece of memory.
type exchange struct {
	ctx     *cancel.Context // by itself, for whoever keeps it longer than the rest
	request http.Request
	url     url.URL
	body    Body
	answer  answer
}

// parse reads a head. What is unusual in any way is not ok: others shall judge it.
func (e *exchange) parse(from *sender, head []byte) (ok bool) {
	line, rest, _ := strings.Cut(string(head), "\r\n") // everything below is cut out of it
	target, ok := targetOf(line)
	if !ok || !from.locate(target) {
		return false
	}
	r := &e.request
	*r, e.url = *plain.WithContext(e.ctx), from.url
	r.URL, r.RequestURI = &e.url, target
	r.Header, ok = from.lines.Read(rest, func(key, value string) header.Verdict { return frames(r, key, value) })
	return ok && r.Host != "" && r.ContentLength >= 0
}

// plain is what all requests have in common that go through here.
var plain = &http.Request{Method: http.MethodPost, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1}

// sender is what is remembered of a client's last request: the next is much the same.
type sender struct {
	lines  header.Reader
	target string
	url    url.URL // what target says
}

// locate reads a request's target, and tells whether it is one.
func (s *sender) locate(target string) bool {
	if target == s.target {
		return true
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return false
	}
	s.target, s.url = target, *u
	return true
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

// frames takes note of what a header says about where requests begin and end, and
// leaves those to others that want more than an answer.
func frames(r *http.Request, key, value string) header.Verdict {
	switch key {
	case "Host":
		if r.Host != "" || !isHost(value) {
			return header.Odd
		}
		r.Host = value
		return header.Skip
	case "Expect", "Te":
		return header.Odd
	}
	return header.Frames(key, value, &r.ContentLength)
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

// bring is what has come of the request's body: all of it.
func (e *exchange) bring(all []byte) {
	e.request.Body = http.NoBody
	if len(all) > 0 {
		e.body.left = all
		e.request.Body = &e.body
	}
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
