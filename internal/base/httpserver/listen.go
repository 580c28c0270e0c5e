// Package httpserver listens for HTTP clients and protects the server from slow ones:
// limits for connections, headers, idle time, bodies and writes, on top of net/http.
package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
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
func Listen(ctx context.Context, o Options) (*Listener, error) {
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
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // Linux has no filters for it, which Leave needs
	tcp, err := plain.Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "listen on %s", o.Address).
			WithHint("choose another address with --listen, for example --listen 127.0.0.1:0 for any free port")
	}
	listener := &Listener{Listener: limitConnections(tcp, o.MaxConnections, defaultLimits.write), tcp: tcp}
	if secure != nil {
		listener.Listener = tls.NewListener(listener.Listener, secure)
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

// certificate is a TLS certificate that is read again when its file changes.
type certificate struct {
	certFile, keyFile string
	warn              func(error)

	mu      sync.Mutex
	pair    *tls.Certificate
	changed time.Time // modification time of the file that was read
	checked time.Time // when the file was last checked
}

// current returns the certificate. A new one that cannot be read leaves the old one
// in place, since it may be half written.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair != nil && time.Since(c.checked) < time.Second {
		return c.pair, nil
	}
	c.checked = time.Now()
	info, err := os.Stat(c.certFile)
	if err == nil && c.pair != nil && info.ModTime().Equal(c.changed) {
		return c.pair, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.certFile, c.keyFile)
	}
	switch {
	case err == nil:
		c.pair, c.changed = &pair, info.ModTime()
	case c.pair == nil:
		return nil, fault.Wrap(fault.Config, err, "read certificate").WithHint("`luanette cert` makes one for this machine; with --owner, for a service that runs as another user")
	default:
		c.warn(err)
	}
	return c.pair, nil
}

// URL is the address under which this machine reaches a listener.
func URL(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "http://" + addr.String()
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// limits bound how long HTTP clients may take, and how large the headers of a
// request may be.
type limits struct {
	headers     time.Duration // for the headers of a request
	headerBytes int
	idle        time.Duration // between two requests on a connection
	pause       time.Duration // between two reads of a request's body
	body        time.Duration // for the whole body
	write       time.Duration // for the client to read a piece of a response
}

var defaultLimits = limits{
	headers: 10 * time.Second, headerBytes: 64 << 10, idle: 2 * time.Minute,
	pause: 30 * time.Second, body: 5 * time.Minute, write: 30 * time.Second,
}

// New returns an HTTP server that serves next with the default limits. Requests are
// cancelled when ctx is. While the server is leaving, each response is the last of its
// connection. What it has to say about connections, such as failed TLS handshakes, goes to log.
func New(ctx context.Context, log *slog.Logger, next http.Handler, leaving func() bool) *http.Server {
	server := defaultLimits.server(ctx, next, leaving)
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	return server
}

// server returns such a server within the limits.
func (l limits) server(ctx context.Context, next http.Handler, leaving func() bool) *http.Server {
	return &http.Server{
		Handler: l.handler(next, leaving), ReadHeaderTimeout: l.headers, MaxHeaderBytes: l.headerBytes, IdleTimeout: l.idle,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// handler adds security headers to every response and limits how long the client may
// take to send the body. The handler itself may take as long as it needs, because
// streams do.
func (l limits) handler(next http.Handler, leaving func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		maps.Copy(header, securityHeaders)
		if leaving() {
			header["Connection"] = []string{"close"}
		}
		if r.TLS != nil {
			header["Strict-Transport-Security"] = strictTransport
		}
		if r.Body != nil && r.Body != http.NoBody {
			body := &timedBody{ReadCloser: r.Body, control: http.NewResponseController(w), pause: l.pause, end: time.Now().Add(l.body)}
			r.Body = body
			body.extend()
			defer body.leave()
		}
		next.ServeHTTP(w, r)
	})
}

// securityHeaders are set on every response. Their values are shared.
var securityHeaders = http.Header{
	"X-Content-Type-Options":     {"nosniff"},
	"X-Frame-Options":            {"DENY"},
	"Referrer-Policy":            {"no-referrer"},
	"Cross-Origin-Opener-Policy": {"same-origin"},
}

var strictTransport = []string{"max-age=31536000"}

// timedBody is a request's body with a read deadline that each read extends, up to a
// limit for the whole body.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	pause   time.Duration
	end     time.Time
	begun   bool // the deadline that was set with the headers has been used
	over    bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	if b.over {
		return b.ReadCloser.Read(p)
	}
	if b.begun {
		b.extend()
	}
	b.begun = true
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		// The server goes on reading to notice a client that disconnects, for as long
		// as the handler runs.
		b.over = true
		_ = b.control.SetReadDeadline(time.Time{}) // test writers have no deadlines
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.over = true // the deadline stays: the rest is not waited for
		err = fault.Wrap(fault.Timeout, err, "the request's body came too slowly")
	}
	return n, err
}

// extend gives the client time for the next piece.
func (b *timedBody) extend() {
	until := time.Now().Add(b.pause)
	if b.end.Before(until) {
		until = b.end
	}
	_ = b.control.SetReadDeadline(until) // test writers have no deadlines
}

// leave limits how long the server reads the part of the body that the handler did not
// read, which it does before it sends the response.
func (b *timedBody) leave() {
	if !b.over {
		b.extend()
	}
}
