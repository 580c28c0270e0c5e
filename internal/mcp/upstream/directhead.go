package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net/http"

	"github.com/luanette/luanette/internal/base/header"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// readResponse reads the head of an answer. The plain kind, which nearly all are,
// is read here, for less; whatever else comes is net/http's.
func (c *directConn) readResponse() (response, error) {
	if _, err := c.in.Peek(1); err == nil {
		there, _ := c.in.Peek(c.in.Buffered()) // which cannot fail
		length := header.Length(there)
		if plain, ok := c.parse(there[:length]); ok {
			_, _ = c.in.Discard(length) // as above
			c.begin(&plain)
			return plain, nil
		}
	}
	return received(http.ReadResponse(c.in, nil)) //nolint:bodyclose // whoever gets the response closes it
}

var success = []byte("HTTP/1.1 200 OK\r\n")

// parse reads a head that says 200 and how long the body is, and nothing else that
// matters to where it ends.
func (c *directConn) parse(head []byte) (response, bool) {
	lines, plain := bytes.CutPrefix(head, success)
	if !plain {
		return response{}, false
	}
	r := response{code: http.StatusOK, status: "200 OK", length: -1}
	ok := c.lines.Scan(lines, func(key, value string) header.Verdict {
		switch {
		case key == "Content-Type" && r.kind == "":
			r.kind = value
		case key == wire.HeaderSession && r.session == "":
			r.session = value
		}
		return header.Frames(key, value, &r.length)
	})
	return r, ok && r.length >= 0
}

// begin reads what came of the body, if that is all of it.
func (c *directConn) begin(r *response) {
	if r.length > int64(c.in.Buffered()) {
		r.body = &measured{c.in, r.length}
		return
	}
	r.whole = make([]byte, r.length)
	_, _ = io.ReadFull(c.in, r.whole) // which cannot fail
}

// measured is a body of a known length.
type measured struct {
	in   *bufio.Reader
	left int64
}

func (m *measured) Read(p []byte) (int, error) {
	if m.left == 0 {
		return 0, io.EOF
	}
	n, err := m.in.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	switch {
	case m.left == 0:
		err = io.EOF // who reads on need not be asked for
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (*measured) Close() error { return nil }
