package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
)

// directTo is a client of a server, and how many connections that has seen.
func directTo(t *testing.T, h http.Handler) (*httpClient, *atomic.Int64) {
	t.Helper()
	server, connections := counting(h)
	server.Start()
	t.Cleanup(server.Close)
	return clientOf(t, server.URL+"/mcp?x=1"), connections
}

// counting is a server that counts its connections.
func counting(h http.Handler) (*httptest.Server, *atomic.Int64) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(h)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	return server, &connections
}

func clientOf(t *testing.T, address string) *httpClient {
	t.Helper()
	o := Options{ClientName: "test", ClientVersion: "1"}
	c, err := o.newHTTPClient(Spec{URL: address, Headers: map[string]string{"X-Own": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// notifyWatchers is something to send.
func (c *httpClient) note(body string, headers ...Header) *dispatch {
	return &dispatch{method: http.MethodPost, to: c.url, headers: headers, token: "t", body: []byte(body)}
}

// ask posts and reads the answer to its end.
func (c *httpClient) ask(ctx context.Context, body string, headers ...Header) (string, error) {
	r, err := c.roundTrip(ctx, c.note(body, headers...))
	if err != nil {
		return "", err
	}
	defer r.close()
	text, err := io.ReadAll(r.reader())
	return fmt.Sprint(r.code, " ", string(text)), err
}

func TestDirectSaysWhatItIsGiven(t *testing.T) {
	t.Parallel()
	c, connections := directTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) == "stream" {
			for range 3 {
				_, _ = io.WriteString(w, "piece ")
				_ = http.NewResponseController(w).Flush()
			}
			return
		}
		if string(body) == "nothing" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		fmt.Fprintf(w, "%s %s %s %s %q %s %s", r.Method, r.URL.RequestURI(), r.Host, r.UserAgent(),
			r.Header["X-Own"], r.Header.Get("X-Two")+r.Header.Get("Authorization"), body)
	}))
	two := Header{"X-Two", "b\tc"}
	for body, want := range map[string]string{
		"hello":   "200 POST /mcp?x=1 " + c.url.Host + " test/1 [\"1\"] b\tcBearer t hello",
		"":        "200 POST /mcp?x=1 " + c.url.Host + " test/1 [\"1\"] b\tcBearer t ",
		"stream":  "200 piece piece piece ",
		"nothing": "202 ",
	} {
		if got, err := c.ask(t.Context(), body, two); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", body, got, err, want)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if large, err := c.ask(t.Context(), strings.Repeat("x", directBody+1)); err != nil || len(large) < directBody {
		t.Errorf("a large one: %d bytes, %v", len(large), err)
	}
	if n := connections.Load(); n != 2 { // it took the other way
		t.Errorf("%d connections, want 2", n)
	}
}

func TestDirectRefusesToSayMore(t *testing.T) {
	t.Parallel()
	c, connections := directTo(t, http.NotFoundHandler())
	for name, value := range map[string]string{"X-A": "b\r\nX-C: d", "X-A\r\nX-C": "d", "X:A": "b", "": "b", "X-N": "a\x00"} {
		if got, err := c.ask(t.Context(), "hello", Header{name, value}); err == nil {
			t.Errorf("%q: %q was sent, and answered with %s", name, value, got)
		}
		own := httpClient{url: c.url, headers: http.Header{name: {value}}}
		if text, ok := own.preface(); ok {
			t.Errorf("%q: %q would be sent as %q", name, value, text)
		}
	}
	for _, name := range []string{"accept", "Host", "mcp-session-id", "Traceparent"} { // said once is enough
		own := httpClient{url: c.url, headers: http.Header{name: {"x"}}}
		if text, ok := own.preface(); ok {
			t.Errorf("%s may be said twice, after %q", name, text)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
}

// A connection that the server has closed is replaced before anything is sent on
// it; one that was given up half read is not used again.
func TestDirectReplacesConnections(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	closed := make(chan struct{})
	go func() { // canAnswer once per connection, and closes it without saying so
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
			_ = conn.Close()
			closed <- struct{}{}
		}
	}()
	c := clientOf(t, "http://"+listener.Addr().String())
	for range 3 {
		if got, err := c.ask(t.Context(), "hello"); err != nil || got != "200 ok" {
			t.Fatalf("%q, %v", got, err)
		}
		<-closed
	}
	half, connections := directTo(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000") // more than comes with the head
		_, _ = io.WriteString(w, strings.Repeat("x", 100000))
	}))
	for range 3 {
		r, err := half.roundTrip(t.Context(), half.note("hello"))
		if err != nil {
			t.Fatal(err)
		}
		r.close()
		if n, err := r.reader().Read(make([]byte, 1)); n > 0 || err == nil {
			t.Error("reads on after its end")
		}
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

func TestDirectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	there, left := make(chan struct{}, 2), make(chan struct{}, 2)
	c, _ := directTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) == "begin" {
			_, _ = io.WriteString(w, "so far")
			_ = http.NewResponseController(w).Flush()
		}
		there <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	}))
	for _, body := range []string{"wait", "begin"} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.ask(ctx, body)
			done <- err
		}()
		<-there
		cancel()
		if err := <-done; err == nil {
			t.Errorf("%s: ended as if nothing was", body)
		}
		<-left // the server knows
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.ask(ctx, "wait"); err == nil {
		t.Error("asked though nobody wants to know")
	}
}

func TestDirectBearsAnyAnswer(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"":                      "closed without an answer",
		"HTTP/1.1 200 OK\r\nCo": "malformed",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*directHead): "header is too long",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n":                   "another protocol",
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
		c := clientOf(t, "http://"+listener.Addr().String())
		if got, err := c.ask(t.Context(), "hello"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %q, %v, want %s", answer, got, err, want)
		}
		_ = listener.Close()
		clocktest.Await(t, func() bool { // a child that another test just starts may hold the listener until it runs
			var op *net.OpError
			_, err := c.ask(t.Context(), "hello")
			return errors.As(err, &op) && op.Op == "dial"
		})
	}
}

func TestDirectOnlyInTheOpen(t *testing.T) {
	t.Parallel()
	proxied := Options{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:9"})}
	for address, o := range map[string]Options{"https://127.0.0.1:9/": {}, "http://127.0.0.1:9/": proxied} {
		if c, err := o.newHTTPClient(Spec{URL: address}); err != nil || c.direct != nil {
			t.Errorf("%s: %+v, %v", address, c, err)
		}
	}
	if c := clientOf(t, "http://[::1]"); c.direct.address != "[::1]:80" {
		t.Errorf("address %s", c.direct.address)
	}
}
