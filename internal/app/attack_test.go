package app

import (
	"net/http"
	"strings"
	"testing"
)

// harmlessRoutes answer everybody alike, and do nothing: for load balancers, and
// pages whose scripts a browser reads only from its own origin.
var harmlessRoutes = map[string]bool{
	"GET /health": true, "GET /ready": true, "/": true, "GET /{$}": true, "GET /icon.svg": true, "GET /assets/": true,
}

// TestAttackRebindingOnEveryRoute asks every route of the real server as a page
// elsewhere would have a browser do: under a name that was made to point here,
// and from another origin.
func TestAttackRebindingOnEveryRoute(t *testing.T) {
	t.Parallel()
	url, house := start(t, Sources{})
	for _, route := range house.routes() {
		if harmlessRoutes[route.Pattern] {
			continue
		}
		method, path, hasMethod := strings.Cut(route.Pattern, " ")
		if !hasMethod {
			method, path = http.MethodPost, route.Pattern
		}
		path = wildcard.ReplaceAllString(path, "x")
		for name, tricked := range map[string]func(*http.Request){
			"another name":   func(r *http.Request) { r.Host = "evil.example" },
			"another origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
			"a sandbox":      func(r *http.Request) { r.Header.Set("Origin", "null") },
		} {
			r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			tricked(r)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusForbidden {
				t.Errorf("%s by %s: %s", route.Pattern, name, response.Status)
			}
		}
	}
}
