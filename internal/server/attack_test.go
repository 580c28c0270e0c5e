package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
)

// originFreeRoutes answer everybody alike, and do nothing: for load balancers, and
// pages whose scripts a browser reads only from its own origin.
var originFreeRoutes = map[string]bool{
	"GET /health": true, "GET /ready": true, "/": true, "GET /{$}": true, "GET /icon.svg": true, "GET /assets/": true,
}

// TestAttackRebindingOnEveryRoute asks every route of the real server as a page
// elsewhere would have a browser do: under a name that was made to point here,
// and from another origin.
func TestAttackRebindingOnEveryRoute(t *testing.T) {
	t.Parallel()
	url, srv := start(t, config.Sources{})
	for _, route := range srv.routes() {
		if originFreeRoutes[route.Pattern] {
			continue
		}
		method, path, hasMethod := strings.Cut(route.Pattern, " ")
		if !hasMethod {
			method, path = http.MethodPost, route.Pattern
		}
		path = wildcard.ReplaceAllString(path, "x")
		for name, tricked := range map[string][2]string{
			"another name":   {"Host", "evil.example"},
			"another origin": {"Origin", "https://evil.example"},
			"a sandbox":      {"Origin", "null"},
		} {
			response := httpjsontest.Open(t, method, url+path, "{}", tricked[0], tricked[1])
			response.Body.Close()
			if response.StatusCode != http.StatusForbidden {
				t.Errorf("%s by %s: %s", route.Pattern, name, response.Status)
			}
		}
	}
}
