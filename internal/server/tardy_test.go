package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/config"
)

// hasty serves a house to clients for whom there is little patience, and returns
// where.
func hasty(t *testing.T, patience tardy) (address string) {
	t.Helper()
	_, house := start(t, config.Sources{})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := patience.door(t.Context(), house.gate.Mux(house.routes()), false)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return listener.Addr().String()
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

// rest is all that comes until the server hangs up.
func rest(t *testing.T, conn net.Conn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil { // only ever reached when a test fails
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if e := net.Error(nil); err != nil && asTimeout(err, &e) {
		t.Fatalf("the server waits for ever; so far: %s", text)
	}
	return string(text)
}

func asTimeout(err error, into *net.Error) bool {
	e, ok := err.(net.Error) //nolint:errorlint // reads of connections return them bare
	*into = e
	return ok && e.Timeout()
}

// Nobody holds a connection by being slow: with headers, with a body, or with a
// body that comes drop by drop.
func TestSlowClientsAreLeft(t *testing.T) {
	t.Parallel()
	const short, long = 200 * time.Millisecond, time.Hour
	post := "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	t.Run("headers", func(t *testing.T) {
		t.Parallel()
		address := hasty(t, tardy{headers: short, pause: long, body: long, headerBytes: 64 << 10})
		conn := dial(t, address)
		fmt.Fprint(conn, "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
		if text := rest(t, conn); strings.Contains(text, "200 OK") {
			t.Errorf("answered: %s", text)
		}
	})
	t.Run("a body that stops", func(t *testing.T) {
		t.Parallel()
		address := hasty(t, tardy{headers: long, pause: short, body: long, headerBytes: 64 << 10})
		conn := dial(t, address)
		fmt.Fprint(conn, post+"Content-Length: 1000\r\n\r\n{\"jsonrpc\"")
		if text := rest(t, conn); !strings.Contains(text, "HTTP/1.1 4") {
			t.Errorf("answered: %s", text)
		}
	})
	t.Run("a body that nobody asked for", func(t *testing.T) {
		t.Parallel()
		address := hasty(t, tardy{headers: long, pause: short, body: long, headerBytes: 64 << 10})
		conn := dial(t, address)
		fmt.Fprint(conn, "POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n")
		if text := rest(t, conn); !strings.Contains(text, "HTTP/1.1 408") {
			t.Errorf("answered: %s", text)
		}
	})
	t.Run("a body drop by drop", func(t *testing.T) {
		t.Parallel()
		address := hasty(t, tardy{headers: long, pause: long, body: short, headerBytes: 64 << 10})
		conn := dial(t, address)
		fmt.Fprint(conn, post+"Content-Length: 100000000\r\n\r\n")
		stop := make(chan struct{})
		go func() {
			for {
				if _, err := conn.Write([]byte(" ")); err != nil {
					return
				}
				select {
				case <-time.After(time.Millisecond): // a drop
				case <-stop:
					return
				}
			}
		}()
		defer close(stop)
		if text := rest(t, conn); !strings.Contains(text, "HTTP/1.1 4") {
			t.Errorf("answered: %s", text)
		}
	})
}

// What is too large is refused before it is read whole.
func TestTooLargeRequestsAreRefused(t *testing.T) {
	t.Parallel()
	url, _ := start(t, config.Sources{})
	address := strings.TrimPrefix(url, "http://")
	for name, tt := range map[string]struct{ request, want string }{
		"headers": {"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Large: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", "431"},
		"a message": {"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 5000000\r\n\r\n" +
			strings.Repeat(" ", 5_000_000), "413"},
		"a chat": {"POST /api/v1/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 50000000\r\n\r\n" +
			strings.Repeat(" ", 20_000_000), "413"},
		"a login": {"POST /api/v1/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n" +
			strings.Repeat(" ", 100_000), "400"},
	} {
		conn := dial(t, address)
		go func() { _, _ = io.WriteString(conn, tt.request) }() // it may be cut off
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.HasPrefix(answer.Status, tt.want) {
			t.Errorf("%s: %s", name, answer.Status)
		}
		answer.Body.Close()
		conn.Close()
	}
}
