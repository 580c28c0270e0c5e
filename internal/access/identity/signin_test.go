package identity_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/access/identity"
	"github.com/luanette/luanette/internal/access/identity/identitytest"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs on Postgres what runs on SQLite.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t, TestSignIn, TestPeopleAreNotFoundByEmail, TestLeaver, TestSessionsFollowTheProvider, TestSignOut,
		TestClientActsForAPerson, TestRefreshTokensRotate, TestRefreshAtTheSameTime, TestCodesAreUsedOnce, TestDeviceLogin, TestDeviceCodesAreNotGuessed,
		TestAssertion, TestAssertionOnce)
}

// TestSignIn checks that a person who signs in has the roles of their groups, and comes
// back to where they wanted to go.
func TestSignIn(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	b := h.signIn(t, "/signin")
	m, status := h.me(t, b)
	who := h.person(t)
	if status != http.StatusOK || m.ID != "person:"+who.ID || m.User != who.ID || m.Name != "Ada" || m.CSRF == "" || !slices.Equal(m.Scopes, []principal.Scope{principal.Chat, principal.MCP, principal.Read}) {
		t.Errorf("%d %+v", status, m)
	}
	if got := b.Open(t, h.url+"/mcp"); got.Status != http.StatusOK {
		t.Errorf("a route of their scope: %d %s", got.Status, got.Body)
	}
	if got := b.Open(t, h.url+"/api/v1/people"); got.Status != http.StatusForbidden {
		t.Errorf("a route of another scope: %d %s", got.Status, got.Body)
	}
	if got := b.Open(t, h.url+"/signin?next=/mcp"); got.Status != http.StatusOK || got.URL.Path != "/mcp" {
		t.Errorf("went on to %s: %d %s", got.URL, got.Status, got.Body)
	}
	for _, evil := range []string{"https://evil.example/", "//evil.example/", `/\evil.example/`, "javascript:alert(1)", "evil", "/\t/evil.example"} {
		if got := b.Open(t, h.url+"/signin?next="+url.QueryEscape(evil)); got.URL.Path != "/" || got.URL.Host != strings.TrimPrefix(h.url, "http://") {
			t.Errorf("next=%s leads to %s", evil, got.URL)
		}
	}
	p.Change(func() { p.Person["groups"] = []string{"hub-admins"} })
	if m, _ := h.me(t, h.signIn(t, "/signin")); !slices.Equal(m.Scopes, []principal.Scope{principal.Admin}) {
		t.Errorf("with another group: %+v", m)
	}
	p.Change(func() { p.Person["groups"] = []string{"strangers"} })
	if got := identitytest.New(t).Open(t, h.url+"/signin"); got.Status != http.StatusForbidden || !strings.Contains(got.Body, "no role") {
		t.Errorf("without a role: %d %s", got.Status, got.Body)
	}
}

// TestPagesAreStrict checks the headers of pages that the server renders.
func TestPagesAreStrict(t *testing.T) {
	t.Parallel()
	one, two := oauthtest.NewProvider(t, ada()), oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(one, "one"), at(two, "two"))
	p := identitytest.New(t).Open(t, h.url+"/signin")
	if p.Status != http.StatusOK || !strings.Contains(p.Body, "/signin/to/one") || !strings.Contains(p.Body, "/signin/to/two") {
		t.Errorf("%d %s", p.Status, p.Body)
	}
	policy := p.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
	}
	if p.Header.Get("Cache-Control") != "no-store" || p.Header.Get("Referrer-Policy") != "same-origin" || p.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("headers %v", p.Header)
	}
}

// TestPeopleAreNotFoundByEmail checks that only issuer, tenant and subject identify
// somebody.
func TestPeopleAreNotFoundByEmail(t *testing.T) {
	t.Parallel()
	one, two := oauthtest.NewProvider(t, ada()), oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(one, "one"), at(two, "two"))
	id := func(path string) string {
		m, _ := h.me(t, h.signIn(t, path))
		return m.ID
	}
	first := id("/signin/to/one")
	if again := id("/signin/to/one"); again != first {
		t.Errorf("the same person is %s and %s", first, again)
	}
	seen := []string{first, id("/signin/to/two")}
	one.Change(func() { one.Person["sub"] = "ada-2" })
	seen = append(seen, id("/signin/to/one"))
	one.Change(func() { one.Person["tid"] = "another tenant" })
	seen = append(seen, id("/signin/to/one"))
	if slices.Sort(seen); len(slices.Compact(slices.Clone(seen))) != 4 || slices.Contains(seen, "") {
		t.Errorf("the same address at another issuer, with another subject and in another tenant: %q", seen)
	}
}

