package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// TestTokensOfAnIssuer checks that a token of a configured issuer gives access according to
// its scope and is never passed to upstreams, and that the challenge to a client without
// one names the metadata.
func TestTokensOfAnIssuer(t *testing.T) {
	t.Parallel()
	const audience = "https://hub.example/mcp"
	issuer, other := oauthtest.NewIssuer(t), oauthtest.NewIssuer(t)
	var mu sync.Mutex
	var sent []string
	echo := hub.New(hub.Options{Name: "one", Version: "1", Tools: echoTool{}})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		sent = append(sent, r.Header.Get("Authorization"))
		mu.Unlock()
		echo.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		_ = echo.Close(context.WithoutCancel(t.Context())) // nothing is running
		upstream.Close()
	})
	file := configtest.WriteFile(t, `
[mcp]
menu = "full"
[upstreams.one]
url = "`+upstream.URL+`"
expose = "all"
[issuers.corp]
issuer = "`+issuer.URL+`"
audience = "`+audience+`"
jwks = "`+issuer.Keys()+`"
`)
	url, srv := start(t, config.Sources{File: file})
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	srv.catalog.Refresh(t.Context())

	valid := issuer.Token(t, audience, nil)
	if text := (keyClient{t, url, valid}).call("one__echo", `{"text":"hello"}`); !strings.Contains(text, "hello") {
		t.Errorf("valid token: %s", text)
	}
	metadata := `resource_metadata="` + url + `/.well-known/oauth-protected-resource"`
	for name, tt := range map[string]struct {
		path, token     string
		status          int
		challenge, body string
	}{
		"no token":               {"/mcp", "", 401, `Bearer ` + metadata + `, scope="mcp"`, "luanette key create"},
		"no token, events":       {"/api/v1/events", "", 401, `Bearer ` + metadata + `, scope="read"`, "Bearer token required"},
		"no token, keys":         {"/api/v1/keys", "", 401, `Bearer ` + metadata, "Bearer token required"},
		"expired":                {"/mcp", issuer.Token(t, audience, oauthtest.Claims{"exp": time.Now().Add(-time.Hour).Unix()}), 401, `Bearer error="invalid_token", ` + metadata + `, scope="mcp"`, "has expired"},
		"another audience":       {"/mcp/one", issuer.Token(t, "https://elsewhere.example", nil), 401, `Bearer error="invalid_token", ` + metadata + `, scope="mcp"`, "with the audience " + audience},
		"another issuer":         {"/mcp/sse", other.Token(t, audience, nil), 401, `Bearer error="invalid_token", ` + metadata + `, scope="mcp"`, "use a token of " + issuer.URL},
		"unsigned":               {"/mcp", issuer.Forged(t, "none", audience, nil), 401, `Bearer error="invalid_token", ` + metadata + `, scope="mcp"`, "is not good"},
		"HMAC of the public key": {"/api/v1/traces", issuer.Forged(t, "HS256", audience, nil), 401, `Bearer error="invalid_token", ` + metadata + `, scope="read"`, "is not good"},
		"missing scope read":     {"/api/v1/traces", valid, 403, `Bearer error="insufficient_scope", ` + metadata + `, scope="read"`, "does not have the scope read"},
		"missing scope mcp":      {"/mcp", issuer.Token(t, audience, oauthtest.Claims{"scope": "read"}), 403, `Bearer error="insufficient_scope", ` + metadata + `, scope="mcp"`, "does not have the scope mcp"},
		"a wrong key":            {"/mcp", "lun_guess", 401, `Bearer error="invalid_token", ` + metadata + `, scope="mcp"`, "Invalid API key"},
	} {
		header, value := httpjsontest.Bearer(tt.token)
		answer, body := httpjsontest.Read(t, http.MethodGet, url+tt.path, "", header, value)
		if got := answer.Header.Get("WWW-Authenticate"); answer.StatusCode != tt.status || got != tt.challenge || !strings.Contains(body, tt.body) {
			t.Errorf("%s: %d %s %s, want %d %s %s", name, answer.StatusCode, got, body, tt.status, tt.challenge, tt.body)
		}
		if strings.Contains(body, "elsewhere") || tt.token != "" && strings.Contains(body, tt.token) {
			t.Errorf("%s: the response contains the token: %s", name, body)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(sent) == 0 {
		t.Error("nothing reached the upstream")
	}
	for _, header := range sent {
		if header != "" {
			t.Errorf("the upstream received the header %q", header)
		}
	}
}

// TestIssuerMetadata checks that every client can read which issuers are accepted, also a
// page in a browser, which sends a preflight request first.
func TestIssuerMetadata(t *testing.T) {
	t.Parallel()
	url, _ := start(t, config.Sources{File: configtest.WriteFile(t, `
[issuers.corp]
issuer = "https://login.example"
audience = "https://hub.example/mcp"
`)})
	const page = "https://inspector.example"
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		answer, body := httpjsontest.Read(t, http.MethodGet, url+path, "", "Origin", page)
		want := `{"resource":"https://hub.example/mcp","authorization_servers":["https://login.example"],"scopes_supported":["chat","mcp","read"],"bearer_methods_supported":["header"],"resource_name":"Luanette"}`
		if answer.StatusCode != 200 || strings.TrimSpace(body) != want || answer.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %s %v", path, answer.StatusCode, body, answer.Header)
		}
		if answer, _ := httpjsontest.Read(t, http.MethodOptions, url+path, "", "Origin", page, "Access-Control-Request-Method", "GET"); answer.StatusCode != 204 || answer.Header.Get("Access-Control-Allow-Methods") != "GET, OPTIONS" {
			t.Errorf("%s: preflight: %d %v", path, answer.StatusCode, answer.Header)
		}
		if answer, _ := httpjsontest.Read(t, http.MethodPost, url+path, "", "Origin", page); answer.StatusCode != 405 {
			t.Errorf("%s: POST: %d", path, answer.StatusCode)
		}
	}
	if answer, body := httpjsontest.Read(t, http.MethodGet, url+"/.well-known/oauth-protected-resource/other", ""); answer.StatusCode != 404 {
		t.Errorf("metadata of another resource: %d %s", answer.StatusCode, body)
	}
}
