package netguard_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/netguard"
)

// FuzzBrowsers sends any Host and Origin. On loopback only names of this machine are
// served, and only to its own pages.
func FuzzBrowsers(f *testing.F) {
	for _, seed := range [][2]string{
		{"127.0.0.1:8081", "http://127.0.0.1:8081"}, {"localhost", "null"}, {"evil.example", "http://evil.example"}, {"[::1]:80", "http://[::1%25lo]:80"},
		{"127.0.0.1.evil.example", "http://localhost.evil.example"}, {"LOCALHOST:1", "file://localhost"}, {"", ""}, {"[[::1]]", "http://user@localhost"},
	} {
		f.Add(seed[0], seed[1])
	}
	here := context.WithValue(f.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081}))
	f.Fuzz(func(t *testing.T, host, origin string) {
		r := httptest.NewRequestWithContext(here, http.MethodPost, "/", nil)
		r.Host = host
		b := netguard.Browsers{}
		if b.Served(r) && !local(strings.Trim(withoutPort(host), "[]")) {
			t.Errorf("served as %q", host)
		}
		if !b.Served(r) || !b.Allowed(r, origin) {
			return
		}
		if u, err := url.Parse(origin); err != nil || !local(u.Hostname()) {
			t.Errorf("a page of %q may use %q", origin, host)
		}
	})
}

func withoutPort(host string) string {
	if at := strings.LastIndexByte(host, ':'); at > strings.LastIndexByte(host, ']') && strings.Count(host, ":") == 1 || strings.HasSuffix(host[:max(at, 0)], "]") {
		return host[:at]
	}
	return host
}

func local(name string) bool {
	address, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && address.Unmap().IsLoopback()
}
