package oauth_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/credentials/oauth"
)

// names are the only names that these tests can resolve.
var names = netguardtest.InterceptDNS()

// TestAttackOAuthURLs checks that dangerous addresses in metadata are refused.
func TestAttackOAuthURLs(t *testing.T) {
	t.Parallel()
	for _, trap := range []string{
		"javascript:alert(1)//", "file:///etc/passwd", "data:text/html,x", "http://as.example/authorize", "https://user:pw@as.example/authorize",
		"https:///authorize", "ftp://as.example/", "\"; rm -rf / #", "http://169.254.169.254/latest",
	} {
		for _, field := range []string{"authorization_endpoint", "token_endpoint", "registration_endpoint", "device_authorization_endpoint"} {
			r := setup(t)
			r.Metadata = func(said map[string]any) { said[field] = trap }
			if begun, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect}); err == nil {
				t.Errorf("%s %s: %s", field, trap, begun.URL)
			}
		}
		r := setup(t)
		r.Protected = func(said map[string]any) { said["authorization_servers"] = []string{trap} }
		if begun, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect}); err == nil {
			t.Errorf("issuer %s: %s", trap, begun.URL)
		}
	}
}

// TestAttackOAuthMixUp checks that metadata of another server or issuer is refused.
func TestAttackOAuthMixUp(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.Metadata = func(said map[string]any) { said["issuer"] = "https://bank.example" }
	if _, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect}); fault.CodeOf(err) != fault.Denied {
		t.Errorf("another issuer: %v", err)
	}
	r = setup(t)
	r.Protected = func(said map[string]any) { said["resource"] = "https://bank.example/mcp" }
	if _, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect}); fault.CodeOf(err) != fault.Denied {
		t.Errorf("another resource: %v", err)
	}
	r = setup(t)
	r.server.Settings.Issuer = "https://login.example.org"
	if _, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect}); fault.CodeOf(err) != fault.Denied {
		t.Errorf("not the configured issuer: %v", err)
	}
}

// TestAttackOAuthDiscovery checks that the metadata of a public tool server cannot
// lead into a private network: by name, by a name that changes its address, and by
// redirect.
func TestAttackOAuthDiscovery(t *testing.T) {
	t.Parallel()
	var visited atomic.Bool
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited.Store(true) }))
	defer inside.Close()
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	for _, address := range []string{"127.0.0.1", "::1", "169.254.169.254", "10.0.0.1", "100.64.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "fd00::1", "fe80::1", "0.0.0.0"} {
		r := setup(t)
		name := names.Add(func() netip.Addr { return netip.MustParseAddr(address) })
		public := oauth.Server{Name: "public", URL: "https://" + name + port + "/mcp"}
		if _, err := r.logins.Begin(t.Context(), public, oauth.Return{URL: redirect}); err == nil || !strings.Contains(err.Error(), "not on the public internet") {
			t.Errorf("%s: %v", address, err)
		}
	}
	r := setup(t)
	r.Issuer.Config.Handler = http.RedirectHandler("http://169.254.169.254/", http.StatusFound)
	if _, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect}); fault.CodeOf(err) != fault.Denied {
		t.Errorf("by redirect: %v", err)
	}
	if visited.Load() {
		t.Error("the server inside was asked")
	}
}

// TestAttackGiantMetadata checks that endless metadata is refused.
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
	if _, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect}); fault.CodeOf(err) != fault.Limit {
		t.Errorf("%v", err)
	}
}

// TestAttackPKCEDowngrade checks that a server without PKCE is refused, at the first
// login and after a successful one.
func TestAttackPKCEDowngrade(t *testing.T) {
	t.Parallel()
	for _, methods := range []any{nil, []string{}, []string{"plain"}, []string{"s256"}, "S256", []any{map[string]any{"S256": true}}} {
		r := setup(t)
		r.login(t)
		r.Change(func() {
			r.Metadata = func(said map[string]any) { said["code_challenge_methods_supported"] = methods }
		})
		if begun, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect}); err == nil {
			t.Errorf("%v: %s", methods, begun.URL)
		}
	}
}

// TestAttackCodeInjection checks that the code of another person's login is refused,
// at the same server and at another one.
func TestAttackCodeInjection(t *testing.T) {
	t.Parallel()
	r := setup(t)
	back := func(r *rig) url.Values {
		begun, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect})
		if err != nil {
			t.Fatal(err)
		}
		return r.Agree(t, begun.URL).Query()
	}
	mine, theirs, elsewhere := back(r), back(r), back(setup(t))
	mine.Set("code", theirs.Get("code"))
	if _, err := r.logins.Finish(t.Context(), mine); err == nil || !strings.Contains(err.Error(), "invalid_grant") || r.token(t) != "" {
		t.Errorf("with the code of another login: %v", err)
	}
	if mistakes := strings.Join(r.Mistakes(), ", "); mistakes != "the verifier does not fit" {
		t.Errorf("the server says: %s", mistakes)
	}
	mixed := back(r)
	mixed.Set("code", elsewhere.Get("code"))
	mixed.Set("iss", elsewhere.Get("iss"))
	if _, err := r.logins.Finish(t.Context(), mixed); fault.CodeOf(err) != fault.Denied || r.token(t) != "" {
		t.Errorf("with the answer of another server: %v", err)
	}
}

// TestAttackStateAtOnce sends the same response many times at once, to two nodes.
func TestAttackStateAtOnce(t *testing.T) {
	t.Parallel()
	r := setup(t)
	nodes := []*oauth.Logins{r.logins, r.node(t)}
	begun, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect})
	if err != nil {
		t.Fatal(err)
	}
	back := r.Agree(t, begun.URL).Query()
	var through atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := nodes[i%2].Finish(t.Context(), back); err == nil {
				through.Add(1)
			} else if fault.CodeOf(err) != fault.NotFound {
				t.Errorf("at once: %v", err)
			}
		})
	}
	all.Wait()
	if n := through.Load(); n != 1 {
		t.Errorf("%d of them counted", n)
	}
	r.blameless(t)
}

// TestAttackRedirectPort logs in from another port than before. A listener on the old
// port gets no code, because each address has its own registration.
func TestAttackRedirectPort(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.login(t)
	other := strings.Replace(redirect, "4711", "4712", 1)
	begun, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: other})
	if err != nil {
		t.Fatal(err)
	}
	back := r.Agree(t, begun.URL)
	if back.Port() != "4712" {
		t.Errorf("the browser was sent to %s", back)
	}
	if _, err := r.logins.Finish(t.Context(), back.Query()); err != nil {
		t.Error(err)
	}
	r.blameless(t)
	link, err := url.Parse(begun.URL)
	if err != nil {
		t.Fatal(err)
	}
	asked := link.Query()
	asked.Set("redirect_uri", redirect)
	link.RawQuery = asked.Encode()
	response, err := http.DefaultTransport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, link.String(), nil))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("with the port of before: %s", response.Status)
	}
}
