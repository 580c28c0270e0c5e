package netguard_test

import (
	"net/netip"
	"testing"

	"github.com/luanette/luanette/internal/base/netguard"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"93.184.216.34":        true,
		"2606:2800::1":         true,
		"8.8.8.8":              true,
		"127.0.0.1":            false,
		"::":                   false,
		"0.1.2.3":              false,
		"172.16.0.1":           false,
		"255.255.255.255":      false,
		"ff02::1":              false,
		"::1":                  false,
		"0.0.0.0":              false,
		"10.0.0.1":             false,
		"::ffff:10.0.0.1":      false,
		"100.64.0.1":           false,
		"169.254.169.254":      false,
		"192.0.0.8":            false,
		"192.168.1.1":          false,
		"198.18.0.1":           false,
		"224.0.0.1":            false,
		"240.0.0.1":            false,
		"fe80::1":              false,
		"fd00::1":              false,
		"64:ff9b::a00:1":       false,
		"2002:a00:1::":         false,
		"::a00:1":              false, // 10.0.0.1 in an obsolete form
		"64:ff9b:1::a00:1":     false,
		"2001:0:a00:1::":       false,
		"2001:db8::1":          false,
		"fec0::1":              false,
		"5f00::1":              false,
		"192.88.99.1":          false,
		"203.0.113.7":          false,
		"2001:4860:4860::8888": true,
	} {
		if got := netguard.Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("Public(%s) = %v", address, got)
		}
	}
	if netguard.Public(netip.Addr{}) {
		t.Error("the zero address is public")
	}
}
