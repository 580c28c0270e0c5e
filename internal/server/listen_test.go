package server

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpserver/httpservertest"
	"github.com/luanette/luanette/internal/config"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, pool := httpservertest.WritePair(t, t.TempDir(), 1)
	url, _ := start(t, config.Sources{Flags: map[string]string{"tls_cert": certFile, "tls_key": keyFile}, Env: config.Environment{"ENGINE_API_KEY": "sesame"}})
	if !strings.HasPrefix(url, "https://") {
		t.Fatal(url)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(client.CloseIdleConnections)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/login", strings.NewReader(`{"key":"sesame"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != 200 || !strings.Contains(answer.Header.Get("Set-Cookie"), "Secure") {
		t.Errorf("%d %s", answer.StatusCode, answer.Header.Get("Set-Cookie"))
	}
	for name, want := range map[string]string{"Strict-Transport-Security": "max-age", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff"} {
		if !strings.Contains(answer.Header.Get(name), want) {
			t.Errorf("%s: %q", name, answer.Header.Get(name))
		}
	}
}

// TestTooLargeRequestsAreRefused checks that a request that is too large is refused before
// all of it is read.
func TestTooLargeRequestsAreRefused(t *testing.T) {
	t.Parallel()
	url, _ := startShared(t)
	address := strings.TrimPrefix(url, "http://")
	for name, tt := range map[string]struct{ request, want string }{
		"headers": {"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Large: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", "431"},
		"a message": {"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 5000000\r\n\r\n" +
			strings.Repeat(" ", 5_000_000), "413"},
		"a chat": {"POST /api/v1/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 50000000\r\n\r\n" +
			strings.Repeat(" ", 40_000_000), "413"},
		"a login": {"POST /api/v1/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n" +
			strings.Repeat(" ", 100_000), "413"},
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, tt.request) }() // the server may close the connection first
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