// TestDomains checks that only verified addresses of a domain let people in.
func TestDomains(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	only := at(p, "corp")
	only.Domains = []string{"example.com"}
	h := newHub(t, nil, only)
	for name, tt := range map[string]struct {
		claims oauthtest.Claims
		want   bool
	}{
		"verified":           {oauthtest.Claims{"email": "ada@Example.com", "email_verified": true}, true},
		"not verified":       {oauthtest.Claims{"email": "ada@example.com", "email_verified": false}, false},
		"not said":           {oauthtest.Claims{"email": "ada@example.com", "email_verified": nil}, false},
		"another domain":     {oauthtest.Claims{"email": "ada@evil.example", "email_verified": true}, false},
		"a domain in a name": {oauthtest.Claims{"email": "ada@example.com@evil.example", "email_verified": true}, false},
		"a hosted domain":    {oauthtest.Claims{"email": "", "email_verified": nil, "hd": "example.com"}, true},
	} {
		p.Change(func() {
			p.Person = ada()
			for claim, value := range tt.claims {
				p.Person[claim] = value
			}
		})
		if got := identitytest.New(t).Open(t, h.url+"/signin"); (got.Status != http.StatusForbidden) != tt.want {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
	}
}

// TestSignInLinkOfAnotherBrowser checks that nobody can be made to sign in as somebody
// else by a link, and that the attempt does not use the link up.
func TestSignInLinkOfAnotherBrowser(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	alice, bob := identitytest.New(t), identitytest.New(t)
	alice.Stop = func(u *url.URL) bool { return u.Path == "/signin/callback" }
	link := alice.Open(t, h.url+"/signin").To
	bob.Open(t, h.url+"/signin") // bob has a flow of his own
	for name, other := range map[string]*identitytest.Browser{"with a flow": bob, "without": identitytest.New(t)} {
		before, _ := h.me(t, other)
		if got := other.Open(t, link); got.Status != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
		if after, _ := h.me(t, other); after.ID != before.ID {
			t.Errorf("%s: was %q, is %q", name, before.ID, after.ID)
		}
	}
	alice.Stop = nil
	if got := alice.Open(t, link); got.URL.Path != "/" {
		t.Errorf("in her own browser: %d %s %s", got.Status, got.URL, got.Body)
	}
	if got := alice.Open(t, link); got.Status != http.StatusForbidden {
		t.Errorf("the same state twice: %d %s", got.Status, got.Body)
	}
}

// TestMixUp checks that a code is not sent to a provider whose answer it may not be.
func TestMixUp(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(url.Values){
		"another issuer": func(back url.Values) { back.Set("iss", "https://evil.example") },
		"no issuer":      func(back url.Values) { back.Del("iss") },
		"with a slash":   func(back url.Values) { back.Set("iss", back.Get("iss")+"/") },
		"an error":       func(back url.Values) { back.Set("error", "access_denied") },
	} {
		p := oauthtest.NewProvider(t, ada())
		h := newHub(t, nil, at(p, "corp"))
		p.Redirect = change
		got := identitytest.New(t).Open(t, h.url+"/signin")
		if got.Status != http.StatusForbidden || p.Requests() != 0 {
			t.Errorf("%s: %d, %d requests to the token endpoint: %s", name, got.Status, p.Requests(), got.Body)
		}
	}
}

// TestForgedIDTokens checks that only ID tokens of the provider, for us and for this
// sign-in, say who somebody is.
func TestForgedIDTokens(t *testing.T) {
	t.Parallel()
	p, other := oauthtest.NewProvider(t, ada()), oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	for name, change := range map[string]func(){
		"another audience": func() { p.Extra = oauthtest.Claims{"aud": "another client"} },
		"two audiences":    func() { p.Extra = oauthtest.Claims{"aud": []string{oauthtest.ClientID, "x"}, "azp": "x"} },
		"another issuer":   func() { p.Extra = oauthtest.Claims{"iss": "https://evil.example"} },
		"another nonce":    func() { p.Extra = oauthtest.Claims{"nonce": "x"} },
		"no nonce":         func() { p.Extra = oauthtest.Claims{"nonce": nil} },
		"expired":          func() { p.Extra = oauthtest.Claims{"exp": time.Now().Add(-time.Hour).Unix()} },
		"an end as text":   func() { p.Extra = oauthtest.Claims{"exp": fmt.Sprint(time.Now().Add(time.Hour).Unix())} },
		"of the future":    func() { p.Extra = oauthtest.Claims{"iat": time.Now().Add(time.Hour).Unix()} },
		"a begin as text":  func() { p.Extra = oauthtest.Claims{"iat": fmt.Sprint(time.Now().Unix())} },
		"no begin": func() {
			p.Answer = func(c oauthtest.Claims) string {
				delete(c, "iat")
				return p.Signed(t, oauthtest.Claims{"alg": "RS256", "kid": "1", "typ": "JWT"}, c)
			}
		},
		"groups as text": func() { p.Extra = oauthtest.Claims{"groups": "hub-users other"} },
		"no subject":     func() { p.Extra = oauthtest.Claims{"sub": ""} },
		"a logout token": func() { p.Extra = oauthtest.Claims{"events": map[string]any{}} },
		"no signature": func() {
			p.Answer = func(c oauthtest.Claims) string { return p.Signed(t, oauthtest.Claims{"alg": "none"}, c) }
		},
		"a shared key": func() {
			p.Answer = func(c oauthtest.Claims) string { return p.Forged(t, "HS256", oauthtest.ClientID, c) }
		},
		"signed by another": func() { p.Answer = func(c oauthtest.Claims) string { return other.Token(t, oauthtest.ClientID, c) } },
		"no token":          func() { p.Answer = func(oauthtest.Claims) string { return "" } },
		"of somebody else":  func() { p.Extra = oauthtest.Claims{"sub": "eve"} }, // /me says ada
	} {
		p.Change(func() { p.Extra, p.Answer = nil, nil; change() })
		if got := identitytest.New(t).Open(t, h.url+"/signin"); got.Status != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
	}
	if list, err := h.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%d people, %v", len(list), err)
	}
}

