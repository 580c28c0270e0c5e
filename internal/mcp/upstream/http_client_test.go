package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// clientTo returns a client of a server with that handler, and counts the
// connections that the server accepts.
func clientTo(t *testing.T, h http.Handler) (*httpClient, *atomic.Int64) {
	t.Helper()
	server, connections := countingServer(h)
	server.Start()
	t.Cleanup(server.Close)
	return newTestClient(t, server.URL+"/mcp?x=1"), connections
}

// secureClientTo is clientTo over TLS, where net/http uses HTTP/2.
func secureClientTo(t *testing.T, h http.Handler) (*httpClient, *atomic.Int64) {
	t.Helper()
	server, connections := countingServer(h)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c := newTestClient(t, server.URL+"/mcp")
	c.http.Transport.(*http.Transport).TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	return c, connections
}

func countingServer(h http.Handler) (*httptest.Server, *atomic.Int64) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(h)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	return server, &connections
}

func newTestClient(t *testing.T, address string) *httpClient {
	t.Helper()
	o := Options{ClientName: "test", ClientVersion: "1"}
	c, err := o.newHTTPClient(Spec{Settings: Settings{URL: address, Headers: map[string]string{"X-Own": "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// post sends a body and reads the response to its end.
func (c *httpClient) post(ctx context.Context, body string, headers ...Header) (string, error) {
	header := maps.Clone(c.header)
	for _, h := range headers {
		header[h.Name] = []string{h.Value}
	}
	r, err := c.do(ctx, http.MethodPost, c.url, header, []byte(body))
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return fmt.Sprint(r.StatusCode, " ", string(text)), err
}

func TestClientSendsHeadersAndBody(t *testing.T) {
	t.Parallel()
	c, connections := clientTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch string(body) {
		case "stream":
			for range 3 {
				_, _ = io.WriteString(w, "piece ")
				_ = http.NewResponseController(w).Flush()
			}
		case "nothing":
			w.WriteHeader(http.StatusAccepted)
		default:
			fmt.Fprintf(w, "%s %s %s %s %q %s %d", r.Method, r.URL.RequestURI(), r.Host, r.UserAgent(), r.Header["X-Own"], r.Header.Get("X-Two"), len(body))
		}
	}))
	two := Header{"X-Two", "b\tc"}
	large := strings.Repeat("x", 1<<20)
	for body, want := range map[string]string{
		"hello":   "200 POST /mcp?x=1 " + c.url.Host + " test/1 [\"1\"] b\tc 5",
		"":        "200 POST /mcp?x=1 " + c.url.Host + " test/1 [\"1\"] b\tc 0",
		large:     "200 POST /mcp?x=1 " + c.url.Host + " test/1 [\"1\"] b\tc 1048576",
		"stream":  "200 piece piece piece ",
		"nothing": "202 ",
	} {
		if got, err := c.post(t.Context(), body, two); err != nil || got != want {
			t.Errorf("%.10q: %q, %v, want %q", body, got, err, want)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestClientRefusesHeadersThatAreNotOne(t *testing.T) {
	t.Parallel()
	c, connections := clientTo(t, http.NotFoundHandler())
	for name, value := range map[string]string{"X-A": "b\r\nX-C: d", "X-A\r\nX-C": "d", "X:A": "b", "": "b", "X-N": "a\x00"} {
		if got, err := c.post(t.Context(), "hello", Header{name, value}); err == nil {
			t.Errorf("%q: %q was sent, and answered with %s", name, value, got)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
}

func TestClientEndsWithItsContext(t *testing.T) {
	t.Parallel()
	received, left := make(chan struct{}, 2), make(chan struct{}, 2)
	c, _ := clientTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) == "begin" {
			_, _ = io.WriteString(w, "so far")
			_ = http.NewResponseController(w).Flush()
		}
		received <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	}))
	for _, body := range []string{"wait", "begin"} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.post(ctx, body)
			done <- err
		}()
		<-received
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: ended with %v", body, err)
		}
		<-left // the server has noticed
	}
}

func TestClientReportsBrokenResponses(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"":                      "EOF",
		"HTTP/1.1 200 OK\r\nCo": "malformed",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 128<<10): "headers exceeded",
		"nonsense\r\n\r\n": "malformed",
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort": "unexpected EOF",
	} {
		listener, err := net.Listen("tcp", netguardtest.ReservedAddress())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}()
		c := newTestClient(t, "http://"+listener.Addr().String())
		got, err := c.post(t.Context(), "hello")
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrNotSent) {
			t.Errorf("%.40q: %q, %v, want %s", answer, got, err, want)
		}
		_ = listener.Close()
		clocktest.Await(t, func() bool { // a child process that another test starts may hold the listener for a moment
			_, err := c.post(t.Context(), "hello")
			return errors.Is(err, ErrNotSent)
		})
	}
}

// A connection is reused although the server ends the stream some time after the
// answer.
func TestConnectionIsReusedAfterAStream(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]func(*testing.T, http.Handler) (*httpClient, *atomic.Int64){"plain": clientTo, "TLS": secureClientTo} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			returned := make(chan struct{})
			c, connections := to(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				writeStream(w, r)
				<-returned
			}))
			s, transport := sessionOver(c, time.Minute)
			for i := range 5 {
				ctx, cancel := context.WithCancel(t.Context())
				if _, err := s.request(ctx, &outcall{method: wire.MethodToolsList, params: []byte(`{}`), timeout: time.Minute}); err != nil {
					t.Fatal(err)
				}
				cancel() // as callers do when they have the result
				returned <- struct{}{}
				transport.life.wg.Wait() // the rest of the stream is read
				if got := connections.Load(); got != 1 {
					t.Fatalf("%d connections for %d calls", got, i+1)
				}
			}
		})
	}
}

func TestStreamThatNeverEndsIsClosed(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]func(*testing.T, http.Handler) (*httpClient, *atomic.Int64){"plain": clientTo, "TLS": secureClientTo} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed := make(chan struct{})
			c, _ := to(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				writeStream(w, r)
				<-r.Context().Done()
				close(closed)
			}))
			s, _ := sessionOver(c, time.Millisecond)
			if _, err := s.request(t.Context(), &outcall{method: wire.MethodToolsList, params: []byte(`{}`), timeout: time.Minute}); err != nil {
				t.Fatal(err)
			}
			<-closed
		})
	}
}

// writeStream answers a request with an event.
func writeStream(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(body)
	w.Header().Set("Content-Type", wire.ContentEvent)
	_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
	_ = http.NewResponseController(w).Flush()
}

// sessionOver makes a legacy session that waits so long for the end of a stream.
func sessionOver(c *httpClient, drainTime time.Duration) (*session, *httpTransport) {
	transport := newHTTPTransport(c, Hooks{}, 1<<20)
	transport.drainTime = drainTime
	s := newSession(newConnection(newShared(Options{}), Spec{}, 1), endpoint{Transport: HTTP})
	s.transport, s.traits, s.era = transport, transport.Traits(), wire.Legacy
	return s, transport
}
