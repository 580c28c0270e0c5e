package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
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

func asRefused(err error) *refusedError {
	if refused := new(refusedError); errors.As(err, &refused) {
		return refused
	}
	return nil
}

// receive serves a connection to the proxy in the protocol that its first bytes tell.
func (g *Gateway) receive(client *clientConn) {
	err := client.peek(g.service.options.HandshakeTimeout)
	switch {
	case err != nil:
		_ = client.Close()
	case !g.serveTunnel(client):
		g.incoming.pass(client)
	}
}

// carry connects the program to a destination, if that is allowed. reply tells it what
// became of that, before any data of the destination.
func (g *Gateway) carry(client *clientConn, to destination, protocol string, reply func(error) error) {
	t := g.begin(to, protocol)
	remote, err := g.reach(t, to)
	if err != nil {
		g.service.fail(t, err)
	}
	if replied := reply(err); err != nil || replied != nil {
		if remote != nil {
			_ = remote.Close()
		}
		g.service.end(t)
		_ = client.Close()
		return
	}
	if remote == nil {
		g.intercept(client, to, t)
		return
	}
	relay(client, remote, t)
	g.service.end(t)
	_ = client.Close()
}

// reach connects to a destination. It returns nil without an error if the connection is
// to be read here, so that the requests inside decide when to connect.
func (g *Gateway) reach(t *track, to destination) (net.Conn, error) {
	if err := g.allow(t, to); err != nil {
		return nil, err
	}
	if g.intercepts(to) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(g.ctx, 2*dialTimeout)
	defer cancel()
	remote, err := g.dialer.connect(ctx, to)
	if err == nil {
		g.service.history.change(t, func(c *Connection) { c.Address = remote.RemoteAddr().String() })
	}
	return remote, err
}

// allow notes the rule that allows a destination, or returns a refusal.
func (g *Gateway) allow(t *track, to destination) error {
	entry, allowed := g.dialer.rules.match(to)
	if !allowed {
		return &refusedError{reason: fmt.Sprintf("%s may not connect to %s", g.name, to), allow: to.String()}
	}
	g.service.history.change(t, func(c *Connection) { c.Rule = entry })
	return nil
}

// explain is the text for the program of an error.
func (g *Gateway) explain(err error) string {
	refused := asRefused(err)
	switch {
	case refused == nil:
		return "luanette: " + err.Error()
	case refused.allow == "":
		return "luanette: " + refused.reason
	}
	return fmt.Sprintf("luanette: %s; allow it with network = [%q]", refused.reason, refused.allow)
}

// relay copies in both directions until both have ended.
func relay(client *clientConn, remote net.Conn, t *track) {
	var back sync.WaitGroup
	var ended atomic.Bool // one direction
	back.Go(func() { pipe(client, remote, &t.received, &ended) })
	pipe(remote, client, &t.sent, &ended)
	back.Wait()
	_ = remote.Close()
}

// countEvery is after how many bytes the count is updated. The kernel moves them without
// us.
const countEvery = 256 << 10

// pipe copies one direction. When it ends well before the other, the other side learns
// that nothing follows, and may still answer for a while; otherwise both end.
func pipe(to, from net.Conn, count *atomic.Int64, ended *atomic.Bool) {
	for {
		n, err := copyChunk(to, from)
		count.Add(n)
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF) && ended.Swap(true): // both are closed now
		case errors.Is(err, io.EOF) && closeWrite(to) == nil:
			_ = to.SetReadDeadline(time.Now().Add(halfClosed))
		default:
			_ = to.Close()
			_ = from.Close()
		}
		return
	}
}

// copyChunk copies up to countEvery bytes. What was read already is written first; then
// the bare connections are used, between which the kernel copies.
func copyChunk(to, from net.Conn) (int64, error) {
	if client, ok := from.(*clientConn); ok {
		if first := client.first; len(first) > 0 {
			client.first = nil
			n, err := bare(to).Write(first)
			return int64(n), err
		}
	}
	return io.CopyN(bare(to), bare(from), countEvery)
}

func bare(conn net.Conn) net.Conn {
	if client, ok := conn.(*clientConn); ok {
		return client.Conn
	}
	return conn
}

// closeWrite ends one direction of a connection.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