// TestFailedSignInsAreLimited checks that sign-ins that fail are recorded, and after some in a
// minute refused without a record, while those that do not fail go on.
func TestFailedSignInsAreLimited(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	refused := 0
	for n := range 30 {
		if got := identitytest.New(t).Open(t, fmt.Sprintf("%s/signin/callback?state=guess%d&code=x", h.url, n)); got.Status == http.StatusTooManyRequests {
			refused++
		} else if got.Status != http.StatusForbidden {
			t.Errorf("%d %s", got.Status, got.Body)
		}
	}
	if refused != 10 {
		t.Errorf("%d of 30 were refused as too many", refused)
	}
	h.signIn(t, "/signin")
}

// TestSignOut checks that signing out needs the person's own page, and ends the session
// here and at the provider.
func TestSignOut(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	b := h.signIn(t, "/signin")
	if got := b.Post(t, h.url+"/signout", url.Values{"csrf": {"guess"}}); got.Status != http.StatusForbidden {
		t.Errorf("a form of another page: %d %s", got.Status, got.Body)
	}
	got := b.Submit(t, b.Open(t, h.url+"/signout"), nil)
	if got.Body != "signed out at the provider" || got.URL.Query().Get("id_token_hint") == "" || got.URL.Query().Get("post_logout_redirect_uri") != h.url+"/" {
		t.Errorf("%s: %d %s", got.URL, got.Status, got.Body)
	}
	if _, status := h.me(t, b); status != http.StatusUnauthorized {
		t.Errorf("after signing out: %d", status)
	}
}

