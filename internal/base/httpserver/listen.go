// Package httpserver listens for HTTP clients and protects the server from slow ones:
// limits for connections, headers, idle time, bodies and writes, on top of net/http.
package httpserver

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Options say where to listen.
type Options struct {
	Address           string
	CertFile, KeyFile string // TLS; empty for plain HTTP
	MaxConnections    int
	Log               *slog.Logger
}

// Listen opens the address, with TLS if there is a certificate.
func Listen(ctx context.Context, o Options) (net.Listener, error) {
	var secure *tls.Config
	if o.CertFile != "" {
		pair := &certificate{certFile: o.CertFile, keyFile: o.KeyFile, warn: func(err error) {
			o.Log.WarnContext(ctx, "certificate not read again, the old one is used", "error", err)
		}}
		if _, err := pair.current(nil); err != nil {
			return nil, err
		}
		secure = &tls.Config{GetCertificate: pair.current, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "listen on %s", o.Address).
			WithHint("choose another address with --listen, for example --listen 127.0.0.1:0 for any free port")
	}
	listener = limitConnections(listener, o.MaxConnections, defaultLimits.write)
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	return listener, nil
}

// limitedListener accepts a limited number of connections at a time. It waits until a
// slot is free before it accepts the next one.
type limitedListener struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
	write  time.Duration // for the client to read a piece of what is written
}

func limitConnections(inner net.Listener, most int, write time.Duration) *limitedListener {
	return &limitedListener{Listener: inner, slots: make(chan struct{}, max(1, most)), closed: make(chan struct{}), write: write}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: conn, listener: l}, nil
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn is a connection that frees its slot when it is closed, and that fails
// when its client stops reading.
type limitedConn struct {
	net.Conn
	once     sync.Once
	listener *limitedListener
}

// NetConn returns the connection itself.
func (c *limitedConn) NetConn() net.Conn { return c.Conn }

// writePiece is how many bytes the client has to read within the write limit.
const writePiece = 64 << 10

func (c *limitedConn) Write(p []byte) (written int, err error) {
	for {
		piece := p[written:min(len(p), written+writePiece)]
		if err := c.SetWriteDeadline(time.Now().Add(c.listener.write)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(piece)
		written += n
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

func (c *limitedConn) Close() error {
	defer c.once.Do(func() { <-c.listener.slots })
	return c.Conn.Close()
}
