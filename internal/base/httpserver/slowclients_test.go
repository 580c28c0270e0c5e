package httpserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// serveWithin serves handler within limits and returns the address.
func serveWithin(t *testing.T, limits limits, handler http.Handler) (address string) {
	t.Helper()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := limits.server(t.Context(), handler, staying)
	done := make(chan struct{})
	go func() { defer close(done); _ = web.Serve(limitConnections(inner, 100, limits.write)) }()
	t.Cleanup(func() { _ = web.Close(); <-done })
	return inner.Addr().String()
}

// longLimits are limits that no test reaches.
func longLimits() limits {
	return limits{headers: time.Hour, headerBytes: 64 << 10, idle: time.Hour, pause: time.Hour, body: time.Hour, write: time.Hour}
}

// dial opens a raw connection.
func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// untilClosed returns all that the server sends until it closes the connection.
func untilClosed(t *testing.T, conn net.Conn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil { // reached only when a test fails
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if e := net.Error(nil); err != nil && asTimeout(err, &e) {
		t.Fatalf("the server waits forever; so far: %s", text)
	}
	return string(text)
}

func asTimeout(err error, into *net.Error) bool {
	e, ok := err.(net.Error) //nolint:errorlint // reads of connections return them bare
	*into = e
	return ok && e.Timeout()
}

// TestSlowRequestsAreEnded checks that a client cannot hold a connection by sending
// its request slowly.
func TestSlowRequestsAreEnded(t *testing.T) {
	t.Parallel()
	const short = 200 * time.Millisecond
	routes := http.NewServeMux()
	routes.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	routes.HandleFunc("POST /mcp", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	post := "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	for name, tt := range map[string]struct {
		limit      func(*limits)
		said, want string
	}{
		"nothing is sent":      {func(l *limits) { l.headers = short }, "", ""},
		"the headers stop":     {func(l *limits) { l.headers = short }, "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", ""},
		"the body stops":       {func(l *limits) { l.pause = short }, post + "Content-Length: 1000\r\n\r\n{\"jsonrpc\"", "HTTP/1.1 400"},
		"an unread body stops": {func(l *limits) { l.pause = short }, "POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n", "HTTP/1.1 404"},
		"no further request":   {func(l *limits) { l.idle = short }, "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "HTTP/1.1 200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := longLimits()
			tt.limit(&limits)
			conn := dial(t, serveWithin(t, limits, routes))
			fmt.Fprint(conn, tt.said)
			if text := untilClosed(t, conn); !strings.HasPrefix(text, tt.want) || tt.want == "" && strings.Contains(text, "200 OK") {
				t.Errorf("got %q, want a response that begins with %q", text, tt.want)
			}
		})
	}
	t.Run("the body comes byte by byte", func(t *testing.T) {
		t.Parallel()
		limits := longLimits()
		limits.body = short
		conn := dial(t, serveWithin(t, limits, routes))
		fmt.Fprint(conn, post+"Content-Length: 100000000\r\n\r\n")
		stop := make(chan struct{})
		go func() {
			for {
				if _, err := conn.Write([]byte(" ")); err != nil {
					return
				}
				select {
				case <-time.After(time.Millisecond):
				case <-stop:
					return
				}
			}
		}()
		defer close(stop)
		if text := untilClosed(t, conn); !strings.HasPrefix(text, "HTTP/1.1 4") {
			t.Errorf("got %q", text)
		}
	})
}

// TestUnreadResponseIsEnded checks that a client that does not read its response loses
// the connection.
func TestUnreadResponseIsEnded(t *testing.T) {
	t.Parallel()
	limits := longLimits()
	limits.write = 100 * time.Millisecond
	ended := make(chan error, 1)
	address := serveWithin(t, limits, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				ended <- err
				return
			}
		}
	}))
	fmt.Fprint(dial(t, address), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the write ended with %v", err)
	}
}

// TestLargeResponseArrives checks that a slow client that keeps reading gets a whole
// large response.
func TestLargeResponseArrives(t *testing.T) {
	t.Parallel()
	const size = 5_000_000
	address := serveWithin(t, longLimits(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, size))
	}))
	conn := dial(t, address)
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if n, err := io.Copy(io.Discard, answer.Body); n != size || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestDisconnectCancelsRequest checks that a request ends when its client disconnects,
// whether or not it has a body, and only then: the deadline for a body does not end a
// handler that runs longer.
func TestDisconnectCancelsRequest(t *testing.T) {
	t.Parallel()
	limits := longLimits()
	limits.pause = 50 * time.Millisecond
	for name, said := range map[string]string{
		"GET":  "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running, ended := make(chan error, 1), make(chan error, 1)
			address := serveWithin(t, limits, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				select {
				case <-time.After(4 * limits.pause):
				case <-r.Context().Done():
				}
				running <- r.Context().Err()
				<-r.Context().Done()
				ended <- r.Context().Err()
			}))
			conn := dial(t, address)
			fmt.Fprint(conn, said)
			if err := <-running; err != nil {
				t.Fatalf("the request was cancelled while its client was connected: %v", err)
			}
			_ = conn.Close()
			<-ended
		})
	}
}

// TestShutdownFinishesRequests checks that Shutdown closes idle connections at once
// and lets a running request finish.
func TestShutdownFinishesRequests(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan struct{}), make(chan struct{})
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := longLimits().server(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/idle" {
			return
		}
		close(begun)
		<-finish
		_, _ = io.WriteString(w, "finished")
	}), staying)
	served := make(chan error, 1)
	go func() { served <- web.Serve(limitConnections(inner, 10, time.Minute)) }()
	idle, busy := dial(t, inner.Addr().String()), dial(t, inner.Addr().String())
	fmt.Fprint(idle, "GET /idle HTTP/1.1\r\nHost: a\r\n\r\n")
	fmt.Fprint(busy, "GET /busy HTTP/1.1\r\nHost: a\r\n\r\n")
	<-begun
	ended := make(chan error, 1)
	go func() { ended <- web.Shutdown(t.Context()) }()
	untilClosed(t, idle)
	close(finish)
	if text := untilClosed(t, busy); !strings.Contains(text, "finished") {
		t.Errorf("the running request got %q", text)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-served
}
