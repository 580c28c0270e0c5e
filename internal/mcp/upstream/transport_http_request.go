package upstream

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// dispatch is one HTTP request to the server, before anybody knows which way it goes:
// directly, or through the standard library.
type dispatch struct {
	method   string
	to       *url.URL
	accept   string   // what may come back; empty to say nothing of it
	session  string   // empty for none, as the revision
	revision string   // of the protocol
	asks     string   // the message's own method, where headers tell it
	about    string   // what it is about, likewise
	named    bool     // it is about something
	headers  []Header // others besides the client's own, which they stand over
	token    string   // of a login; empty for none
	body     []byte   // JSON; nil for none, or for that of
	draft    *draft   // which is nil for none
}

// all goes through the headers but the client's own, and the token.
func (d *dispatch) all(yield func(name, value string) bool) {
	if !d.known(yield) || d.draft != nil && !d.draft.eachHeader(yield) {
		return
	}
	for _, h := range d.headers {
		if !yield(h.Name, h.Value) {
			return
		}
	}
}

// cached goes through those that have a field of their own.
func (d *dispatch) known(yield func(name, value string) bool) bool {
	for _, h := range [...]Header{
		{wire.HeaderSession, d.session}, {wire.HeaderRevision, d.revision}, {"Content-Type", d.kind()},
		{"Accept", d.accept}, {wire.HeaderMethod, d.asks},
	} {
		if h.Value != "" && !yield(h.Name, h.Value) {
			return false
		}
	}
	return !d.named || yield(wire.HeaderName, wire.EncodeHeader(d.about))
}

// kind is that of the body.
func (d *dispatch) kind() string {
	if d.body == nil && d.draft == nil {
		return ""
	}
	return wire.ContentJSON
}

// size is about how long the body is.
func (d *dispatch) size() int {
	if d.draft != nil {
		return d.draft.size()
	}
	return len(d.body)
}

// appendBody writes the body.
func (d *dispatch) appendBody(out []byte) []byte {
	if d.draft != nil {
		return d.draft.append(out)
	}
	return append(out, d.body...)
}

// request is the dispatch for the standard library, which can send it as often as it
// must.
func (c *httpClient) request(ctx context.Context, d *dispatch) (*http.Request, error) {
	var body io.Reader
	switch {
	case d.draft != nil:
		body = bytes.NewReader(d.draft.append(nil))
	case d.body != nil:
		body = bytes.NewReader(d.body)
	}
	request, err := http.NewRequestWithContext(ctx, d.method, "", body)
	if err != nil {
		return nil, err
	}
	request.URL, request.Host = d.to, d.to.Host
	for name, values := range c.headers {
		request.Header[name] = values
	}
	for name, value := range d.all {
		request.Header.Set(name, value)
	}
	if d.token != "" {
		request.Header.Set("Authorization", "Bearer "+d.token)
	}
	return request, nil
}

// preface is what all messages that are sent directly begin with. It is not ok where
// the client's own headers are none, or might be said again by a dispatch.
func (c *httpClient) preface() (text []byte, ok bool) {
	text = append(append(append(text, "POST "...), c.url.RequestURI()...), " HTTP/1.1\r\nHost: "...)
	text = append(append(text, c.url.Host...), "\r\n"...)
	for name, values := range c.headers {
		if saidByDispatches(name) {
			return nil, false
		}
		for _, value := range values {
			if text, ok = appendHeader(text, name, value); !ok {
				return nil, false
			}
		}
	}
	return text, true
}

// saidByDispatches tells the headers that are not the client's to say.
func saidByDispatches(name string) bool {
	switch name = http.CanonicalHeaderKey(name); name {
	case "Accept", "Content-Type", "Content-Length", "Host", "Connection", "Transfer-Encoding", "Traceparent", "Tracestate", "Baggage", "Last-Event-Id":
		return true
	}
	return strings.HasPrefix(name, "Mcp-")
}

// write writes the dispatch after the preface, as it goes over the wire. all is what
// message is part of.
func (d *dispatch) write(preface []byte) (all, message []byte, ok bool) {
	all, ok = d.appendHead(preface)
	if !ok {
		return all, nil, false
	}
	head := len(all)
	all = append(all, lengthRoom...)
	start := len(all)
	all = d.appendBody(all)
	// The head ends with how long the body is, which is known now. It moves up to it.
	var room [len(lengthRoom)]byte
	length := append(strconv.AppendInt(room[:0], int64(len(all)-start), 10), "\r\n\r\n"...)
	message = all[start-len(length)-head:]
	copy(message, all[:head])
	copy(message[head:], length)
	return all, message, true
}

const lengthRoom = "00000000000000000000\r\n\r\n"

// appendHead writes the headers up to the last one's value, the length.
func (d *dispatch) appendHead(out []byte) (_ []byte, ok bool) {
	for name, value := range d.all {
		if out, ok = appendHeader(out, name, value); !ok {
			return out, false
		}
	}
	if d.token != "" {
		if out, ok = appendHeader(out, "Authorization", "Bearer "+d.token); !ok {
			return out, false
		}
	}
	return append(out, "Content-Length: "...), true
}

// appendHeader writes a header that is one, and only one.
func appendHeader(out []byte, name, value string) (_ []byte, ok bool) {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == ':' || c >= 0x7f {
			return out, false
		}
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return out, false
		}
	}
	return append(append(append(append(out, name...), ": "...), value...), "\r\n"...), name != ""
}
