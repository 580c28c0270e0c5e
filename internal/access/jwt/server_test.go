package jwt_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/principal"
)

const hub = "https://hub.example/mcp"

// request returns a request with a token.
func in(d time.Duration) int64 { return time.Now().Add(d).Unix() }

func TestTokens(t *testing.T) {
	t.Parallel()
	m, other := oauthtest.NewIssuer(t), oauthtest.NewIssuer(t)
	s := jwt.New([]jwt.Issuer{{URL: m.URL, Audience: hub, Org: "acme"}}, httpjsontest.Client)
	good := m.Token(t, hub, oauthtest.Claims{"name": "Ada L.", "scope": "mcp openid"})
	p, err := s.Principal(t.Context(), good)
	if err != nil || p.ID != "oauth:"+m.URL+"#ada" || p.User != m.URL+"#ada" || p.Name != "Ada L." || p.Org != "acme" || !p.May(principal.MCP, "") || p.May(principal.Read, "") || p.Expires.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := s.Principal(t.Context(), m.Token(t, hub, oauthtest.Claims{"scope": "admin", "scp": []string{"read"}})); err != nil || p.Admin() || !p.May(principal.Read, "") || p.Name != "ada" {
		t.Errorf("a token with the unmapped scope admin: %+v, %v", p, err)
	}
	if p, err := s.Principal(t.Context(), m.Token(t, hub, oauthtest.Claims{"aud": []string{"x", hub}})); err != nil || p.User != m.URL+"#ada" {
		t.Errorf("a token with two audiences: %+v, %v", p, err)
	}
	for name, token := range map[string]string{
		"another audience":           m.Token(t, "https://elsewhere.example", nil),
		"no audience":                m.Token(t, hub, oauthtest.Claims{"aud": nil}),
		"a longer audience":          m.Token(t, hub+"/", nil),
		"expired":                    m.Token(t, hub, oauthtest.Claims{"exp": in(-time.Hour)}),
		"no expiry":                  m.Token(t, hub, oauthtest.Claims{"exp": nil}),
		"an expiry as text":          m.Token(t, hub, oauthtest.Claims{"exp": strconv.FormatInt(in(time.Hour), 10)}),
		"a begin as text":            m.Token(t, hub, oauthtest.Claims{"nbf": strconv.FormatInt(in(-time.Hour), 10)}),
		"issued in the future":       m.Token(t, hub, oauthtest.Claims{"iat": in(time.Hour)}),
		"issued at a text":           m.Token(t, hub, oauthtest.Claims{"iat": strconv.FormatInt(in(-time.Hour), 10)}),
		"not yet":                    m.Token(t, hub, oauthtest.Claims{"nbf": in(time.Hour)}),
		"no signature":               m.Forged(t, "none", hub, nil),
		"None":                       m.Forged(t, "None", hub, nil),
		"a shared key":               m.Forged(t, "HS256", hub, nil),
		"an unknown issuer":          other.Token(t, hub, nil),
		"signed by another issuer":   other.Token(t, hub, oauthtest.Claims{"iss": m.URL}),
		"a key named in the header":  other.Signed(t, oauthtest.Claims{"alg": "RS256", "jku": other.Keys()}, oauthtest.Claims{"iss": m.URL, "aud": hub, "sub": "ada", "exp": in(time.Hour)}),
		"no subject":                 m.Token(t, hub, oauthtest.Claims{"sub": ""}),
		"a changed signature":        good[:len(good)-8] + "AAAAAAAA",
		"not a JWT":                  "a.b.c",
		"an empty token":             "",
		"two tokens":                 good + " " + good,
		"a claim of the wrong type":  m.Token(t, hub, oauthtest.Claims{"scope": 7}),
		"an ID token with a nonce":   m.Token(t, hub, oauthtest.Claims{"nonce": "n"}),
		"an ID token with a hash":    m.Token(t, hub, oauthtest.Claims{"at_hash": "h"}),
		"an identity assertion":      typed(t, m, "oauth-id-jag+jwt"),
		"a logout token":             typed(t, m, "logout+jwt"),
		"a type that is not text":    typed(t, m, 7),
		"an unknown critical header": m.Signed(t, oauthtest.Claims{"alg": "RS256", "kid": "1", "crit": []string{"x"}, "x": 1}, oauthtest.Claims{"iss": m.URL, "aud": hub, "sub": "ada", "exp": in(time.Hour)}),
	} {
		p, err := s.Principal(t.Context(), token)
		if fault.CodeOf(err) != fault.NeedsAuth || p.ID != "nobody" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if err != nil && (strings.Contains(err.Error(), "elsewhere") || strings.Contains(err.Error(), "ada") || token != "" && strings.Contains(err.Error(), token)) {
			t.Errorf("%s: the error contains part of the token: %v", name, err)
		}
	}
	if p, err := s.Principal(t.Context(), ""); fault.CodeOf(err) != fault.NeedsAuth || p.ID != "nobody" {
		t.Errorf("no token: %+v, %v", p, err)
	}
}

