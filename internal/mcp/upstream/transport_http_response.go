package upstream

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// response is what came back for a dispatch, whichever way it went: of its head what
// somebody asks for, and its body, which is to be closed.
type response struct {
	code    int
	status  string // the code and its words
	kind    string // of the body, as its header says
	session string
	length  int64       // of the body; below zero where it is not known
	last    bool        // the connection serves no other
	others  http.Header // nil for a plain success

	body  io.ReadCloser // nil where all of it came with the head
	whole []byte        // which is then here
}

// received is a response that the standard library read.
func received(r *http.Response, err error) (response, error) {
	if err != nil {
		return response{}, err
	}
	return response{
		code: r.StatusCode, status: r.Status, length: r.ContentLength, last: r.Close,
		kind: r.Header.Get("Content-Type"), session: r.Header.Get(wire.HeaderSession), others: r.Header, body: r.Body,
	}, nil
}

// media is the media type of the body.
func (r *response) media() string { return wire.MediaType(r.kind) }

func (r *response) close() {
	if r.body != nil {
		r.body.Close()
	}
}

// reader is the body for those who read it piece by piece.
func (r *response) reader() io.ReadCloser {
	if r.body != nil {
		return r.body
	}
	return io.NopCloser(bytes.NewReader(r.whole))
}

// read reads all of the body, into just as much memory as it takes where it is small
// and said its size.
func (r *response) read(limit int) ([]byte, error) {
	if r.body == nil && len(r.whole) <= limit {
		return r.whole, nil
	}
	if r.length <= 0 || r.length > directBody || r.length > int64(limit) {
		return readBody(r.reader(), limit)
	}
	body := make([]byte, r.length)
	if _, err := io.ReadFull(r.body, body); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return body, nil
}

// start reads as much of the body as is shown to people.
func (r *response) start() ([]byte, error) {
	return readBody(io.LimitReader(r.reader(), maxExcerpt), maxExcerpt)
}

// fault is the response as an error: its status is no answer.
func (r *response) fault(body []byte) error {
	return &statusError{
		Code:      r.code,
		Status:    r.status,
		Challenge: clean(strings.Join(r.others.Values("WWW-Authenticate"), ", ")),
		Body:      excerpt(body),
	}
}

func readBody(body io.Reader, limit int) ([]byte, error) {
	var buffer bytes.Buffer
	n, err := buffer.ReadFrom(io.LimitReader(body, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if n > int64(limit) {
		return nil, fmt.Errorf("read answer over %d bytes: %w", limit, wire.ErrTooLarge)
	}
	return buffer.Bytes(), nil
}
