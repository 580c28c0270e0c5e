package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// clientConn is a connection of the program.
type clientConn struct {
	net.Conn
	gateway *Gateway
	first   []byte // was read already, and is read first
	ended   sync.Once

	// Of a connection inside TLS that we read:
	to    destination
	track *track
}

// Read reads what was read already, then from the connection.
func (c *clientConn) Read(into []byte) (n int, err error) {
	if len(c.first) > 0 {
		n = copy(into, c.first)
		c.first = c.first[n:]
	} else {
		n, err = c.Conn.Read(into)
	}
	if c.track != nil {
		c.track.sent.Add(int64(n))
	}
	return n, err
}

// Write counts what the program receives.
func (c *clientConn) Write(from []byte) (n int, err error) {
	n, err = c.Conn.Write(from)
	if c.track != nil {
		c.track.received.Add(int64(n))
	}
	return n, err
}

// Close closes the connection and ends its record.
func (c *clientConn) Close() error {
	err := c.Conn.Close()
	c.ended.Do(func() {
		c.gateway.remove(c)
		<-c.gateway.slots
		if c.track != nil {
			c.gateway.service.end(c.track)
		}
	})
	return err
}

// CloseWrite tells the program that nothing follows.
func (c *clientConn) CloseWrite() error { return closeWrite(c.Conn) }

// peek reads what comes first, and leaves it to be read.
func (c *clientConn) peek(within time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	first := make([]byte, 1024)
	n, err := c.Conn.Read(first)
	if err != nil {
		return err
	}
	c.first = first[:n]
	return c.SetReadDeadline(time.Time{})
}

type connKey struct{}

// withConn makes the connection of a request known to its handler.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	return context.WithValue(ctx, connKey{}, conn)
}

// connOf is the connection on which a request came.
func connOf(r *http.Request) *clientConn {
	conn, _ := r.Context().Value(connKey{}).(*clientConn)
	return conn
}

// handoff is a listener of connections that were accepted elsewhere.
type handoff struct {
	conns chan net.Conn
	done  chan struct{}
	end   sync.Once
}

func newHandoff() *handoff { return &handoff{conns: make(chan net.Conn), done: make(chan struct{})} }

// pass hands a connection over, or closes it after the end.
func (h *handoff) pass(conn net.Conn) {
	select {
	case h.conns <- conn:
	case <-h.done:
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handoff) Close() error {
	h.end.Do(func() { close(h.done) })
	return nil
}

// Addr implements net.Listener.
func (h *handoff) Addr() net.Addr { return &net.TCPAddr{} }
