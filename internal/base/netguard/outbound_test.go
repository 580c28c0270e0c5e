package netguard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/luanette/luanette/internal/base/netguard"
)

// TestClientFollowsNoRedirects checks that what is sent to a configured host goes to no
// other one.
func TestClientFollowsNoRedirects(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			t.Errorf("requested %s", r.URL)
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	for loopback, want := range map[bool]int{true: http.StatusTemporaryRedirect, false: 0} {
		client := netguard.Outbound{Loopback: loopback}.Client()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		status := 0
		if response, err := client.Do(request); err == nil {
			status = response.StatusCode
			_ = response.Body.Close()
		}
		client.CloseIdleConnections()
		if status != want {
			t.Errorf("with loopback %v: status %d", loopback, status)
		}
	}
}

func TestOutbound(t *testing.T) {
	t.Parallel()
	control := netguard.Outbound{Allowed: []string{"10.1.2.3", "*"}, Loopback: true}.Control
	for address, allowed := range map[string]bool{
		"127.0.0.1:80":         true,
		"[::1]:80":             true,
		"93.184.216.34:443":    true,
		"[2606:2800::1]:443":   true,
		"10.1.2.3:443":         true,
		"10.1.2.4:443":         false,
		"192.168.1.1:80":       false,
		"169.254.169.254:80":   false,
		"[::ffff:10.0.0.1]:80": false,
		"[fe80::1]:80":         false,
		"[fd00::1]:80":         false,
		"100.64.0.1:80":        false,
		"0.0.0.0:80":           false,
		"[64:ff9b::a00:1]:80":  false,
		"224.0.0.1:80":         false,
		"metadata.internal:80": false,
	} {
		if err := control("tcp", address, nil); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestOutboundChecksHosts(t *testing.T) {
	t.Parallel()
	check := netguard.Outbound{Allowed: []string{"10.1.2.3"}}.Check
	for host, allowed := range map[string]bool{
		"gateway.example": true,
		"93.184.216.34":   true,
		"10.1.2.3":        true,
		"10.1.2.4":        false,
		"127.0.0.1":       false,
		"localhost":       false,
		"::1":             false,
		"fe80::1%eth0":    false,
	} {
		if err := check(host); (err == nil) != allowed {
			t.Errorf("%s: %v", host, err)
		}
	}
}
