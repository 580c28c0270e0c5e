package attacks

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
)

// newProxy starts a reverse proxy in front of the program that adds these headers and
// keeps the Host of the client.
func newProxy(t *testing.T, to string, add http.Header) string {
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		for name, values := range add {
			r.Out.Header[name] = values
		}
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// TestAttackKeylessBehindAProxy reaches a server without keys through reverse proxies on
// its machine: everybody would be its owner.
func TestAttackKeylessBehindAProxy(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, `trusted_proxies = ["127.0.0.2"]`, nil)
	if status, text := h.ask(http.MethodGet, "/health", "", nil); status != http.StatusOK || !strings.Contains(text, "uptime_secs") {
		t.Fatalf("without a proxy: %d %s", status, text)
	}
	for name, proxy := range map[string]string{
		"X-Forwarded-For":    newProxy(t, h.url, http.Header{"X-Forwarded-For": {"198.51.100.1"}}),
		"of this machine":    newProxy(t, h.url, http.Header{"X-Forwarded-For": {"127.0.0.1"}}),
		"X-Forwarded-Server": newProxy(t, h.url, http.Header{"X-Forwarded-Server": {"a"}}),
		"X-Forwarded-Scheme": newProxy(t, h.url, http.Header{"X-Forwarded-Scheme": {"https"}}),
		"Forwarded":          newProxy(t, h.url, http.Header{"Forwarded": {"for=198.51.100.1"}}),
		"X-Real-IP":          newProxy(t, h.url, http.Header{"X-Real-Ip": {"198.51.100.1"}}),
		"Via":                newProxy(t, h.url, http.Header{"Via": {"1.1 proxy"}}),
	} {
		for _, path := range []string{"/api/v1/me", "/api/v1/keys", "/mcp", "/", "/api/v1/events"} {
			answer, text := httpjsontest.Read(t, http.MethodGet, proxy+path, "", "Accept", "application/json")
			if answer.StatusCode != http.StatusForbidden || !strings.Contains(text, "luanette key create") {
				t.Errorf("%s, %s: %d %s", name, path, answer.StatusCode, text)
			}
		}
		if answer, text := httpjsontest.Read(t, http.MethodGet, proxy+"/", "", "Accept", "text/html,*/*"); answer.StatusCode != http.StatusForbidden ||
			!strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") || !strings.Contains(text, "<pre>luanette key create") {
			t.Errorf("%s: the page: %d %s", name, answer.StatusCode, text)
		}
		if answer, text := httpjsontest.Read(t, http.MethodGet, proxy+"/health", ""); answer.StatusCode != http.StatusOK || strings.Contains(text, "upstreams") {
			t.Errorf("%s: health: %d %s", name, answer.StatusCode, text)
		}
	}
	for _, path := range []string{"/", "/api/v1/me", "/mcp"} {
		if answer, text := httpjsontest.Read(t, http.MethodGet, h.url+path, "", "Host", "hub.example"); answer.StatusCode != http.StatusForbidden || !strings.Contains(text, "Host hub.example") {
			t.Errorf("another Host, %s: %d %s", path, answer.StatusCode, text)
		}
	}
	if status := oldRequest(t, h.url, "/api/v1/keys"); status != http.StatusForbidden {
		t.Errorf("HTTP/1.0, as proxies send it by default: %d", status)
	}
}

// oldRequest sends a request as HTTP/1.0 and returns the status.
func oldRequest(t *testing.T, to, path string) int {
	at := strings.TrimPrefix(to, "http://")
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", path, at)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// TestAttackLoginThroughAProxy guesses keys through a trusted proxy, and claims to be
// somebody else. Other clients of the proxy can still log in.
func TestAttackLoginThroughAProxy(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, "trusted_proxies = [\"127.0.0.1\"]\n[keys.root]\nenv = \"ROOT\"\nscopes = [\"admin\"]\n", config.Environment{"ROOT": "root-token"})
	login := func(from, key string) int {
		answer, _ := httpjsontest.Read(t, http.MethodPost, h.url+"/api/v1/login", `{"key":"`+key+`"}`, "X-Forwarded-For", from, "Host", "hub.example")
		return answer.StatusCode
	}
	for range 30 { // wrong keys of other endpoints do not count
		h.ask(http.MethodGet, "/api/v1/keys", "", map[string]string{"Authorization": "Bearer wrong", "X-Forwarded-For": "198.51.100.1"})
	}
	if status := login("198.51.100.1", "root-token"); status != http.StatusOK {
		t.Fatalf("after wrong keys elsewhere: %d", status)
	}
	blocked := false
	for n := 0; n < 200 && !blocked; n++ { // a minute may end meanwhile, and counting begins anew
		blocked = login(fmt.Sprintf("192.0.2.%d, 198.51.100.1", n), fmt.Sprintf("guess-%d", n)) == http.StatusTooManyRequests
	}
	if !blocked {
		t.Error("guesses behind a proxy are never refused with 429")
	}
	if status := login("198.51.100.2", "root-token"); status != http.StatusOK {
		t.Errorf("another client of the proxy: %d", status)
	}
	_, text := h.ask(http.MethodGet, "/api/v1/audit?action=login", "", bearing("root-token"))
	if !strings.Contains(text, "198.51.100.2") || strings.Contains(text, "127.0.0.1") || strings.Contains(text, "192.0.2.") {
		t.Errorf("the audit log: %s", text)
	}
}
