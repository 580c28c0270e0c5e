package netguard_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/luanette/luanette/internal/base/netguard"
)

func TestBrowsers(t *testing.T) {
	t.Parallel()
	loopback, lan := net.ParseIP("127.0.0.1"), net.ParseIP("192.168.1.5")
	allowing := netguard.Browsers{Origins: []string{"https://app.example"}, PublicURL: "http://my.box:8081"}
	tests := []struct {
		name            string
		browsers        netguard.Browsers
		local           net.IP
		host, origin    string
		served, allowed bool
	}{
		{"our own page", netguard.Browsers{}, loopback, "127.0.0.1:8081", "http://127.0.0.1:8081", true, true},
		{"another port of this machine", netguard.Browsers{}, loopback, "localhost:8081", "http://localhost:3000", true, true},
		{"IPv6", netguard.Browsers{}, loopback, "[::1]:8081", "http://[::1]:8081", true, true},
		{"a name that resolves to this machine", netguard.Browsers{}, loopback, "evil.example:8081", "http://evil.example:8081", false, true},
		{"a page of another site", netguard.Browsers{}, loopback, "127.0.0.1:8081", "https://evil.example", true, false},
		{"a file or sandbox", netguard.Browsers{}, loopback, "127.0.0.1:8081", "null", true, false},
		{"no URL", netguard.Browsers{}, loopback, "127.0.0.1:8081", "http://%zz", true, false},
		{"any name when listening on the network", netguard.Browsers{}, lan, "box.local", "http://box.local", true, true},
		{"a loopback page when listening on the network", netguard.Browsers{}, lan, "box.local", "http://localhost:3000", true, false},
		{"an allowed origin", allowing, loopback, "my.box:8081", "https://APP.example", true, true},
		{"all origins are allowed", netguard.Browsers{Origins: []string{"*"}}, loopback, "127.0.0.1", "https://any.example", true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r = r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: tt.local, Port: 8081}))
			r.Host = tt.host
			if got := tt.browsers.Served(r); got != tt.served {
				t.Errorf("served: %v", got)
			}
			if got := tt.browsers.Allowed(r, tt.origin); got != tt.allowed {
				t.Errorf("allowed: %v", got)
			}
		})
	}
}
