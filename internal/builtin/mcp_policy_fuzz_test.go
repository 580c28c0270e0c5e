package builtin_test

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/builtin/servertools"
)

// FuzzAllowHosts checks arbitrary URLs while every public host is allowed: an accepted
// URL is https or on this machine, and never has a private address.
func FuzzAllowHosts(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/mcp", "http://127.0.0.1:1/", "https://10.0.0.1/", "https://0x7f000001/", "https://[::ffff:a00:1]/", "https://017700000001/",
		"http://localhost./", "https://127.1/", "https://example.com./", "zmq+tcp://h:1", "https://169.254.169.254.nip.io/", "https://a@b/",
	} {
		f.Add(seed)
	}
	allow := servertools.AllowHosts([]string{"*"})
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil || allow(t.Context(), u) != nil {
			return
		}
		host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
		address, err := netip.ParseAddr(host)
		onThisMachine := host == "localhost" || err == nil && address.Unmap().IsLoopback()
		if !onThisMachine && (u.Scheme != "https" || err == nil && !netguard.Public(address) || !strings.Contains(host, ".") && err != nil) {
			t.Errorf("%q is allowed", text)
		}
	})
}
