package login_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// TestAPIWithOAuth calls an API that requires a token: with client credentials nobody is
// needed, otherwise a person logs in first.
func TestAPIWithOAuth(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]upstream.OAuth{
		"client credentials": {ClientID: "robot", ClientSecret: "s3cret", Grant: oauth.GrantCredentials},
		"authorization code": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.site.Change(func() {
				f.site.Secret = settings.ClientSecret
				f.site.Inner = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"path":"`+r.URL.Path+`"}`)
				})
			})
			file := filepath.Join(t.TempDir(), "api.json")
			document := `{"openapi":"3.1.0","info":{"title":"Docs","version":"1"},"paths":{"":{"get":{"operationId":"read"}}}}`
			if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
				t.Fatal(err)
			}
			manager := upstream.New(upstream.Options{Login: f.upstreams})
			defer manager.Close()
			spec := upstream.Spec{Name: "api", Trusted: true, Settings: upstream.Settings{OAuth: settings, API: api.Settings{Kind: api.OpenAPI, Source: file, BaseURL: f.site.URL()}}}
			if err := manager.Add(spec); err != nil {
				t.Fatal(err)
			}
			call := func() (tool.Result, error) {
				return manager.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "api", Name: "read"}, Args: json.RawMessage(`{}`)})
			}
			if settings.Grant == "" {
				if result, err := call(); err == nil {
					t.Fatalf("without a login it is %s", result.Raw)
				}
				begun, _, err := f.upstreams.Start(t.Context(), spec, false, oauth.Return{URL: redirect})
				if err != nil {
					t.Fatal(err)
				}
				back := f.site.Agree(t, begun.URL)
				if _, err := f.upstreams.Finish(t.Context(), back.Query()); err != nil {
					t.Fatal(err)
				}
			}
			if result, err := call(); err != nil || !strings.Contains(string(result.Raw), `"path":"/mcp"`) {
				t.Errorf("result %s, error %v", result.Raw, err)
			}
		})
	}
}

// TestAPIWhoseDocumentNamesItsTokens calls an API of which only the document says where
// client credentials get a token.
func TestAPIWhoseDocumentNamesItsTokens(t *testing.T) {
	t.Parallel()
	f := setup(t)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /auth/token", func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "robot" || password != "s3cret" || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "read" || r.Form.Has("resource") {
			t.Errorf("asked for a token as %s with %v", user, r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"t0ken","token_type":"bearer","expires_in":3600}`)
	})
	mux.HandleFunc("GET /v1/read", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"read":true}`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	manager := upstream.New(upstream.Options{Login: f.upstreams})
	defer manager.Close()
	for name, document := range map[string]string{
		"new": `{"openapi":"3.1.0","info":{"title":"Docs","version":"1"},"paths":{"/read":{"get":{"operationId":"read"}}},
			"components":{"securitySchemes":{"key":{"type":"apiKey","in":"header","name":"k"},
			"oauth":{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":"/auth/token","scopes":{"read":""}}}}}}}`,
		"old": `{"swagger":"2.0","info":{"title":"Docs","version":"1"},"paths":{"/read":{"get":{"operationId":"read"}}},
			"securityDefinitions":{"oauth":{"type":"oauth2","flow":"application","tokenUrl":"` + server.URL + `/auth/token"}}}`,
	} {
		file := filepath.Join(t.TempDir(), "api.json")
		if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := manager.Add(upstream.Spec{
			Name: name, Trusted: true, Settings: upstream.Settings{
				API:   api.Settings{Kind: api.OpenAPI, Source: file, BaseURL: server.URL + "/v1"},
				OAuth: upstream.OAuth{ClientID: "robot", ClientSecret: "s3cret", Grant: oauth.GrantCredentials, Scopes: []string{"read"}},
			},
		}); err != nil {
			t.Fatal(err)
		}
		result, err := manager.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: name, Name: "read"}, Args: json.RawMessage(`{}`)})
		if err != nil || !strings.Contains(string(result.Raw), `"read":true`) {
			t.Errorf("%s: result %s, error %v", name, result.Raw, err)
		}
	}
}
