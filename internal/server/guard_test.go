package server

import (
	"testing"

	"github.com/luanette/luanette/internal/config"
)

func TestDialGuard(t *testing.T) {
	t.Parallel()
	guard := outward{allowed: []string{"10.1.2.3", "*"}, loopback: true}.control
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
		if err := guard("tcp", address, nil); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestAttackLoopbackFromOutside has those who reach a server from elsewhere look
// for what only this machine should reach.
func TestAttackLoopbackFromOutside(t *testing.T) {
	t.Parallel()
	for listen, c := range map[string]struct {
		hosts []string
		open  bool
	}{
		"127.0.0.1:0":      {nil, true},
		"localhost:80":     {nil, true},
		"[::1]:0":          {[]string{"*"}, true},
		"0.0.0.0:80":       {[]string{"*"}, false},
		":80":              {nil, false},
		"10.0.0.1:80":      {nil, false},
		"[::]:80":          {[]string{"localhost"}, true},
		"example.com:8081": {[]string{"127.0.0.1"}, true},
	} {
		h := &Server{config: &config.Loaded{}}
		h.config.Listen, h.config.MCP.AllowedHosts = listen, c.hosts
		if err := h.outward().control("tcp", "127.0.0.1:6379", nil); (err == nil) != c.open {
			t.Errorf("listening on %s, allowed %v: %v", listen, c.hosts, err)
		}
	}
}
