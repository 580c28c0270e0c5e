package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// direct is HTTP/1.1 to one server without goroutines of its own: whoever asks
// writes the request and reads the answer. The standard library's transport has
// two for every connection, and handing each message to them and back costs more
// than all else we do with it.
//
// It sends messages of moderate size in the open; what is encrypted, goes through
// a proxy, is large or is not a POST takes the standard library's way.
type direct struct {
	address string
	dial    func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	idle   []*directConn // the one used last is last
	sweep  *time.Timer   // closes those nobody used for long; nil when there are none
	closed bool
}

const (
	directBody   = 64 << 10 // a larger one might be refused before it is sent whole
	directHead   = 64 << 10 // of an answer
	directKept   = 8 << 10  // of memory for the next message
	directIdle   = 64
	directUnused = 90 * time.Second
)

// rooms is memory for messages, which nobody needs any more when they are sent.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

// suits tells whether a request can be made this way.
func (d *direct) suits(r *http.Request, body []byte) bool {
	return d != nil && r.Method == http.MethodPost && body != nil && len(body) <= directBody
}

// roundTrip makes one request. A connection that its server has closed while it
// was not used is replaced.
func (d *direct) roundTrip(r *http.Request, body []byte) (*http.Response, error) {
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	message, err := appendRequest((*room)[:0], r, body)
	if err != nil {
		return nil, err
	}
	if cap(message) <= directKept {
		*room = message
	}
	for {
		c, err := d.take(r.Context())
		if err != nil {
			return nil, err
		}
		response, err := c.exchange(r, message)
		if err == nil || !errors.Is(err, errUnwritten) || !c.reused || r.Context().Err() != nil {
			return response, err
		}
	}
}

// appendRequest writes a request as it goes over the wire.
func appendRequest(out []byte, r *http.Request, body []byte) ([]byte, error) {
	out = append(append(append(out, "POST "...), r.URL.RequestURI()...), " HTTP/1.1\r\nHost: "...)
	out = append(append(out, r.Host...), "\r\n"...)
	for name, values := range r.Header {
		for _, value := range values {
			if !plainHeader(name, value) {
				return nil, fmt.Errorf("header %q cannot be sent", name)
			}
			out = append(append(append(append(out, name...), ": "...), value...), "\r\n"...)
		}
	}
	out = strconv.AppendInt(append(out, "Content-Length: "...), int64(len(body)), 10)
	return append(append(out, "\r\n\r\n"...), body...), nil
}

// plainHeader tells that a header is one, and only one.
func plainHeader(name, value string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == ':' || c >= 0x7f {
			return false
		}
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return name != ""
}

// take is a connection that is open, as far as can be told, or a new one.
func (d *direct) take(ctx context.Context) (*directConn, error) {
	for {
		d.mu.Lock()
		n := len(d.idle)
		if n == 0 {
			d.mu.Unlock()
			break
		}
		c := d.idle[n-1]
		d.idle[n-1] = nil
		d.idle = d.idle[:n-1]
		d.mu.Unlock()
		if c.silent() {
			c.reused = true
			return c, nil
		}
		c.close()
	}
	conn, err := d.dial(ctx, "tcp", d.address)
	if err != nil {
		return nil, err
	}
	return newDirectConn(d, conn), nil
}

// put keeps a connection for the next request.
func (d *direct) put(c *directConn) {
	c.since = time.Now()
	d.mu.Lock()
	keep := !d.closed && len(d.idle) < directIdle
	if keep {
		d.idle = append(d.idle, c)
		if d.sweep == nil {
			d.sweep = time.AfterFunc(directUnused/3, d.tidy)
		}
	}
	d.mu.Unlock()
	if !keep {
		c.close()
	}
}

// tidy closes what nobody used for long.
func (d *direct) tidy() {
	d.mu.Lock()
	old := 0
	for old < len(d.idle) && time.Since(d.idle[old].since) > directUnused {
		old++
	}
	unused := append([]*directConn{}, d.idle[:old]...)
	d.idle = append(d.idle[:0], d.idle[old:]...)
	d.sweep = nil
	if len(d.idle) > 0 {
		d.sweep = time.AfterFunc(directUnused/3, d.tidy)
	}
	d.mu.Unlock()
	for _, c := range unused {
		c.close()
	}
}

// close closes what is not in use, and keeps nothing from now on.
func (d *direct) close() {
	if d == nil {
		return
	}
	d.mu.Lock()
	idle := d.idle
	d.idle, d.closed = nil, true
	if d.sweep != nil {
		d.sweep.Stop()
	}
	d.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}

var (
	errUnwritten = errors.New("nothing could be sent")
	errLongHead  = errors.New("the answer's header is too long")
)

// bodyOf is a request's body when it is held in memory.
func bodyOf(r *http.Request) []byte {
	held, ok := r.Body.(*heldBody)
	if !ok {
		return nil
	}
	return held.data
}

// heldBody is a body in memory.
type heldBody struct {
	bytes.Reader
	data []byte
}

func hold(data []byte) *heldBody {
	b := &heldBody{data: data}
	b.Reset(data)
	return b
}

// holds makes the body anew, as often as it is asked for.
func holds(data []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return hold(data), nil }
}

func (*heldBody) Close() error { return nil }