// TestSessionsFollowTheProvider checks that sessions end when the provider says so, and
// that roles follow groups while they last.
func TestSessionsFollowTheProvider(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	b := h.signIn(t, "/signin")
	recheck := func() {
		h.clock.Advance(20 * time.Minute)
		if err := h.Recheck(t.Context()); err != nil {
			t.Error(err)
		}
	}
	p.Change(func() { p.Person["groups"] = []string{"hub-admins"} })
	recheck()
	if m, _ := h.me(t, b); !slices.Equal(m.Scopes, []principal.Scope{principal.Admin}) {
		t.Errorf("after a change of groups: %+v", m)
	}
	p.Failing.Store(true) // its metadata is known already; the token endpoint still answers
	recheck()
	if _, status := h.me(t, b); status != http.StatusOK {
		t.Errorf("while the provider fails: %d", status)
	}
	p.Failing.Store(false)
	p.Change(func() { p.Person["groups"] = []string{} })
	recheck()
	if _, status := h.me(t, b); status != http.StatusUnauthorized {
		t.Errorf("without a role: %d", status)
	}
	p.Change(func() { p.Person = ada() })
	b = h.signIn(t, "/signin")
	p.Change(func() { p.Gone = true })
	recheck()
	if _, status := h.me(t, b); status != http.StatusUnauthorized {
		t.Errorf("after the provider ended the session: %d", status)
	}
}

// TestBackChannelLogout checks that the provider can end sessions, and nobody else.
func TestBackChannelLogout(t *testing.T) {
	t.Parallel()
	p, other := oauthtest.NewProvider(t, ada()), oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	b := h.signIn(t, "/signin")
	event := map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}
	good := oauthtest.Claims{"sub": "ada-1", "sid": "session of ada-1", "events": event, "iat": time.Now().Unix(), "jti": "1", "scope": nil}
	send := func(token string) int {
		response := httpjsontest.Open(t, http.MethodPost, h.url+"/signin/ended/corp", url.Values{"logout_token": {token}}.Encode(), "Content-Type", "application/x-www-form-urlencoded")
		return response.StatusCode
	}
	with := func(name string, value any) oauthtest.Claims {
		changed := oauthtest.Claims{}
		for claim, known := range good {
			changed[claim] = known
		}
		changed[name] = value
		return changed
	}
	for name, token := range map[string]string{
		"of another":       other.Token(t, oauthtest.ClientID, with("iss", p.URL)),
		"another audience": p.Token(t, "x", good),
		"an ID token":      p.Token(t, oauthtest.ClientID, with("nonce", "n")),
		"no event":         p.Token(t, oauthtest.ClientID, with("events", nil)),
		"nothing":          "",
	} {
		if status := send(token); status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, status)
		}
	}
	if _, status := h.me(t, b); status != http.StatusOK {
		t.Errorf("after refused tokens: %d", status)
	}
	if status := send(p.Token(t, oauthtest.ClientID, good)); status != http.StatusOK {
		t.Errorf("a logout token: %d", status)
	}
	if _, status := h.me(t, b); status != http.StatusUnauthorized {
		t.Errorf("after it: %d", status)
	}
	b = h.signIn(t, "/signin")
	if status := send(p.Token(t, oauthtest.ClientID, with("sid", nil))); status != http.StatusOK {
		t.Errorf("a logout token for all sessions: %d", status)
	}
	if _, status := h.me(t, b); status != http.StatusUnauthorized {
		t.Errorf("after it: %d", status)
	}
}

