package login_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/oauth"
	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/core/tool"
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
			spec := upstream.Spec{Name: "api", Trusted: true, OAuth: settings, API: api.Settings{Kind: api.OpenAPI, Source: file, BaseURL: f.site.URL()}}
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