// typed returns a valid token with another type in its header.
func typed(t *testing.T, m *oauthtest.Issuer, kind any) string {
	t.Helper()
	return m.Signed(t, oauthtest.Claims{"alg": "RS256", "kid": "1", "typ": kind}, oauthtest.Claims{"iss": m.URL, "aud": hub, "sub": "ada", "scope": "mcp", "exp": in(time.Hour)})
}

// TestTypesOfAccessTokens checks the types that access tokens have.
func TestTypesOfAccessTokens(t *testing.T) {
	t.Parallel()
	m := oauthtest.NewIssuer(t)
	s := jwt.New([]jwt.Issuer{{URL: m.URL, Audience: hub}}, httpjsontest.Client)
	for _, kind := range []string{"", "JWT", "at+jwt", "application/at+jwt", "AT+JWT"} {
		if p, err := s.Principal(t.Context(), typed(t, m, kind)); err != nil || !p.May(principal.MCP, "") {
			t.Errorf("the type %q: %+v, %v", kind, p, err)
		}
	}
}

// TestUsersOfTwoIssuers checks that the same subject of two issuers is two users.
func TestUsersOfTwoIssuers(t *testing.T) {
	t.Parallel()
	one, two := oauthtest.NewIssuer(t), oauthtest.NewIssuer(t)
	s := jwt.New([]jwt.Issuer{{URL: one.URL, Audience: hub, Org: "acme"}, {URL: two.URL, Audience: hub, Org: "acme"}}, httpjsontest.Client)
	a, errA := s.Principal(t.Context(), one.Token(t, hub, nil))
	b, errB := s.Principal(t.Context(), two.Token(t, hub, nil))
	if errA != nil || errB != nil || a.User == b.User || a.ID == b.ID {
		t.Errorf("%q and %q, %v, %v", a.User, b.User, errA, errB)
	}
}

func TestScopesOfTokens(t *testing.T) {
	t.Parallel()
	m := oauthtest.NewIssuer(t)
	s := jwt.New([]jwt.Issuer{{
		URL: m.URL, Audience: hub, Keys: m.Keys(),
		Scopes: map[string][]principal.Scope{"hub:all": {principal.MCP, principal.Admin}, "hub:use": {principal.MCP, principal.Chat}, "hub:talk": {principal.Chat}},
	}}, httpjsontest.Client)
	if p, err := s.Principal(t.Context(), m.Token(t, hub, oauthtest.Claims{"scope": "hub:all"})); err != nil || !p.Admin() {
		t.Errorf("a mapped scope: %+v, %v", p, err)
	}
	if p, err := s.Principal(t.Context(), m.Token(t, hub, nil)); err != nil || p.May(principal.MCP, "") {
		t.Errorf("a scope that is not mapped: %+v, %v", p, err)
	}
	for scope, want := range map[principal.Scope]string{principal.MCP: "hub:use", principal.Chat: "hub:talk", principal.Read: "hub:all", principal.Admin: "hub:all"} {
		if got := s.ScopeName(scope); got != want {
			t.Errorf("ScopeName(%s) = %q, want %q", scope, got, want)
		}
	}
	usual := jwt.Issuer{URL: "https://one.example", Audience: hub}
	mapped := jwt.Issuer{URL: "https://two.example", Audience: hub, Scopes: map[string][]principal.Scope{"use": {principal.MCP}}}
	if s := jwt.New([]jwt.Issuer{usual}, httpjsontest.Client); s.ScopeName(principal.Chat) != "chat" || s.ScopeName(principal.Admin) != "" {
		t.Errorf("%q, %q", s.ScopeName(principal.Chat), s.ScopeName(principal.Admin))
	}
	if name := jwt.New([]jwt.Issuer{usual, mapped}, httpjsontest.Client).ScopeName(principal.MCP); name != "" {
		t.Errorf("the name of a scope that differs between issuers: %q", name)
	}
}