// TestLeaver checks that everything that acts for a blocked person ends at once.
func TestLeaver(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	b := h.signIn(t, "/signin")
	who := h.person(t)
	_, key, err := h.keys.Create(t.Context(), apikey.Key{Name: "laptop", Rights: apikey.Rights{Scopes: []principal.Scope{principal.MCP}, User: who.ID, Person: who.ID}})
	if err != nil {
		t.Fatal(err)
	}
	access, refresh := h.newApp(t, "https://app.example/back").tokens(t, b)
	job, status := h.call(t, access) // what a job stores
	if status != http.StatusOK || job.Grant == "" {
		t.Fatalf("%d %+v", status, job)
	}
	issued := p.Token(t, h.url+"/mcp", oauthtest.Claims{"sub": "ada-1", "scope": "mcp"})
	theirs, status := h.call(t, issued)
	if status != http.StatusOK || theirs.ID != principal.TokenPrefix+p.URL+"#ada-1" {
		t.Fatalf("a token of the issuer: %d %+v", status, theirs)
	}
	ended := make(chan error, 3)
	for _, token := range []string{key, access, issued} {
		response := httpjsontest.Open(t, http.MethodGet, h.url+"/stream", "", "Authorization", "Bearer "+token)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("stream: %s", response.Status)
		}
		<-h.streams
		go func() {
			_, err := response.Body.Read(make([]byte, 1)) // until the server ends it
			ended <- err
		}()
	}
	if err := h.Block(t.Context(), who.ID); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-ended
	}
	for name, token := range map[string]string{"key": key, "token": access, "token of the issuer": issued} {
		if _, status := h.call(t, token); status != http.StatusUnauthorized && status != http.StatusForbidden {
			t.Errorf("their %s: %d", name, status)
		}
	}
	if _, status := h.me(t, b); status != http.StatusUnauthorized {
		t.Errorf("their session: %d", status)
	}
	for name, was := range map[string]principal.Principal{"a client's": job, "their own": {ID: job.ID, Scopes: job.Scopes}, "a key's": {ID: "key:laptop"}, "an issuer's": theirs} {
		if _, err := h.keys.Current(t.Context(), was); fault.CodeOf(err) != fault.Denied {
			t.Errorf("%s job: %v", name, err)
		}
		if err := h.keys.Check(was); fault.CodeOf(err) != fault.Denied {
			t.Errorf("a call of %s job: %v", name, err)
		}
	}
	if got, status := (&app{hub: h}).refresh(t, refresh); status != http.StatusBadRequest {
		t.Errorf("their refresh token: %d %v", status, got)
	}
	if got := b.Open(t, h.url+"/signin"); got.Status != http.StatusForbidden {
		t.Errorf("signing in again: %d %s", got.Status, got.Body)
	}
	if err := h.Unblock(t.Context(), who.ID); err != nil {
		t.Fatal(err)
	}
	h.signIn(t, "/signin")
	if _, status := h.call(t, access); status == http.StatusOK {
		t.Error("a token of before works after the person came back")
	}
	for name, token := range map[string]string{"key": key, "token of the issuer": issued} {
		if _, status := h.call(t, token); status != http.StatusOK {
			t.Errorf("their %s after they came back: %d", name, status)
		}
	}
}

// TestKeysOfPeople checks that people make keys with at most their rights, see only their
// own, and that a key loses what its person loses.
func TestKeysOfPeople(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	b := h.signIn(t, "/signin")
	m, _ := h.me(t, b)
	send := func(method, path, body string) (int, string) {
		var session []string
		for _, c := range b.Cookies(h.url) {
			session = append(session, c.Name+"="+c.Value)
		}
		response, text := httpjsontest.Read(t, method, h.url+path, body, "Cookie", strings.Join(session, "; "), "X-CSRF-Token", m.CSRF)
		return response.StatusCode, text
	}
	for name, body := range map[string]string{"more": `{"name":"a","scopes":["admin"]}`, "another scope": `{"name":"a","scopes":["metrics"]}`} {
		if status, text := send("POST", "/api/v1/me/keys", body); status != http.StatusForbidden {
			t.Errorf("a key with %s: %d %s", name, status, text)
		}
	}
	status, text := send("POST", "/api/v1/me/keys", `{"name":"mine","expires":"90d","person":"somebody","user":"else","org":"acme"}`)
	if status != http.StatusCreated || !strings.Contains(text, `"person":"`+h.person(t).ID+`"`) || !strings.Contains(text, `"expires"`) || strings.Contains(text, "acme") {
		t.Fatalf("%d %s", status, text)
	}
	_, after, _ := strings.Cut(text, `"token":"`)
	key, _, _ := strings.Cut(after, `"`)
	if who, status := h.call(t, key); status != http.StatusOK || who.User != h.person(t).ID {
		t.Errorf("%d %+v", status, who)
	}
	if status, text := send("GET", "/api/v1/me/keys", ""); status != http.StatusOK || !strings.Contains(text, `"mine"`) || !strings.Contains(text, `"used"`) {
		t.Errorf("list: %d %s", status, text)
	}
	if _, _, err := h.keys.Create(t.Context(), apikey.Key{Name: "theirs", Rights: apikey.Rights{Scopes: []principal.Scope{principal.MCP}}}); err != nil {
		t.Fatal(err)
	}
	if status, text := send("GET", "/api/v1/me/keys", ""); strings.Contains(text, "theirs") {
		t.Errorf("somebody else's key is listed: %d %s", status, text)
	}
	if status, text := send("DELETE", "/api/v1/me/keys/theirs", ""); status != http.StatusNotFound {
		t.Errorf("somebody else's key: %d %s", status, text)
	}
	p.Change(func() { p.Person["groups"] = []string{"hub-viewers"} })
	if _, err := h.SignIn(t.Context(), people.Arrival{Identity: people.Identity{Issuer: p.URL, Subject: "ada-1"}, Name: "Ada", Roles: map[string][]string{"": {"viewer"}}, Source: "corp"}); err != nil {
		t.Fatal(err)
	}
	if _, status := h.call(t, key); status != http.StatusForbidden {
		t.Errorf("a key whose person may only read now: %d", status)
	}
	if status, text := send("DELETE", "/api/v1/me/keys/mine", ""); status != http.StatusOK {
		t.Errorf("revoke: %d %s", status, text)
	}
}

