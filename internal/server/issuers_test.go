package server

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/oauth/oauthtest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// A token of an issuer in the configuration opens what its scope says, and is never
// passed upstream; without one a client is told where to get it.
func TestTokensOfAnIssuer(t *testing.T) {
	t.Parallel()
	const hub = "https://hub.example/mcp"
	mint, other := oauthtest.NewIssuer(t), oauthtest.NewIssuer(t)
	var mu sync.Mutex
	var sent []string
	upstream := stranger(t, func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.Header.Get("Authorization"))
	})
	file := configtest.WriteFile(t, `
[mcp]
mode = "direct"
[upstreams.one]
url = "`+upstream+`"
expose = "all"
[issuers.corp]
issuer = "`+mint.URL+`"
audience = "`+hub+`"
jwks = "`+mint.Keys()+`"
`)
	url, srv := start(t, config.Sources{File: file})
	srv.upstreams.AwaitAttempts(t.Context(), upstreamWait)
	srv.catalog.Refresh(t.Context())

	good := mint.Token(t, hub, nil)
	if text := (keyClient{t, url, good}).call("one__echo", `{"text":"hello"}`); !strings.Contains(text, "hello") {
		t.Errorf("a good token: %s", text)
	}
	where := `resource_metadata="` + url + `/.well-known/oauth-protected-resource"`
	for what, tt := range map[string]struct {
		path, token     string
		status          int
		challenge, body string
	}{
		"none":                   {"/mcp", "", 401, `Bearer ` + where + `, scope="mcp"`, "luanette key create"},
		"none, for events":       {"/api/v1/events", "", 401, `Bearer ` + where + `, scope="read"`, "Bearer token required"},
		"none, for keys":         {"/api/v1/keys", "", 401, `Bearer ` + where, "Bearer token required"},
		"expired":                {"/mcp", mint.Token(t, hub, oauthtest.Claims{"exp": time.Now().Add(-time.Hour).Unix()}), 401, `Bearer error="invalid_token", ` + where + `, scope="mcp"`, "has expired"},
		"another audience":       {"/mcp/one", mint.Token(t, "https://elsewhere.example", nil), 401, `Bearer error="invalid_token", ` + where + `, scope="mcp"`, "with the audience " + hub},
		"another issuer":         {"/mcp/sse", other.Token(t, hub, nil), 401, `Bearer error="invalid_token", ` + where + `, scope="mcp"`, "use a token of " + mint.URL},
		"unsigned":               {"/mcp", mint.Forged(t, "none", hub, nil), 401, `Bearer error="invalid_token", ` + where + `, scope="mcp"`, "is not good"},
		"the public key, shared": {"/api/v1/traces", mint.Forged(t, "HS256", hub, nil), 401, `Bearer error="invalid_token", ` + where + `, scope="read"`, "is not good"},
		"too little":             {"/api/v1/traces", good, 403, `Bearer error="insufficient_scope", ` + where + `, scope="read"`, "does not have the scope read"},
		"too little for MCP":     {"/mcp", mint.Token(t, hub, oauthtest.Claims{"scope": "read"}), 403, `Bearer error="insufficient_scope", ` + where + `, scope="mcp"`, "does not have the scope mcp"},
		"a wrong key":            {"/mcp", "lun_guess", 401, `Bearer error="invalid_token", ` + where + `, scope="mcp"`, "Invalid API key"},
	} {
		name, value := httpjsontest.Bearer(tt.token)
		answer, body := httpjsontest.Read(t, http.MethodGet, url+tt.path, "", name, value)
		if got := answer.Header.Get("WWW-Authenticate"); answer.StatusCode != tt.status || got != tt.challenge || !strings.Contains(body, tt.body) {
			t.Errorf("%s: %d %s %s, want %d %s %s", what, answer.StatusCode, got, body, tt.status, tt.challenge, tt.body)
		}
		if strings.Contains(body, "elsewhere") || tt.token != "" && strings.Contains(body, tt.token) {
			t.Errorf("%s: the answer tells of the token: %s", what, body)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(sent) == 0 {
		t.Error("nothing reached the upstream")
	}
	for _, header := range sent {
		if header != "" {
			t.Errorf("the upstream was shown %q", header)
		}
	}
}

// Whoever asks is told who makes tokens: a page in a browser too, which asks first
// whether it may.
func TestWhoMakesTokens(t *testing.T) {
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
			t.Errorf("%s: whether one may: %d %v", path, answer.StatusCode, answer.Header)
		}
		if answer, _ := httpjsontest.Read(t, http.MethodPost, url+path, "", "Origin", page); answer.StatusCode != 405 {
			t.Errorf("%s: to write it: %d", path, answer.StatusCode)
		}
	}
	if answer, body := httpjsontest.Read(t, http.MethodGet, url+"/.well-known/oauth-protected-resource/other", ""); answer.StatusCode != 404 {
		t.Errorf("of something else: %d %s", answer.StatusCode, body)
	}
}
