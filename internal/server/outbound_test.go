package server

import (
	"testing"

	"github.com/luanette/luanette/internal/config"
)

// TestAttackLoopbackFromOutside checks that clients on other machines cannot make the server
// connect to its own machine.
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
		srv := &process{config: &config.Loaded{}}
		srv.config.Listen, srv.config.MCP.AllowedHosts = listen, c.hosts
		if err := srv.outbound().Control("tcp", "127.0.0.1:6379", nil); (err == nil) != c.open {
			t.Errorf("listening on %s, allowed %v: %v", listen, c.hosts, err)
		}
	}
}
