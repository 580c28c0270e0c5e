package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/wicket"
	"github.com/luanette/luanette/internal/config"
)

// listen opens the address: with TLS where there is a certificate, and for no more
// connections than there may be.
func (srv *Server) listen(ctx context.Context) (net.Listener, error) {
	var secure *tls.Config
	if srv.config.TLSCert != "" {
		pair := &certificate{certFile: srv.config.TLSCert, keyFile: srv.config.TLSKey, warn: func(err error) {
			srv.log.WarnContext(ctx, "certificate not read again, the old one is used", "error", err)
		}}
		if _, err := pair.current(nil); err != nil {
			return nil, err
		}
		secure = &tls.Config{GetCertificate: pair.current, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", srv.config.Listen)
	if err != nil {
		return nil, config.ListenFault(err, srv.config.Listen)
	}
	listener = &bounded{Listener: listener, places: make(chan struct{}, max(1, srv.config.MaxConnections)), closed: make(chan struct{})}
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	return listener, nil
}

// certificate is one that is read again when its file changes.
type certificate struct {
	certFile, keyFile string
	warn              func(error)

	mu      sync.Mutex
	pair    *tls.Certificate
	changed time.Time // of the file that was read
	looked  time.Time
}

// current is the certificate as it stands. A new one that cannot be read leaves the
// old one in place: half of it may be written yet.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair != nil && time.Since(c.looked) < time.Second {
		return c.pair, nil
	}
	c.looked = time.Now()
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
		return nil, fault.Wrap(fault.Config, err, "read certificate").WithHint("`luanette cert` makes one for this machine")
	default:
		c.warn(err)
	}
	return c.pair, nil
}

// bounded is a listener with so many places for connections.
type bounded struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.places <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &placed{Conn: conn, leave: func() { <-b.places }}, nil
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// placed is a connection that gives its place back.
type placed struct {
	net.Conn
	once  sync.Once
	leave func()
}

// SyscallConn is for those who read and write it themselves.
func (p *placed) SyscallConn() (syscall.RawConn, error) {
	if has, ok := p.Conn.(syscall.Conn); ok {
		return has.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

func (p *placed) Close() error {
	defer p.once.Do(p.leave)
	return p.Conn.Close()
}

// tardy is how long clients may take, and how much they may say before they are
// known.
type tardy struct {
	headers     time.Duration // for a request's headers
	headerBytes int
	pause       time.Duration // between two pieces of a request's body
	body        time.Duration // for all of it
	answer      time.Duration // to take a piece of the answer
}

// usualPatience is what everybody gets.
var usualPatience = tardy{headers: 10 * time.Second, headerBytes: 64 << 10, pause: 30 * time.Second, body: 5 * time.Minute, answer: 30 * time.Second}

// door is what clients come through.
type door interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
	Close() error
}

// door answers with next whoever is quick enough; requests live as long as ctx.
// Where connections are encrypted all of them are net/http's, which knows what was
// agreed upon there.
func (l tardy) door(ctx context.Context, next http.Handler, encrypted bool) door {
	main := &http.Server{
		Handler: l.hardened(next), ReadHeaderTimeout: l.headers, MaxHeaderBytes: l.headerBytes, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	if encrypted {
		return main
	}
	return wicket.New(main, wicket.Limits{Body: l.pause, Write: l.answer})
}

// hardened says to browsers what must not be done with answers, and lets nobody
// hold a connection by sending a request drop by drop. Answers may take as long as
// they want: streams do.
func (l tardy) hardened(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		maps.Copy(header, manners)
		if r.TLS != nil {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if _, whole := r.Body.(*wicket.Body); !whole && r.Body != nil && r.Body != http.NoBody {
			body := &impatient{readCloser: r.Body, control: http.NewResponseController(w), pause: l.pause, end: time.Now().Add(l.body)}
			r.Body = body
			defer body.leave()
			body.wait()
		}
		next.ServeHTTP(w, r)
	})
}

// manners are the headers of every answer. Their values are shared by all.
var manners = http.Header{
	"X-Content-Type-Options":     {"nosniff"},
	"X-Frame-Options":            {"DENY"},
	"Referrer-Policy":            {"no-referrer"},
	"Cross-Origin-Opener-Policy": {"same-origin"},
}

// impatient is a body whose sender has to go on sending.
type impatient struct {
	readCloser
	control *http.ResponseController
	pause   time.Duration
	end     time.Time
	over    bool
}

type readCloser = interface {
	Read([]byte) (int, error)
	Close() error
}

func (b *impatient) Read(p []byte) (int, error) {
	if b.over {
		return b.readCloser.Read(p)
	}
	b.wait()
	n, err := b.readCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		// From now on only answers are written, and a client that says nothing
		// meanwhile is still there.
		b.over = true
		_ = b.control.SetReadDeadline(time.Time{}) // not every connection has one
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.over = true // the deadline stays: what was not sent is not waited for
		err = fault.Wrap(fault.Timeout, err, "the request's body came too slowly")
	}
	return n, err
}

// wait gives the sender a moment for the next piece.
func (b *impatient) wait() {
	until := time.Now().Add(b.pause)
	if b.end.Before(until) {
		until = b.end
	}
	_ = b.control.SetReadDeadline(until) // not every connection has one
}

// leave gives the sender a moment for what nobody has read: the server reads some of
// it before it answers, so that the answer arrives.
func (b *impatient) leave() {
	if !b.over {
		b.wait()
	}
}
