package jwt_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/oauth/oauthtest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/principal"
)

const hub = "https://hub.example/mcp"

// request returns a request with a token.
func request(ctx context.Context, token string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func in(d time.Duration) int64 { return time.Now().Add(d).Unix() }

func TestTokens(t *testing.T) {
	t.Parallel()
	m, other := oauthtest.NewIssuer(t), oauthtest.NewIssuer(t)
	s := jwt.New([]jwt.Issuer{{URL: m.URL, Audience: hub, Org: "acme"}}, httpjsontest.Client)
	good := m.Token(t, hub, oauthtest.Claims{"name": "Ada L.", "scope": "mcp openid"})
	p, err := s.Principal(request(t.Context(), good))
	if err != nil || p.ID != "oauth:"+m.URL+"#ada" || p.User != "ada" || p.Name != "Ada L." || p.Org != "acme" || !p.May(principal.MCP, "") || p.May(principal.Read, "") || p.Expires.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := s.Principal(request(t.Context(), m.Token(t, hub, oauthtest.Claims{"scope": "admin", "scp": []string{"read"}}))); err != nil || p.Admin() || !p.May(principal.Read, "") || p.Name != "ada" {
		t.Errorf("a word makes an administrator: %+v, %v", p, err)
	}
	if p, err := s.Principal(request(t.Context(), m.Token(t, hub, oauthtest.Claims{"aud": []string{"x", hub}}))); err != nil || p.User != "ada" {
		t.Errorf("one audience of two: %+v, %v", p, err)
	}
	for name, token := range map[string]string{
		"another audience":   m.Token(t, "https://elsewhere.example", nil),
		"no audience":        m.Token(t, hub, oauthtest.Claims{"aud": nil}),
		"a longer audience":  m.Token(t, hub+"/", nil),
		"expired":            m.Token(t, hub, oauthtest.Claims{"exp": in(-time.Hour)}),
		"without an end":     m.Token(t, hub, oauthtest.Claims{"exp": nil}),
		"not yet":            m.Token(t, hub, oauthtest.Claims{"nbf": in(time.Hour)}),
		"no signature":       m.Forged(t, "none", hub, nil),
		"None":               m.Forged(t, "None", hub, nil),
		"a shared key":       m.Forged(t, "HS256", hub, nil),
		"an unknown issuer":  other.Token(t, hub, nil),
		"another's key":      other.Token(t, hub, oauthtest.Claims{"iss": m.URL}),
		"its own key":        other.Signed(t, oauthtest.Claims{"alg": "RS256", "jku": other.Keys()}, oauthtest.Claims{"iss": m.URL, "aud": hub, "sub": "ada", "exp": in(time.Hour)}),
		"nobody":             m.Token(t, hub, oauthtest.Claims{"sub": ""}),
		"changed":            good[:len(good)-8] + "AAAAAAAA",
		"no token":           "a.b.c",
		"not even that":      "",
		"two":                good + " " + good,
		"claims of no kind":  m.Token(t, hub, oauthtest.Claims{"scope": 7}),
		"an algorithm in it": m.Signed(t, oauthtest.Claims{"alg": "RS256", "kid": "1", "crit": []string{"x"}, "x": 1}, oauthtest.Claims{"iss": m.URL, "aud": hub, "sub": "ada", "exp": in(time.Hour)}),
	} {
		p, err := s.Principal(request(t.Context(), token))
		if fault.CodeOf(err) != fault.NeedsAuth || p.ID != "nobody" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if err != nil && (strings.Contains(err.Error(), "elsewhere") || strings.Contains(err.Error(), "ada") || token != "" && strings.Contains(err.Error(), token)) {
			t.Errorf("%s: the error tells of the token: %v", name, err)
		}
	}
	if p, err := s.Principal(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)); fault.CodeOf(err) != fault.NeedsAuth || p.ID != "nobody" {
		t.Errorf("nothing shown: %+v, %v", p, err)
	}
}

