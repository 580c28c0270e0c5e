package oauth_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/credentials/oauth"
)

// FuzzParseChallenge parses any header. A parsed challenge can be written and parsed
// again.
func FuzzParseChallenge(f *testing.F) {
	for _, seed := range []string{
		`Bearer resource_metadata="https://tools.example/.well-known/oauth-protected-resource", scope="read write"`,
		`Basic realm="a, b=c", Bearer error=insufficient_scope , scope = "x"`, `DPoP algs="ES256", Bearer`, `Bearer scope="unended`,
		`bearer scope="a\"b\\c"`, `Bearer ===`, `,,, Bearer =x`, "Bearer\tscope\t=\ty",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		c := oauth.ParseChallenge(header)
		if slices.ContainsFunc(c.Scopes, func(s string) bool { return s == "" || len(strings.Fields(s)) != 1 }) {
			t.Errorf("scopes %q", c.Scopes)
		}
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
		again := oauth.ParseChallenge(`Bearer resource_metadata="` + quoted.Replace(c.Metadata) + `", scope="` + quoted.Replace(strings.Join(c.Scopes, " ")) +
			`", error="` + quoted.Replace(c.Error) + `"`)
		if again.Metadata != c.Metadata || again.Error != c.Error || !slices.Equal(again.Scopes, c.Scopes) {
			t.Errorf("%q reads %+v, and again %+v", header, c, again)
		}
	})
}

// FuzzMetadata uses any metadata of tool and authorization servers. A login that
// starts nevertheless leads to an address that a browser may open.
func FuzzMetadata(f *testing.F) {
	f.Add(`{"resource":"RESOURCE/mcp","authorization_servers":["ISSUER"]}`,
		`{"issuer":"ISSUER","authorization_endpoint":"ISSUER/authorize","token_endpoint":"ISSUER/token","registration_endpoint":"ISSUER/register","code_challenge_methods_supported":["S256"]}`)
	f.Add(`{"resource":"RESOURCE","authorization_servers":["ISSUER","https://[::1]:99999"],"scopes_supported":null}`, `{"issuer":"ISSUER","token_endpoint":"//x"}`)
	f.Add(`[]`, `null`)
	f.Add(`{"resource":{"a":1}}`, `"`)
	r := setup(f)
	var resource, issuer atomic.Value
	r.Resource.Config.Handler = said(&resource, r)
	r.Issuer.Config.Handler = said(&issuer, r)
	f.Fuzz(func(t *testing.T, ofResource, ofIssuer string) {
		resource.Store(ofResource)
		issuer.Store(ofIssuer)
		begun, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect})
		if err != nil {
			return
		}
		u, err := url.Parse(begun.URL)
		if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !netguard.IsLoopback(u.Hostname())) || u.User != nil || u.Query().Get("code_challenge_method") != "S256" {
			t.Errorf("a login at %s (%v)", begun.URL, err)
		}
	})
}

// said returns a handler that always responds with a text, in which both servers can
// be named.
func said(text *atomic.Value, r *rig) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/register") {
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"client_id":"c"}`))
			return
		}
		_, _ = w.Write([]byte(strings.NewReplacer("RESOURCE", r.Resource.URL, "ISSUER", r.Issuer.URL).Replace(text.Load().(string))))
	})
}
