package upstream

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// dispatch is one HTTP request to the server, before anybody knows which way it goes:
// directly, or through the standard library.
type dispatch struct {
	method  string
	to      *url.URL
	headers []Header // besides the client's own, which they stand over
	token   string   // of a login; empty for none
	body    []byte   // nil for none
}

// request is the dispatch for the standard library, which can send it as often as it
// must.
func (c *client) request(ctx context.Context, d *dispatch) (*http.Request, error) {
	var body io.Reader
	if d.body != nil {
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
	for _, h := range d.headers {
		request.Header.Set(h.Name, h.Value)
	}
	if d.token != "" {
		request.Header.Set("Authorization", "Bearer "+d.token)
	}
	return request, nil
}

// preface is what all messages that are sent directly begin with. It is not ok where
// the client's own headers are none, or might be said again by a dispatch.
func (c *client) preface() (text []byte, ok bool) {
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

// appendTo writes the dispatch as it goes over the wire, after the preface.
func (d *dispatch) appendTo(out []byte) (_ []byte, ok bool) {
	for _, h := range d.headers {
		if out, ok = appendHeader(out, h.Name, h.Value); !ok {
			return out, false
		}
	}
	if d.token != "" {
		if out, ok = appendHeader(out, "Authorization", "Bearer "+d.token); !ok {
			return out, false
		}
	}
	out = strconv.AppendInt(append(out, "Content-Length: "...), int64(len(d.body)), 10)
	return append(append(out, "\r\n\r\n"...), d.body...), true
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
