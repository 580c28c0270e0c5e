package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
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
	preface []byte // how every message begins
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	vigil   clock.Vigil // over those who may not want to wait any more

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

// suits tells whether a dispatch can be sent this way.
func (d *direct) suits(m *dispatch) bool {
	return d != nil && m.method == http.MethodPost && (m.body != nil || m.draft != nil) && m.size() <= directBody
}

// roundTrip sends one dispatch. A connection that its server has closed while it was
// not used is replaced.
func (d *direct) roundTrip(ctx context.Context, m *dispatch) (response, error) {
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	all, message, ok := m.write(append((*room)[:0], d.preface...))
	if cap(all) <= directKept {
		*room = all
	}
	if !ok {
		return response{}, errors.New("a header cannot be sent as it is")
	}
	if ctx.Err() != nil { // nobody wants to know
		return response{}, context.Cause(ctx)
	}
	for {
		c, err := d.take(ctx)
		if err != nil {
			return response{}, err
		}
		r, err := c.exchange(ctx, message)
		if err == nil || !errors.Is(err, errUnwritten) || !c.reused || ctx.Err() != nil {
			return r, err
		}
	}
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
		if c.conn.Silent() { // what comes between two requests is its end, or nothing one would want to read
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
