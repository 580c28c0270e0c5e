package jwt_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/principal"
)

func TestMetadata(t *testing.T) {
	t.Parallel()
	corp := jwt.Issuer{URL: "https://login.example", Audience: hub}
	named := jwt.Issuer{URL: "https://names.example", Audience: "api://default", Scopes: map[string][]principal.Scope{"use": {principal.MCP}, "all": {principal.Admin}}}
	far := jwt.Issuer{URL: "https://far.example", Audience: "https://far.example/hub"}
	for name, tt := range map[string]struct {
		issuers  []jwt.Issuer
		host     string
		tls      bool
		at, want string
	}{
		"behind a proxy": {
			[]jwt.Issuer{corp}, "hub.example", false, "https://hub.example" + jwt.Path,
			`{"resource":"https://hub.example/mcp","authorization_servers":["https://login.example"],"scopes_supported":["chat","mcp","read"],"bearer_methods_supported":["header"],"resource_name":"Luanette"}`,
		},
		"an audience that is a name": {
			[]jwt.Issuer{named}, "127.0.0.1:8081", false, "http://127.0.0.1:8081" + jwt.Path,
			`{"resource":"http://127.0.0.1:8081/mcp","authorization_servers":["https://names.example"],"scopes_supported":["all","use"],"bearer_methods_supported":["header"],"resource_name":"Luanette"}`,
		},
		"the audience of this host": {
			[]jwt.Issuer{far, named, corp}, "hub.example", true, "https://hub.example" + jwt.Path,
			`{"resource":"https://hub.example/mcp","authorization_servers":["https://far.example","https://names.example","https://login.example"],"scopes_supported":["chat","mcp","read","all","use"],"bearer_methods_supported":["header"],"resource_name":"Luanette"}`,
		},
	} {
		s := jwt.New(tt.issuers, httpjsontest.Client)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+tt.host+jwt.Path, nil)
		if tt.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if at := s.Metadata(r); at != tt.at {
			t.Errorf("%s: it is at %s, want %s", name, at, tt.at)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != 200 || w.Body.String() != tt.want+"\n" || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %s %v", name, w.Code, w.Body, w.Header())
		}
	}
}
