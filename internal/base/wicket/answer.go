package wicket

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/header"
)

const (
	held         = 32 << 10 // of an answer, until its length is known
	usualHeaders = 8        // of an answer; as many as fit into the smallest map there is
)

// answer is what the handler writes. As long as it is small and nobody asks for it
// to be sent, it goes out in one piece; from then on in chunks, unless its length
// was said.
type answer struct {
	conn   *conn
	header http.Header
	status int    // 0: not said yet
	body   []byte // held back
	out    []byte // on its way
	length int64  // as the handler said it, or -1
	wrote  int64  // of the body
	sent   bool   // the head is on its way
	chunks bool
	last   bool // the client was told that nothing follows
	over   bool // the handler has returned
	err    error
}

// begin makes ready for what the handler writes, in the memory of the answer before.
func (a *answer) begin(c *conn) {
	*a = answer{conn: c, header: c.headers, body: c.body[:0], out: c.out[:0], length: -1}
	if a.header == nil {
		a.header = make(http.Header, usualHeaders)
	}
	c.headers, c.body, c.out = nil, nil, nil
}

func (a *answer) Header() http.Header {
	if a.header == nil { // it is sent, and its memory is the next answer's
		a.header = http.Header{}
	}
	return a.header
}

func (a *answer) WriteHeader(status int) {
	if a.status != 0 || status < http.StatusOK { // what comes before the real one is of no use to anybody here
		return
	}
	a.status = status
	if said := a.header["Content-Length"]; len(said) > 0 {
		a.length = header.Number(said[0])
		if a.length < 0 {
			delete(a.header, "Content-Length")
		}
	}
}

func (a *answer) Write(p []byte) (int, error) {
	if a.over {
		return 0, http.ErrHandlerTimeout
	}
	a.WriteHeader(http.StatusOK)
	a.wrote += int64(len(p))
	switch {
	case !hasBody(a.status):
		return 0, http.ErrBodyNotAllowed
	case a.length >= 0 && a.wrote > a.length:
		return 0, http.ErrContentLength
	case !a.sent && len(a.body)+len(p) <= held:
		a.body = append(a.body, p...)
		return len(p), nil
	case !a.sent:
		a.stream()
	}
	a.append(p)
	return len(p), a.err
}

// stream begins to send, with all that was held back.
func (a *answer) stream() {
	a.chunks = a.length < 0 && hasBody(a.status)
	a.settle(a.body)
	a.out = a.appendHead(a.out)
	a.sent = true
	a.append(a.body)
}

// append puts some of the body on its way: in pieces, each of which has its time to
// be taken.
func (a *answer) append(p []byte) {
	for len(p) > 0 { // an empty chunk would be the last
		piece := p[:min(len(p), held)]
		p = p[len(piece):]
		if a.chunks {
			a.out = append(strconv.AppendInt(a.out, int64(len(piece)), 16), "\r\n"...)
		}
		a.out = append(a.out, piece...)
		if a.chunks {
			a.out = append(a.out, "\r\n"...)
		}
		if len(a.out) >= held {
			a.send()
		}
	}
}

// send writes to the client what is on its way.
func (a *answer) send() {
	if a.err == nil && len(a.out) > 0 {
		a.conn.enter(writing)
		_, a.err = a.conn.peer.Write(a.out)
		a.conn.enter(serving)
	}
	a.out = a.out[:0]
}

// FlushError sends what was written so far; http.ResponseController calls it.
func (a *answer) FlushError() error {
	if a.over {
		return http.ErrHandlerTimeout
	}
	a.WriteHeader(http.StatusOK)
	if !a.sent {
		a.stream()
	}
	a.send()
	return a.err
}

// Flush is FlushError for those who do not ask what became of it.
func (a *answer) Flush() { _ = a.FlushError() } // the next Write tells

// SetReadDeadline is for http.ResponseController. There is nothing left to be read
// of a request that is here.
func (a *answer) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline is for http.ResponseController.
func (a *answer) SetWriteDeadline(t time.Time) error { return a.conn.peer.SetWriteDeadline(t) }

// finish sends the rest, and tells whether the connection may be used again.
func (a *answer) finish() (more bool) {
	a.WriteHeader(http.StatusOK)
	switch {
	case !a.sent:
		if a.length < 0 && hasBody(a.status) {
			a.length = int64(len(a.body))
		}
		a.stream()
	case a.chunks:
		a.out = append(a.out, "0\r\n\r\n"...)
	}
	a.send()
	a.over = true
	a.conn.keep(a.header, a.body, a.out)
	a.header, a.body, a.out = nil, nil, nil
	return a.err == nil && !a.last && (a.chunks || !hasBody(a.status) || a.wrote == a.length)
}

// settle says what must be said and the handler did not say.
func (a *answer) settle(body []byte) {
	if !hasBody(a.status) {
		delete(a.header, "Content-Length")
		delete(a.header, "Content-Type")
	} else if a.header["Content-Type"] == nil && len(body) > 0 {
		a.header["Content-Type"] = []string{http.DetectContentType(body)}
	}
	a.last = strings.EqualFold(a.header.Get("Connection"), "close")
	if !a.last && a.conn.isLeaving() {
		a.last = true
		a.header["Connection"] = []string{"close"}
	}
}

func (a *answer) appendHead(out []byte) []byte {
	out = strconv.AppendInt(append(out, "HTTP/1.1 "...), int64(a.status), 10)
	out = append(append(append(out, ' '), http.StatusText(a.status)...), "\r\n"...)
	if a.header["Date"] == nil {
		out = append(append(append(out, "Date: "...), a.conn.server.date.now()...), "\r\n"...)
	}
	switch {
	case a.chunks:
		out = append(out, "Transfer-Encoding: chunked\r\n"...)
	case a.length >= 0 && hasBody(a.status) && a.header["Content-Length"] == nil:
		out = append(strconv.AppendInt(append(out, "Content-Length: "...), a.length, 10), "\r\n"...)
	}
	for name, values := range a.header {
		if !header.IsName(name) || name == "Transfer-Encoding" {
			continue
		}
		for _, value := range values {
			out = append(append(out, name...), ": "...)
			out = append(appendLine(out, value), "\r\n"...)
		}
	}
	return append(out, "\r\n"...)
}

// date is what answers are dated with, written once a second.
type date struct{ last atomic.Pointer[dated] }

type dated struct {
	second int64
	text   string
}

func (d *date) now() string {
	now := time.Now()
	last := d.last.Load()
	if last == nil || last.second != now.Unix() {
		last = &dated{now.Unix(), now.UTC().Format(http.TimeFormat)}
		d.last.Store(last)
	}
	return last.text
}

// appendLine writes a header's value, which cannot begin another line.
func appendLine(out []byte, value string) []byte {
	from := len(out)
	out = append(out, value...)
	for i := from; i < len(out); i++ {
		if out[i] == '\r' || out[i] == '\n' {
			out[i] = ' '
		}
	}
	return out
}

func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}
