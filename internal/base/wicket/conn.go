package wicket

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/cancel"
	"github.com/luanette/luanette/internal/base/header"
	"github.com/luanette/luanette/internal/base/sock"
)

// How much of a request is held in memory before its handler sees it. What is
// larger is for net/http, which lets handlers read as it comes.
const (
	usual   = 8 << 10
	largest = 64 << 10
)

// phase is what a connection does; each may take its own time.
type phase int32

const (
	fresh     phase = iota // nothing was asked yet
	idle                   // the last answer is written
	gathering              // a head has come, its body not wholly
	serving
	writing
)

// conn is one client's connection.
type conn struct {
	server *Server
	peer   *sock.Conn
	here   context.Context // of all its requests
	remote string

	in         []byte // what was read
	start, end int    // what of it is not yet used
	sender     sender
	headers    http.Header // memory for answers
	body, out  []byte

	phase atomic.Int32
	since atomic.Int64 // when it began, by the guard's clock

	mu       sync.Mutex
	serving  *exchange     // or nil
	watching chan struct{} // closed when nobody listens any more whether the client leaves; nil: nobody ever did
	leaving  bool          // no more requests
}

func newConn(s *Server, peer net.Conn) *conn {
	c := &conn{server: s, peer: sock.New(peer), remote: peer.RemoteAddr().String(), in: make([]byte, usual)}
	c.here = context.WithValue(s.base, http.LocalAddrContextKey, peer.LocalAddr())
	c.enter(fresh)
	return c
}

func (c *conn) enter(p phase) {
	c.since.Store(c.server.clock.Load())
	c.phase.Store(int32(p))
}

// converse serves the client's requests one after the other, as long as they fit.
func (c *conn) converse() {
	defer c.server.conns.Delete(c)
	fits, more := true, true
	for fits && more {
		fits, more = c.attend()
	}
	if !fits {
		c.handOver()
		return
	}
	_ = c.peer.Close() // nothing is left to be said
}

// attend serves one request. fits tells that net/http was not needed for it, more
// that another may follow.
func (c *conn) attend() (fits, more bool) {
	e, fits := c.next()
	if !fits || e == nil {
		return fits, false
	}
	return true, c.serve(e) && c.rest()
}

// next reads a request. It is nil when there is none; fits tells that net/http is
// not needed for what came.
func (c *conn) next() (e *exchange, fits bool) {
	for c.start == c.end {
		if !c.read() {
			return nil, true
		}
	}
	c.server.wake()
	c.enter(gathering)
	length := header.Length(c.in[c.start:c.end])
	if length == 0 {
		return nil, false
	}
	e = &exchange{ctx: &cancel.Context{}}
	e.ctx.Begin(c.here)
	if !e.parse(&c.sender, c.in[c.start:c.start+length]) {
		return nil, false
	}
	whole := length + int(e.request.ContentLength)
	if whole > largest {
		return nil, false
	}
	c.makeRoom(whole)
	for c.end-c.start < whole {
		if !c.read() {
			c.complain()
			return nil, true
		}
	}
	e.bring(c.in[c.start+length : c.start+whole])
	e.request.RemoteAddr = c.remote
	c.start += whole
	return e, true
}

// makeRoom sees to it that a request of so many bytes can be read.
func (c *conn) makeRoom(whole int) {
	if c.start+whole <= len(c.in) {
		return
	}
	room := c.in
	if whole > len(room) {
		room = make([]byte, whole)
	}
	c.end = copy(room, c.in[c.start:c.end])
	c.start, c.in = 0, room
}

// read waits for more, and tells whether some came.
func (c *conn) read() bool {
	n, _ := c.peer.Read(c.in[c.end:]) // what is wrong with it will be wrong the next time too
	c.end += n
	return n > 0
}

// complain tells a client why nobody waits for the rest of its request. It may have
// left.
func (c *conn) complain() {
	const text = "the request's body came too slowly\n"
	_, _ = fmt.Fprintf(c.peer, "HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
}

// serve answers a request, and tells whether another may follow.
func (c *conn) serve(e *exchange) (more bool) {
	c.mu.Lock()
	c.serving = e
	c.mu.Unlock()
	c.enter(serving)
	e.answer.begin(c)
	whole := c.handle(&e.answer, &e.request)
	alone := c.stopWatching()
	e.ctx.End()
	return whole && e.answer.finish() && alone
}

// handle runs the handler. What panics loses its connection, and nothing else.
func (c *conn) handle(a *answer, r *http.Request) (whole bool) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // it is panicked with itself
			c.server.logf("wicket: panic serving %s: %v\n%s", c.remote, p, debug.Stack())
		}
	}()
	c.server.main.Handler.ServeHTTP(a, r)
	return true
}

func (s *Server) logf(format string, args ...any) {
	if s.main.ErrorLog != nil {
		s.main.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}

// rest makes ready for the next request, and tells whether there may be one.
func (c *conn) rest() bool {
	if c.start == c.end {
		c.start, c.end = 0, 0
		if len(c.in) > usual { // it was needed once
			c.in = make([]byte, usual)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enter(idle)
	return !c.leaving
}

// keep takes the memory of an answer back, unless it was a large one.
func (c *conn) keep(headers http.Header, body, out []byte) {
	c.headers, c.body, c.out = headers, body, out
	if len(headers) > usualHeaders {
		c.headers = nil
	}
	if cap(body)+cap(out) > 2*usual {
		c.body, c.out = nil, nil
	}
	clear(c.headers)
}

func (c *conn) isLeaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving
}

// watch begins to listen whether the client leaves before it is answered. What it
// says instead is kept for later.
func (c *conn) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serving == nil || c.watching != nil {
		return
	}
	if c.end == len(c.in) {
		return // it has said so much more already that it seems to be there
	}
	c.watching = make(chan struct{})
	go c.listen(c.watching, c.serving)
}

func (c *conn) listen(done chan struct{}, e *exchange) {
	defer close(done)
	n, err := c.peer.Read(c.in[c.end:])
	c.end += n
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) { // that is what ends it when the answer is there
		e.ctx.Cancel(errLeft)
	}
}

// stopWatching takes the connection back for the next request, and tells whether
// there is still a client at the other end of it.
func (c *conn) stopWatching() bool {
	c.mu.Lock()
	done := c.watching
	c.serving, c.watching = nil, nil
	c.mu.Unlock()
	if done == nil {
		return true
	}
	c.interrupt()
	<-done
	return c.peer.SetReadDeadline(time.Time{}) == nil
}

// interrupt ends whatever reads from the connection.
func (c *conn) interrupt() {
	_ = c.peer.SetReadDeadline(time.Unix(1, 0)) // it fails only on what is closed, where nobody reads
}

// dismiss sends a client away that has asked for nothing.
func (c *conn) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
	if p := phase(c.phase.Load()); p == fresh || p == idle {
		_ = c.peer.Close() // that is what is wanted
	}
}

// hangUp ends the connection, whatever is under way.
func (c *conn) hangUp(why error) {
	c.mu.Lock()
	e := c.serving
	c.mu.Unlock()
	if e != nil {
		e.ctx.Cancel(why)
	}
	_ = c.peer.Close() // that is what is wanted
}

// handOver gives the connection to net/http, with all that was read of it.
func (c *conn) handOver() {
	select {
	case c.server.handed.conns <- &begun{c.peer, c.in[c.start:c.end]}:
	case <-c.server.closed:
		_ = c.peer.Close() // nobody serves it any more
	}
}