func TestScopesOfTokens(t *testing.T) {
	t.Parallel()
	m := oauthtest.NewIssuer(t)
	s := jwt.New([]jwt.Issuer{{
		URL: m.URL, Audience: hub, Keys: m.Keys(),
		Scopes: map[string][]principal.Scope{"hub:all": {principal.MCP, principal.Admin}, "hub:use": {principal.MCP, principal.Chat}, "hub:talk": {principal.Chat}},
	}}, httpjsontest.Client)
	if p, err := s.Principal(request(t.Context(), m.Token(t, hub, oauthtest.Claims{"scope": "hub:all"}))); err != nil || !p.Admin() {
		t.Errorf("a word that is mapped: %+v, %v", p, err)
	}
	if p, err := s.Principal(request(t.Context(), m.Token(t, hub, nil))); err != nil || p.May(principal.MCP, "") {
		t.Errorf("a word that is not: %+v, %v", p, err)
	}
	for scope, want := range map[principal.Scope]string{principal.MCP: "hub:use", principal.Chat: "hub:talk", principal.Read: "hub:all", principal.Admin: "hub:all"} {
		if got := s.ScopeName(scope); got != want {
			t.Errorf("for %s one asks for %q, want %q", scope, got, want)
		}
	}
	usual := jwt.Issuer{URL: "https://one.example", Audience: hub}
	mapped := jwt.Issuer{URL: "https://two.example", Audience: hub, Scopes: map[string][]principal.Scope{"use": {principal.MCP}}}
	if s := jwt.New([]jwt.Issuer{usual}, httpjsontest.Client); s.ScopeName(principal.Chat) != "chat" || s.ScopeName(principal.Admin) != "" {
		t.Errorf("%q, %q", s.ScopeName(principal.Chat), s.ScopeName(principal.Admin))
	}
	if word := jwt.New([]jwt.Issuer{usual, mapped}, httpjsontest.Client).ScopeName(principal.MCP); word != "" {
		t.Errorf("one word for two issuers who have different ones: %q", word)
	}
}

// TestClockSkew checks that a token that has just expired is still valid, and that its
// principal does not expire at once.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	m := oauthtest.NewIssuer(t)
	s := jwt.New([]jwt.Issuer{{URL: m.URL, Audience: hub}}, httpjsontest.Client)
	for name, claims := range map[string]oauthtest.Claims{
		"expired a moment ago":   {"exp": in(-5 * time.Second)},
		"begins in a moment":     {"nbf": in(time.Minute)},
		"made in a moment, even": {"iat": in(time.Minute)},
	} {
		if p, err := s.Principal(request(t.Context(), m.Token(t, hub, claims))); err != nil || !p.Expires.After(time.Now()) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if _, err := s.Principal(request(t.Context(), m.Token(t, hub, oauthtest.Claims{"exp": in(-time.Minute)}))); fault.CodeOf(err) != fault.NeedsAuth || !strings.Contains(err.Error(), "expired") {
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
		"nothing is there":    {URL: "http://127.0.0.1:1", Audience: hub},
		"its metadata":        {URL: m.URL, Audience: hub},
		"its keys, elsewhere": {URL: m.URL, Audience: hub, Keys: m.Keys()},
	} {
		s := jwt.New([]jwt.Issuer{issuer}, httpjsontest.Client)
		_, err := s.Principal(request(t.Context(), m.Token(t, hub, oauthtest.Claims{"iss": issuer.URL})))
		if fault.CodeOf(err) != fault.Unavailable || strings.Contains(err.Error(), "the mint is closed") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := jwt.New([]jwt.Issuer{{URL: m.URL, Audience: hub}}, httpjsontest.Client)
	token := m.Token(t, hub, nil)
	if _, err := s.Principal(request(t.Context(), token)); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("while it is unreachable: %v", err)
	}
	m.Failing.Store(false)
	if _, err := s.Principal(request(t.Context(), token)); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	m.Failing.Store(true)
	if _, err := s.Principal(request(t.Context(), token)); err != nil {
		t.Errorf("with keys that are known: %v", err)
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
		if _, err := s.Principal(request(t.Context(), token)); fault.CodeOf(err) != fault.NeedsAuth {
			t.Fatal(err)
		}
	}
	if requests, most := m.KeyRequests.Load(), 1+int32(time.Since(began)/(5*time.Second)); requests > most {
		t.Errorf("its keys were requested %d times, want at most %d", requests, most)
	}
}

// TestSlowIssuer checks that a slow issuer delays only callers with its tokens, for no
// longer than their contexts allow, and gets one request for all of them.
func TestSlowIssuer(t *testing.T) {
	t.Parallel()
	m := oauthtest.NewIssuer(t)
	var questions atomic.Int32
	answer := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		questions.Add(1)
		<-answer
		http.NotFound(w, r)
	}))
	t.Cleanup(slow.Close)
	s := jwt.New([]jwt.Issuer{{URL: m.URL, Audience: hub}, {URL: slow.URL, Audience: hub}}, httpjsontest.Client)
	token := m.Token(t, hub, oauthtest.Claims{"iss": slow.URL})
	impatient, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 5 {
		waiting.Go(func() {
			if _, err := s.Principal(request(impatient, token)); fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("while its issuer is silent: %v", err)
			}
		})
	}
	if _, err := s.Principal(request(t.Context(), m.Token(t, hub, nil))); err != nil {
		t.Errorf("a token of another issuer: %v", err)
	}
	cancel()
	waiting.Wait()
	close(answer)
	if n := questions.Load(); n > 1 {
		t.Errorf("the issuer was asked %d times at once", n)
	}
}
