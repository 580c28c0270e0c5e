package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/cancel"
	"github.com/luanette/luanette/internal/base/header"
	"github.com/luanette/luanette/internal/base/sock"
)

// directConn is a connection that serves one request at a time.
type directConn struct {
	pool   *direct
	conn   *sock.Conn
	in     *bufio.Reader
	lines  header.Reader
	head   int // how much more of a header may come; negative: what comes is no header
	reused bool
	since  time.Time // since when it is not used

	onEnd func()       // hangUp, made once
	watch cancel.Watch // over the context of the request
}

func newDirectConn(pool *direct, conn net.Conn) *directConn {
	c := &directConn{pool: pool, conn: sock.New(conn)}
	c.in, c.onEnd = bufio.NewReader(c), c.hangUp
	return c
}

// Read reads what the server sends, which is not to begin with an endless header.
func (c *directConn) Read(p []byte) (int, error) {
	if c.head == 0 {
		return 0, errLongHead
	}
	n, err := c.conn.Read(p)
	if c.head > 0 {
		c.head = max(0, c.head-n)
	}
	return n, err
}

func (c *directConn) close() { _ = c.conn.Close() } // there is nobody to tell

// hangUp ends whatever is going on with the connection.
func (c *directConn) hangUp() { _ = c.conn.SetDeadline(time.Unix(1, 0)) }

// exchange writes a message and reads the answer as far as its body, which is to
// be closed. When ctx ends, whatever is going on with the connection ends.
func (c *directConn) exchange(ctx context.Context, message []byte) (response, error) {
	c.watch.Begin(ctx, &c.pool.vigil, c.onEnd)
	r, err := c.ask(message)
	switch {
	case err != nil:
		c.release(false)
	case r.body == nil || r.body == http.NoBody:
		c.release(!r.last)
	default:
		r.body = &directAnswer{ReadCloser: r.body, conn: c, keep: !r.last}
	}
	return r, err
}

// release lets the connection serve the next request, if nothing speaks against it.
func (c *directConn) release(keep bool) {
	if c.watch.End() && keep && c.in.Buffered() == 0 {
		c.pool.put(c)
		return
	}
	c.close()
}

func (c *directConn) ask(message []byte) (response, error) {
	if n, err := c.conn.Write(message); err != nil {
		if n == 0 {
			err = errors.Join(errUnwritten, err)
		}
		return response{}, err
	}
	for {
		c.head = directHead
		r, err := c.readResponse()
		c.head = -1
		switch {
		case errors.Is(err, errLongHead):
			return response{}, errLongHead
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
			return response{}, fmt.Errorf("the connection was closed without an answer: %w", io.ErrUnexpectedEOF)
		case err != nil:
			return response{}, err
		case r.code == http.StatusSwitchingProtocols:
			return response{}, errors.New("server wants to speak another protocol")
		case r.code >= 200:
			return r, nil
		}
	}
}

// directAnswer is an answer's body. When it was read to its end, its connection
// serves the next request.
type directAnswer struct {
	io.ReadCloser
	conn *directConn
	keep bool
	over bool

	lingers bool // its request is over
}

func (a *directAnswer) Read(p []byte) (int, error) {
	if a.over {
		return 0, io.EOF
	}
	n, err := a.ReadCloser.Read(p)
	if err != nil {
		a.end(err == io.EOF)
	}
	return n, err
}

// linger has the rest of the answer end within so long, and not with its request any
// more.
func (a *directAnswer) linger(limit time.Duration) {
	if !a.over {
		a.keep = a.conn.watch.End() && a.conn.conn.SetReadDeadline(time.Now().Add(limit)) == nil && a.keep
		a.lingers = true
	}
}

// Close gives up what was not read, and the connection with it.
func (a *directAnswer) Close() error {
	a.end(false)
	return nil
}

// end lets go of the connection.
func (a *directAnswer) end(whole bool) {
	if a.over {
		return
	}
	a.over = true
	keep := whole && a.keep
	if a.lingers {
		keep = keep && a.conn.conn.SetReadDeadline(time.Time{}) == nil
	}
	a.conn.release(keep)
}