// TestCookies checks that over TLS only cookies count that no sibling domain can set, and
// that the public address tells that a proxy has TLS.
func TestCookies(t *testing.T) {
	t.Parallel()
	browsers := netguard.Browsers{PublicURL: "https://hub.example"}
	request := func(target, sent string) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		r.Header.Set("Cookie", sent)
		return r
	}
	for _, which := range []string{cookie.Session, cookie.Flow, cookie.Login} {
		w := httptest.NewRecorder()
		cookie.In(request("http://hub.example/", ""), browsers).Set(w, which, "value", time.Now().Add(time.Hour))
		set := w.Result().Cookies()[0]
		if set.Name != "__Host-"+which || !set.Secure || set.Domain != "" || set.Path != "/" || !set.HttpOnly || (set.SameSite == http.SameSiteLaxMode) != (which != cookie.Session) {
			t.Errorf("behind a proxy: %s", set)
		}
		if got := cookie.In(request("http://hub.example/", which+"=planted"), browsers).Get(which); got != "" {
			t.Errorf("a cookie that a sibling domain can set is read: %q", got)
		}
		if got := cookie.In(request("http://hub.example/", which+"=planted; __Host-"+which+"=ours"), browsers).Get(which); got != "ours" {
			t.Errorf("ours is read as %q", got)
		}
		if got := cookie.In(request("http://127.0.0.1:8081/", which+"=ours"), browsers).Get(which); got != "ours" {
			t.Errorf("on this machine: %q", got)
		}
	}
}

// TestSiblingCookieAtTheCallback checks that a flow cookie that a sibling domain planted
// does not finish a sign-in over TLS.
func TestSiblingCookieAtTheCallback(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, func(o *identity.Options) { o.PublicURL = "https://hub.example"; o.Browsers.PublicURL = o.PublicURL }, at(p, "corp"))
	begin := httpjsontest.Client
	ask := func(path string, cookies ...string) *http.Response {
		r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, h.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "hub.example"
		r.Header.Set("Cookie", strings.Join(cookies, "; "))
		once := *begin
		once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		response, err := once.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	begun := ask("/signin/to/corp")
	flow := begun.Cookies()[0]
	at, err := begun.Location()
	if err != nil || !flow.Secure || !strings.HasPrefix(flow.Name, "__Host-") {
		t.Fatalf("%v, cookie %s", err, flow)
	}
	once := *begin
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	atProvider, err := once.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	atProvider.Body.Close()
	back, err := atProvider.Location()
	if err != nil {
		t.Fatal(err)
	}
	if response := ask(back.RequestURI(), cookie.Flow+"="+flow.Value); response.StatusCode != http.StatusForbidden {
		t.Errorf("with the planted cookie: %s", response.Status)
	}
	if response := ask(back.RequestURI(), flow.Name+"="+flow.Value); response.StatusCode != http.StatusOK || len(response.Cookies()) != 1 || response.Cookies()[0].Name != "__Host-"+cookie.Session {
		t.Errorf("with our cookie: %s %v", response.Status, response.Cookies())
	}
}
