package netguard_test

import (
	"testing"

	"github.com/luanette/luanette/internal/base/netguard"
)

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
