package upstream

import (
	"bufio"
	"io"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/header"
)

// readResponse reads the head of an answer. The plain kind, which nearly all are,
// is read here, for less; whatever else comes is net/http's.
func (c *directConn) readResponse() (*http.Response, error) {
	if _, err := c.in.Peek(1); err == nil {
		there, _ := c.in.Peek(c.in.Buffered()) // which cannot fail
		length := header.Length(there)
		if response, ok := c.parse(there[:length]); ok {
			_, _ = c.in.Discard(length) // as above
			response.Body = http.NoBody
			if response.ContentLength > 0 {
				response.Body = &measured{c.in, response.ContentLength}
			}
			return response, nil
		}
	}
	return http.ReadResponse(c.in, nil)
}

// parse reads a head that says 200 and how long the body is, and nothing else that
// matters to where it ends.
func (c *directConn) parse(head []byte) (*http.Response, bool) {
	lines, plain := strings.CutPrefix(string(head), "HTTP/1.1 200 OK\r\n")
	if !plain {
		return nil, false
	}
	response := &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}
	var ok bool
	response.Header, ok = c.lines.Read(lines, func(key, value string) header.Verdict {
		return header.Frames(key, value, &response.ContentLength)
	})
	return response, ok && response.ContentLength >= 0
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
