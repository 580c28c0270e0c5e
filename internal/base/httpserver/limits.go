package httpserver

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

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
// cancelled when ctx is.
func New(ctx context.Context, next http.Handler) *http.Server { return defaultLimits.server(ctx, next) }

// server returns an HTTP server that serves next within the limits. Requests are
// cancelled when ctx is.
func (l limits) server(ctx context.Context, next http.Handler) *http.Server {
	return &http.Server{
		Handler: l.handler(next), ReadHeaderTimeout: l.headers, MaxHeaderBytes: l.headerBytes, IdleTimeout: l.idle,
		BaseContext: func(net.Listener) context.Context { return ctx }, ConnContext: withConnection,
	}
}

// handler adds security headers to every response and limits how long the client may
// take to send the body. The handler itself may take as long as it needs, because
// streams do.
func (l limits) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		maps.Copy(header, securityHeaders)
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
