package netguard_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/netguard"
)

func TestProxiesNameTheirClients(t *testing.T) {
	t.Parallel()
	proxies, err := netguard.ParseProxies([]string{"10.0.0.0/8", "127.0.0.1", "::1", "fd00::/8"})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, remote, want string
		header             http.Header
	}{
		{"no proxy", "203.0.113.9:1", "203.0.113.9", nil},
		{"a client that claims to be a proxy", "203.0.113.9:1", "203.0.113.9", http.Header{"X-Forwarded-For": {"198.51.100.1"}}},
		{"one proxy", "127.0.0.1:1", "198.51.100.1", http.Header{"X-Forwarded-For": {"198.51.100.1"}}},
		{"with a port", "127.0.0.1:1", "198.51.100.1", http.Header{"X-Forwarded-For": {"198.51.100.1:555"}}},
		{"two proxies", "127.0.0.1:1", "198.51.100.1", http.Header{"X-Forwarded-For": {"198.51.100.1, 10.2.3.4"}}},
		{"two headers", "10.1.1.1:1", "198.51.100.1", http.Header{"X-Forwarded-For": {"198.51.100.1", "10.2.3.4"}}},
		{"what the client wrote comes first", "127.0.0.1:1", "198.51.100.1", http.Header{"X-Forwarded-For": {"127.0.0.1, 198.51.100.1"}}},
		{"the standard header", "[::1]:1", "2001:db8::7", http.Header{"Forwarded": {`for=127.0.0.1, For="[2001:db8::7]:4711";proto=https`}}},
		{"a hidden client", "127.0.0.1:1", "127.0.0.1", http.Header{"Forwarded": {`for=_hidden`}}},
		{"an element without an address", "127.0.0.1:1", "127.0.0.1", http.Header{"Forwarded": {`for=198.51.100.1, proto=https`}}},
		{"X-Real-IP", "127.0.0.1:1", "198.51.100.1", http.Header{"X-Real-Ip": {"198.51.100.1"}}},
		{"headers that agree", "127.0.0.1:1", "198.51.100.1", http.Header{"X-Real-Ip": {"198.51.100.1"}, "X-Forwarded-For": {"198.51.100.1"}}},
		{"headers that do not", "127.0.0.1:1", "127.0.0.1", http.Header{"Forwarded": {"for=192.0.2.66"}, "X-Forwarded-For": {"198.51.100.1"}}},
		{"no address", "127.0.0.1:1", "127.0.0.1", http.Header{"X-Forwarded-For": {"<script>"}}},
		{"empty", "127.0.0.1:1", "127.0.0.1", http.Header{"X-Forwarded-For": {""}}},
		{"IPv4 in IPv6", "[::ffff:10.1.1.1]:1", "198.51.100.1", http.Header{"X-Forwarded-For": {"::ffff:198.51.100.1"}}},
	}
	for _, tt := range tests {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header = tt.remote, tt.header
		if got := proxies.Client(r); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	for _, bad := range []string{"", "proxy.example", "10.0.0.0/64", "10.0.0"} {
		if _, err := netguard.ParseProxies([]string{bad}); err == nil || !strings.Contains(err.Error(), "trusted_proxies") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestOriginHeaders(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		host    string
		origins []string
		refusal string
	}{
		"none":            {"localhost:1", nil, ""},
		"our own":         {"localhost:1", []string{"http://localhost:1"}, ""},
		"empty":           {"localhost:1", []string{""}, "Origin header is empty"},
		"two":             {"localhost:1", []string{"http://localhost:1", "https://evil.example"}, "2 Origin headers"},
		"twice the same":  {"localhost:1", []string{"http://localhost:1", "http://localhost:1"}, "2 Origin headers"},
		"another":         {"localhost:1", []string{"https://evil.example"}, `Origin "https://evil.example"`},
		"of another Host": {"evil.example", nil, `Host "evil.example"`},
		"another of both": {"evil.example", []string{"http://evil.example"}, `Host "evil.example"`},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r = r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}))
		if r.Host = tt.host; tt.origins != nil {
			r.Header["Origin"] = tt.origins
		}
		_, err := netguard.Browsers{}.Origin(r)
		if (err == nil) != (tt.refusal == "") || err != nil && !strings.Contains(err.Error(), tt.refusal) {
			t.Errorf("%s: %v, want %q", name, err, tt.refusal)
		}
	}
}
