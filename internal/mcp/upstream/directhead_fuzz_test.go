package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"reflect"
	"testing"
)

// Whatever is read without net/http means the same to it.
func FuzzDirectHead(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nMcp-Session-Id: s\r\nmcp-session-id: t\r\nContent-Type: a\r\nContent-Type: b\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\nX: a\r\nx: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
	} {
		f.Add([]byte(text))
	}
	read := func(r response, err error) (response, []byte, error) {
		if err != nil {
			return response{}, nil, err
		}
		body, err := io.ReadAll(r.reader())
		r.body, r.whole = nil, nil
		return r, body, err
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		c := &directConn{head: -1, in: bufio.NewReaderSize(bytes.NewReader(in), len(in)+16)}
		ours, ourBody, ourErr := read(c.readResponse())
		theirs, theirBody, theirErr := read(received(http.ReadResponse(bufio.NewReader(bytes.NewReader(in)), nil)))
		if ours.others == nil {
			theirs.others = nil // nobody asks for more of a plain success
		}
		if (ourErr == nil) != (theirErr == nil) || !bytes.Equal(ourBody, theirBody) || !reflect.DeepEqual(ours, theirs) {
			t.Errorf("ours   %+v %q %v\ntheirs %+v %q %v", ours, ourBody, ourErr, theirs, theirBody, theirErr)
		}
	})
}
