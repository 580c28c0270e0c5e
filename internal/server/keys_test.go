package server

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
)

// publicRoutes are the routes that require no key, because load balancers, browsers before
// a login, or clients that look for an authorization server use them.
var publicRoutes = map[string]bool{
	"GET /health": true, "GET /ready": true, "/": true,
	"GET /{$}": true, "GET /icon.svg": true, "GET /assets/": true,
	"POST /api/v1/login": true, "POST /api/v1/logout": true, "GET /api/v1/me": true, "POST /api/v1/me/org": true,
	"GET /api/v1/me/keys": true, "POST /api/v1/me/keys": true, "DELETE /api/v1/me/keys/{name}": true, // whoever signs in has some, whatever their role
	"GET /api/v1/me/secrets": true, "PUT /api/v1/me/secrets/{name}": true, "DELETE /api/v1/me/secrets/{name}": true, // likewise
	"GET /api/v1/shares": true, "POST /api/v1/shares": true, "DELETE /api/v1/shares/{id}": true, "GET /api/v1/people/colleagues": true, // they check who asks
	"GET /api/v1/openapi.json": true, "/api/v1/": true, "/v1/": true,
	"/.well-known/": true, "/mcp/.well-known/": true,
	"GET /oauth/callback": true, "GET /oauth/callback/finish": true, "GET /oauth/client.json": true, // used by browsers and authorization servers, which have no key
	"POST /hooks/{hook}": true, // its requests are signed

	// People come here before they have a session, and their clients before they have a token.
	"GET /signin": true, "GET /signin/to/{provider}": true, "GET /signin/callback": true, "POST /signin/ended/{provider}": true,
	"GET /signout": true, "POST /signout": true, "GET /device": true, "POST /device": true,
	"GET /oauth/authorize": true, "GET /oauth/consent": true, "POST /oauth/consent": true, "POST /oauth/token": true,
	"POST /oauth/revoke": true, "POST /oauth/register": true, "POST /oauth/device": true,
	"GET /.well-known/oauth-authorization-server": true, "/.well-known/oauth-protected-resource": true, "/.well-known/oauth-protected-resource/mcp": true,
	"GET /api/v1/me/grants": true, "DELETE /api/v1/me/grants/{id}": true, "GET /api/v1/me/export": true, "DELETE /api/v1/me": true,
	"GET /api/v1/me/logins": true, "DELETE /api/v1/me/logins/{namespace}": true,
	"GET /connect/{namespace}": true, "POST /connect/{namespace}": true, // they check the session themselves
}

// withPeople makes the server offer sign-in.
const withPeople = `
public_url = "http://localhost:8081"
[identity.corp]
issuer = "http://127.0.0.1:1"
client_id = "hub"
roles = ["user"]
`

// startWithPeople starts a server on a database. It offers sign-in, and "root-token" is the key
// of an administrator.
func startWithPeople(t *testing.T, database string) (url string, srv *Server) {
	t.Helper()
	return start(t, config.Sources{
		File: configtest.WriteFile(t, withPeople+"[keys.root]\nenv = \"ROOT\"\nscopes = [\"admin\"]\n"),
		Env:  config.Environment{"ROOT": "root-token", "LUANETTE_DATABASE": database, "LUANETTE_OAUTH_KEY": "a key that is long enough"},
	})
}

// otherScope returns a scope that does not include the given one.
func otherScope(scope principal.Scope) principal.Scope {
	if scope == principal.Read {
		return principal.Chat
	}
	return principal.Read
}

// shortest are queries that make routes respond soon: a profile lasts 30 s by default.
var shortest = map[string]string{"/debug/pprof/profile": "?seconds=1", "/debug/pprof/trace": "?seconds=0.01"}

var wildcard = regexp.MustCompile(`\{[^}]*\}`)

