package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// originFreeRoutes are the routes that do not check Host and Origin: they only read, and
// respond alike to every caller. Load balancers use some of them.
var originFreeRoutes = map[string]bool{
	"GET /health": true, "GET /ready": true, "/": true, "GET /{$}": true, "GET /icon.svg": true, "GET /assets/": true,
	"GET /.well-known/oauth-authorization-server": true, "/.well-known/oauth-protected-resource": true, "/.well-known/oauth-protected-resource/mcp": true,
	"POST /hooks/{hook}": true, // no page can sign a request, and services use names that we do not know
}

// TestAttackRebindingOnEveryRoute sends requests as a browser does on behalf of a page of
// another site: with a Host name that resolves to this server, and with another Origin.
func TestAttackRebindingOnEveryRoute(t *testing.T) {
	t.Parallel()
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, withPeople)})
	for _, route := range srv.routes() {
		if originFreeRoutes[route.Pattern] {
			continue
		}
		method, path, hasMethod := strings.Cut(route.Pattern, " ")
		if !hasMethod {
			method, path = http.MethodPost, route.Pattern
		}
		path = wildcard.ReplaceAllString(path, "x")
		for name, header := range map[string][2]string{
			"another Host":     {"Host", "evil.example"},
			"another Origin":   {"Origin", "https://evil.example"},
			"a sandboxed page": {"Origin", "null"},
		} {
			response := httpjsontest.Open(t, method, url+path, "{}", header[0], header[1])
			response.Body.Close()
			if response.StatusCode != http.StatusForbidden && (route.Scope == "" || response.StatusCode != http.StatusUnauthorized) {
				t.Errorf("%s with %s: %s", route.Pattern, name, response.Status)
			}
		}
	}
}
