package oauth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/oauth"
)

// TestAttackOAuthURLs has servers name addresses that are a trap for whoever
// opens or asks them.
func TestAttackOAuthURLs(t *testing.T) {
	t.Parallel()
	for _, trap := range []string{
		"javascript:alert(1)//", "file:///etc/passwd", "data:text/html,x", "http://as.example/authorize", "https://user:pw@as.example/authorize",
		"https:///authorize", "ftp://as.example/", "\"; rm -rf / #", "http://169.254.169.254/latest",
	} {
		for _, field := range []string{"authorization_endpoint", "token_endpoint", "registration_endpoint", "device_authorization_endpoint"} {
			r := setup(t)
			r.Metadata = func(said map[string]any) { said[field] = trap }
			if begun, err := r.logins.Begin(t.Context(), r.server, redirect); err == nil {
				t.Errorf("%s %s: %s", field, trap, begun.URL)
			}
		}
		r := setup(t)
		r.Protected = func(said map[string]any) { said["authorization_servers"] = []string{trap} }
		if begun, err := r.logins.Begin(t.Context(), r.server, redirect); err == nil {
			t.Errorf("issuer %s: %s", trap, begun.URL)
		}
	}
}

// TestAttackOAuthMixUp has the metadata tell of another server or issuer than it is of.
func TestAttackOAuthMixUp(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.Metadata = func(said map[string]any) { said["issuer"] = "https://bank.example" }
	if _, err := r.logins.Begin(t.Context(), r.server, redirect); fault.CodeOf(err) != fault.Denied {
		t.Errorf("another issuer: %v", err)
	}
	r = setup(t)
	r.Protected = func(said map[string]any) { said["resource"] = "https://bank.example/mcp" }
	if _, err := r.logins.Begin(t.Context(), r.server, redirect); fault.CodeOf(err) != fault.Denied {
		t.Errorf("another resource: %v", err)
	}
	r = setup(t)
	r.Metadata = func(said map[string]any) { said["code_challenge_methods_supported"] = []string{"plain"} }
	if _, err := r.logins.Begin(t.Context(), r.server, redirect); fault.CodeOf(err) != fault.Denied {
		t.Errorf("without PKCE: %v", err)
	}
	r = setup(t)
	r.server.Settings.Issuer = "https://login.example.org"
	if _, err := r.logins.Begin(t.Context(), r.server, redirect); fault.CodeOf(err) != fault.Denied {
		t.Errorf("not the configured issuer: %v", err)
	}
}

// TestAttackOAuthDiscovery follows a public tool server's metadata to places
// inside: by name, by a name that is resolved anew, and by redirect.
func TestAttackOAuthDiscovery(t *testing.T) {
	t.Parallel()
	var visited atomic.Bool
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited.Store(true) }))
	defer inside.Close()
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	for _, address := range []string{"127.0.0.1", "::1", "169.254.169.254", "10.0.0.1", "100.64.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "fd00::1", "fe80::1", "0.0.0.0"} {
		r := setup(t)
		asked := 0
		l := r.resolving(t, func(_ context.Context, host string) ([]netip.Addr, error) {
			asked++
			return []netip.Addr{netip.MustParseAddr(address)}, nil
		})
		public := oauth.Server{Name: "public", URL: "https://tools.example" + port + "/mcp"}
		if _, err := l.Begin(t.Context(), public, redirect); err == nil || !strings.Contains(err.Error(), "not of the public internet") || asked == 0 {
			t.Errorf("%s: %v, asked %d times", address, err, asked)
		}
	}
	r := setup(t)
	r.Issuer.Config.Handler = http.RedirectHandler("http://169.254.169.254/", http.StatusFound)
	if _, err := r.logins.Begin(t.Context(), r.server, redirect); fault.CodeOf(err) != fault.Denied {
		t.Errorf("by redirect: %v", err)
	}
	if visited.Load() {
		t.Error("the server inside was asked")
	}
}

// TestAttackGiantMetadata has an authorization server talk without end.
func TestAttackGiantMetadata(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.Issuer.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 1 << 10 {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	})
	if _, err := r.logins.Begin(t.Context(), r.server, redirect); fault.CodeOf(err) != fault.Limit {
		t.Errorf("%v", err)
	}
}