// TestClockSkew checks that a token that has just expired is still valid, and that its
// principal does not expire at once.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	m := oauthtest.NewIssuer(t)
	s := jwt.New([]jwt.Issuer{{URL: m.URL, Audience: hub}}, httpjsontest.Client)
	for name, claims := range map[string]oauthtest.Claims{
		"expired a moment ago": {"exp": in(-5 * time.Second)},
		"begins in a moment":   {"nbf": in(time.Minute)},
		"issued in a moment":   {"iat": in(time.Minute)},
	} {
		if p, err := s.Principal(t.Context(), m.Token(t, hub, claims)); err != nil || !p.Expires.After(time.Now()) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if _, err := s.Principal(t.Context(), m.Token(t, hub, oauthtest.Claims{"exp": in(-time.Minute)})); fault.CodeOf(err) != fault.NeedsAuth || !strings.Contains(err.Error(), "expired") {
		t.Errorf("expired a minute ago: %v", err)
	}
}

// TestUnreachableIssuer checks that a client is not sent to log in again when its
// issuer is unreachable.
func TestUnreachableIssuer(t *testing.T) {
	t.Parallel()
	m := oauthtest.NewIssuer(t)
	m.Failing.Store(true)
	for name, issuer := range map[string]jwt.Issuer{
		"a closed port": {URL: "http://127.0.0.1:1", Audience: hub},
		"no metadata":   {URL: m.URL, Audience: hub},
		"no keys":       {URL: m.URL, Audience: hub, Keys: m.Keys()},
	} {
		s := jwt.New([]jwt.Issuer{issuer}, httpjsontest.Client)
		_, err := s.Principal(t.Context(), m.Token(t, hub, oauthtest.Claims{"iss": issuer.URL}))
		if fault.CodeOf(err) != fault.Unavailable || strings.Contains(err.Error(), "the issuer fails") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := jwt.New([]jwt.Issuer{{URL: m.URL, Audience: hub}}, httpjsontest.Client)
	token := m.Token(t, hub, nil)
	if _, err := s.Principal(t.Context(), token); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("while it is unreachable: %v", err)
	}
	m.Failing.Store(false)
	if _, err := s.Principal(t.Context(), token); err != nil {
		t.Errorf("when it is reachable again: %v", err)
	}
	m.Failing.Store(true)
	if _, err := s.Principal(t.Context(), token); err != nil {
		t.Errorf("with cached keys: %v", err)
	}
}

// TestUnknownKeysAreFetchedSeldom checks that tokens with unknown keys do not cause a
// request to their issuer each time.
func TestUnknownKeysAreFetchedSeldom(t *testing.T) {
	t.Parallel()
	m := oauthtest.NewIssuer(t)
	s := jwt.New([]jwt.Issuer{{URL: m.URL, Audience: hub, Keys: m.Keys()}}, httpjsontest.Client)
	began := time.Now()
	for range 50 {
		token := m.Signed(t, oauthtest.Claims{"alg": "RS256", "kid": "unknown"}, oauthtest.Claims{"iss": m.URL, "aud": hub, "sub": "ada", "exp": in(time.Hour)})
		if _, err := s.Principal(t.Context(), token); fault.CodeOf(err) != fault.NeedsAuth {
			t.Fatal(err)
		}
	}
	if count, most := m.KeyRequests.Load(), 1+int32(time.Since(began)/(5*time.Second)); count > most {
		t.Errorf("its keys were requested %d times, want at most %d", count, most)
	}
}

// TestSlowIssuer checks that a slow issuer delays only callers with its tokens, for no
// longer than their contexts allow, and gets one request for all of them.
func TestSlowIssuer(t *testing.T) {
	t.Parallel()
	m := oauthtest.NewIssuer(t)
	var requests atomic.Int32
	answer := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		<-answer
		http.NotFound(w, r)
	}))
	t.Cleanup(slow.Close)
	s := jwt.New([]jwt.Issuer{{URL: m.URL, Audience: hub}, {URL: slow.URL, Audience: hub}}, httpjsontest.Client)
	token := m.Token(t, hub, oauthtest.Claims{"iss": slow.URL})
	cancelled, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 5 {
		waiting.Go(func() {
			if _, err := s.Principal(cancelled, token); fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("while its issuer does not answer: %v", err)
			}
		})
	}
	if _, err := s.Principal(t.Context(), m.Token(t, hub, nil)); err != nil {
		t.Errorf("a token of another issuer: %v", err)
	}
	cancel()
	waiting.Wait()
	close(answer)
	if n := requests.Load(); n > 1 {
		t.Errorf("the issuer was asked %d times at once", n)
	}
}