// TestRoutesRequireAKey checks that every route except the public ones requires a key with
// its scope.
func TestRoutesRequireAKey(t *testing.T) {
	t.Parallel()
	env := config.Environment{"ENGINE_API_KEY": "root-token"}
	scopes := map[principal.Scope]string{}
	for _, s := range principal.Scopes {
		scopes[s] = "only-" + string(s)
		env["KEY_"+strings.ToUpper(string(s))] = scopes[s]
	}
	file := configtest.WriteFile(t, `
keys.read  = { env = "KEY_READ",  scopes = ["read"] }
keys.chat  = { env = "KEY_CHAT",  scopes = ["chat"] }
keys.mcp   = { env = "KEY_MCP",   scopes = ["mcp"] }
keys.org   = { env = "KEY_ORG",   scopes = ["org"], org = "o" }
keys.observe = { env = "KEY_OBSERVE", scopes = ["observe"] }
keys.metrics = { env = "KEY_METRICS", scopes = ["metrics"] }
keys.admin = { env = "KEY_ADMIN", scopes = ["admin"] }
`+withPeople)
	url, srv := start(t, config.Sources{File: file, Env: env})
	ask := func(method, path, token string) int {
		name, value := httpjsontest.Bearer(token)
		answer := httpjsontest.Open(t, method, url+path+shortest[path], "{}", name, value)
		defer answer.Body.Close()
		_, _ = io.CopyN(io.Discard, answer.Body, 512)
		return answer.StatusCode
	}
	routes := srv.routes()
	seen := map[string]bool{}
	for _, route := range routes {
		seen[route.Pattern] = true
		method, path, ok := strings.Cut(route.Pattern, " ")
		if !ok {
			method, path = http.MethodPost, route.Pattern
		}
		path = wildcard.ReplaceAllString(strings.TrimSuffix(path, "{$}"), "o")
		if publicRoutes[route.Pattern] != (route.Scope == "") {
			t.Errorf("%s: scope %q", route.Pattern, route.Scope)
			continue
		}
		if route.Scope == "" {
			if got := ask(method, path, ""); got == 401 && route.Pattern != "GET /api/v1/me" && !route.Authenticates {
				t.Errorf("%s requires a key", route.Pattern)
			}
			continue
		}
		wrong := 403
		if strings.HasPrefix(path, "/mcp") || route.Refuse != nil {
			wrong = 401
		}
		for name, tt := range map[string]struct {
			token string
			want  int
		}{
			"no key":        {"", 401},
			"a wrong key":   {"guess", wrong},
			"another scope": {scopes[otherScope(route.Scope)], 403},
		} {
			if got := ask(method, path, tt.token); got != tt.want {
				t.Errorf("%s with %s: %d, want %d", route.Pattern, name, got, tt.want)
			}
		}
		if strings.HasSuffix(path, "/events") || path == "/mcp/sse" {
			continue // their responses do not end
		}
		for _, token := range []string{scopes[route.Scope], "root-token"} {
			if got := ask(method, path, token); got == 401 || got == 403 {
				t.Errorf("%s with a key of its scope: %d", route.Pattern, got)
			}
		}
	}
	for pattern := range publicRoutes {
		if !seen[pattern] {
			t.Errorf("there is no route %s", pattern)
		}
	}
	if len(routes) < 50 {
		t.Errorf("only %d routes were checked", len(routes))
	}
}

// TestListenRequiresAKey checks that a server without keys refuses to listen on an address
// that other machines can reach.
func TestListenRequiresAKey(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:80"} {
		loaded, err := config.Load(config.Sources{Flags: map[string]string{"listen": address, "data": t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		srv, err := Build(t.Context(), loaded, Options{Version: "test", Stderr: io.Discard, Env: config.Environment{}})
		if err != nil {
			t.Fatal(err)
		}
		err = srv.Serve(t.Context())
		if fault.CodeOf(err) != fault.Config || !strings.Contains(fault.HintOf(err), "luanette key create") {
			t.Errorf("%s: error %v, hint %q", address, err, fault.HintOf(err))
		}
	}
}
