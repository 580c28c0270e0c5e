package wicket

import (
	"bufio"
	"bytes"
	"net/http"
	"reflect"
	"testing"

	"github.com/luanette/luanette/internal/base/cancel"
	"github.com/luanette/luanette/internal/base/header"
)

// Whatever goes through the small door means the same to net/http: who sends it
// cannot make the two see different requests.
func FuzzRequest(f *testing.F) {
	for _, text := range []string{
		"POST /mcp HTTP/1.1\r\nHost: a:1\r\nContent-Length: 2\r\n\r\n{}",
		"POST /a?b=%20 HTTP/1.1\r\nhost: a\r\nContent-length: 0\r\nx-y: 1\r\nX-Y: 2\r\nConnection: keep-alive\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST //b HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 00\r\nCookie: a=b; c\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\n\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		e := exchange{ctx: &cancel.Context{}}
		if !e.parse(&sender{}, in[:header.Length(in)]) {
			return
		}
		ours := &e.request
		theirs, err := http.ReadRequest(bufio.NewReaderSize(bytes.NewReader(in), len(in)+16))
		if err != nil {
			t.Fatalf("let through what net/http refuses: %v\n%q", err, in)
		}
		if ours.Method != theirs.Method || ours.RequestURI != theirs.RequestURI || ours.Host != theirs.Host ||
			ours.ContentLength != theirs.ContentLength || len(theirs.TransferEncoding) > 0 || theirs.Close ||
			!reflect.DeepEqual(ours.URL, theirs.URL) || !reflect.DeepEqual(ours.Header, theirs.Header) {
			t.Errorf("ours   %+v\ntheirs %+v", ours, theirs)
		}
	})
}
