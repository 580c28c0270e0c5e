package exchange_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/identity"
	"github.com/luanette/luanette/internal/access/identity/identitytest"
	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/exchange"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// company is a hub at which Ada has signed in at the company's provider.
type company struct {
	*identity.Service
	*exchange.Exchanger
	provider *oauthtest.Provider
	clock    *clock.Virtual
	store    *db.DB
	url      string
	ada      string // her id
}

func key() (secret.Text, error) { return secret.New("a key with more than 16 bytes"), nil }

func newCompany(t *testing.T) *company {
	t.Helper()
	c := &company{
		clock: clock.NewVirtual(time.Now()), store: dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{}),
		provider: oauthtest.NewProvider(t, oauthtest.Claims{"sub": "ada-1", "name": "Ada"}),
	}
	server := httptest.NewUnstartedServer(nil)
	c.url = "http://" + server.Listener.Addr().String()
	c.Service = c.node(t, c.clock)
	server.Config.Handler = principal.Unguarded(c.Routes())
	server.Start()
	t.Cleanup(server.Close)
	logins, err := oauth.Open(t.Context(), c.store, oauth.Options{Key: key, Clock: c.clock})
	if err != nil {
		t.Fatal(err)
	}
	c.Exchanger = exchange.New(exchange.Options{Providers: c.Providers(), Logins: logins, Check: c.Check, SignIn: c.url + "/signin", Clock: c.clock})
	c.signIn(t)
	return c
}

// node is one of several servers with the same database.
func (c *company) node(t *testing.T, time clock.Clock) *identity.Service {
	t.Helper()
	made, err := identity.Open(t.Context(), c.store, identity.Options{
		PublicURL: c.url, Browsers: netguard.Browsers{PublicURL: c.url}, Key: key, Client: httpjsontest.Client, Clock: time,
		Providers: []signin.Provider{{
			Name: "corp", Issuer: c.provider.URL, ClientID: oauthtest.ClientID, Scopes: []string{"offline_access"}, Org: "acme", Everybody: []string{"user"},
			Secret: func() (secret.Text, error) { return secret.New(oauthtest.ClientSecret), nil },
		}},
		Audit: func(context.Context, string, string, []byte) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (c *company) signIn(t *testing.T) {
	t.Helper()
	if p := identitytest.New(t).Open(t, c.url+"/signin"); p.URL.Path != "/" {
		t.Fatalf("signing in: %d %s %s", p.Status, p.URL, p.Body)
	}
	list, err := c.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%d people: %v", len(list), err)
	}
	c.ada = list[0].ID
}

// at is a tool server as the configuration describes it for Ada.
func (c *company) at(name, address string) exchange.Server {
	return exchange.Server{
		Server: oauth.Server{Name: name, Owner: principal.PersonID(c.ada, "acme"), Org: "acme", URL: address, Trusted: true}, Method: exchange.Token, Person: c.ada,
	}
}

// atSite is a tool server whose authorization server trusts the provider.
func (c *company) atSite(site *oauthtest.Site) exchange.Server {
	s := c.at("wiki", site.URL())
	s.Method = exchange.IDJAG
	s.Settings = oauth.Settings{ClientID: oauthtest.ClientID, ClientSecret: "a-client-secret", Issuer: site.Issuer.URL}
	return s
}

// newSite starts a tool server whose authorization server verifies assertions, and takes
// each once.
func (c *company) newSite(t *testing.T) *oauthtest.Site {
	t.Helper()
	site := oauthtest.New(t, http.NotFoundHandler())
	site.Secret = "a-client-secret"
	used := map[string]bool{}
	site.Trusts = func(form url.Values) error {
		a, err := jwt.NewProvider(c.provider.URL, "unused", httpjsontest.Client).VerifyAssertion(t.Context(), form.Get("assertion"), site.Issuer.URL)
		switch {
		case err != nil:
			return err
		case used[a.ID]:
			return errors.New("an assertion was used twice")
		case strings.Join(a.Resources, " ") != site.URL() || a.Client != oauthtest.ClientID:
			return errors.New("an assertion for something else")
		}
		used[a.ID] = true
		return nil
	}
	t.Cleanup(func() {
		if mistakes := site.Mistakes(); len(mistakes) > 0 {
			t.Errorf("mistakes: %q", mistakes)
		}
	})
	return site
}

func (c *company) token(t *testing.T, s exchange.Server) string {
	t.Helper()
	got, err := c.Token(t.Context(), s)
	if err != nil || got == "" {
		t.Fatalf("%q: %v %s", got, err, fault.HintOf(err))
	}
	return got
}

// refused checks that there is no token, and why.
func (c *company) refused(t *testing.T, s exchange.Server, code fault.Code, hint string) {
	t.Helper()
	got, err := c.Token(t.Context(), s)
	if got != "" || fault.CodeOf(err) != code || !strings.Contains(fault.HintOf(err), hint) {
		t.Errorf("%q: %v, hint %q; want %s", got, err, fault.HintOf(err), code)
	}
}

func (c *company) signInHint() string { return "sign in again: " + c.url + "/signin" }

// TestIDJAG checks that the word of the provider gets a token of the tool server's
// authorization server, which is used until it expires.
func TestIDJAG(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	site := c.newSite(t)
	s := c.atSite(site)
	first := c.token(t, s)
	if again := c.token(t, s); again != first || len(c.provider.Exchanges()) != 1 {
		t.Errorf("%d exchanges, %v", len(c.provider.Exchanges()), again == first)
	}
	asked := c.provider.Exchanges()[0]
	if asked.Get("audience") != site.Issuer.URL || asked.Get("resource") != site.URL() || !strings.HasSuffix(asked.Get("subject_token_type"), ":id_token") {
		t.Errorf("asked for %v", asked)
	}
	c.clock.Advance(time.Hour)
	c.provider.Change(func() { c.provider.NoID = true }) // the ID token has expired by now
	second := c.token(t, s)
	if second == first {
		t.Error("an expired token is used")
	}
	if asked := c.provider.Exchanges()[1]; !strings.HasSuffix(asked.Get("subject_token_type"), ":refresh_token") {
		t.Errorf("without an ID token asked for %v", asked)
	}
	s.Settings.Issuer = "https://other.example"
	s.Name = "other" // a name has one issuer
	c.refused(t, s, fault.Denied, "oauth.issuer")
}

// TestExchange checks what the provider is asked for, with each setting.
func TestExchange(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	for name, tt := range map[string]struct {
		change func(*exchange.Server)
		want   url.Values
	}{
		"an address":      {func(*exchange.Server) {}, url.Values{"resource": {"https://wiki.example/mcp"}, "audience": nil, "subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"}, "scope": nil}},
		"an audience":     {func(s *exchange.Server) { s.Audience = "wiki" }, url.Values{"resource": nil, "audience": {"wiki"}}},
		"scopes":          {func(s *exchange.Server) { s.Settings.Scopes = []string{"a", "b"} }, url.Values{"scope": {"a b"}}},
		"an ID token":     {func(s *exchange.Server) { s.Subject = exchange.SubjectID }, url.Values{"subject_token_type": {"urn:ietf:params:oauth:token-type:id_token"}}},
		"a refresh token": {func(s *exchange.Server) { s.Subject = exchange.SubjectRefresh }, url.Values{"subject_token_type": {"urn:ietf:params:oauth:token-type:refresh_token"}}},
		"on behalf of": {func(s *exchange.Server) {
			s.Settings.Grant, s.Settings.Scopes = exchange.GrantBehalf, []string{"api://wiki/.default"}
		}, url.Values{
			"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "requested_token_use": {"on_behalf_of"}, "scope": {"api://wiki/.default"}, "resource": nil, "subject_token": nil,
		}},
	} {
		s := c.at(name, "https://wiki.example/mcp?secret=x")
		tt.change(&s)
		if got := c.token(t, s); !strings.HasPrefix(got, "exchanged-") {
			t.Errorf("%s: %s", name, got)
		}
		all := c.provider.Exchanges()
		for field, want := range tt.want {
			if got := all[len(all)-1][field]; strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s: %s is %q, want %q", name, field, got, want)
			}
		}
	}
}

// TestNight checks that work goes on after the browser session, as long as the provider
// agrees, and that the session and the work share the provider's refresh token, which each
// renewal replaces.
func TestNight(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	s := c.at("wiki", "https://wiki.example/mcp")
	seen := map[string]bool{}
	for range 6 {
		c.clock.Advance(20 * time.Minute)
		if err := c.Recheck(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen[c.token(t, s)] = true
	}
	c.clock.Advance(30 * 24 * time.Hour)
	seen[c.token(t, s)] = true
	if len(seen) < 3 {
		t.Errorf("%d tokens in a month", len(seen))
	}
	c.clock.Advance(2 * time.Hour)
	c.provider.Change(func() { c.provider.Gone = true })
	c.refused(t, s, fault.NeedsAuth, c.signInHint())
	before := c.provider.Requests()
	c.refused(t, s, fault.NeedsAuth, c.signInHint())
	if now := c.provider.Requests(); now != before {
		t.Errorf("a sign-in that has ended is asked about again: %d requests", now-before)
	}
	c.provider.Change(func() { c.provider.Gone = false })
	c.signIn(t)
	c.token(t, s)
}

// TestNoToken checks who gets no token, and what they are told.
func TestNoToken(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	s := c.at("wiki", "https://wiki.example/mcp")
	c.token(t, s)
	for name, tt := range map[string]struct {
		change func(*exchange.Server)
		code   fault.Code
		hint   string
	}{
		"another organisation":          {func(s *exchange.Server) { s.Org, s.Owner = "other", principal.PersonID(s.Person, "other") }, fault.Denied, ""},
		"a key of nobody":               {func(s *exchange.Server) { s.Owner, s.Person = s.Owner+" ", "" }, fault.Denied, ""},
		"somebody who is not there":     {func(s *exchange.Server) { s.Owner, s.Person = principal.PersonID("eve", "acme"), "eve" }, fault.Denied, ""},
		"an upstream of a model":        {func(s *exchange.Server) { s.Trusted, s.Name = false, "theirs" }, fault.Denied, ""},
		"a client without an issuer":    {func(s *exchange.Server) { s.Settings.ClientID, s.Name = "a", "b" }, fault.Config, ""},
		"an assertion without a client": {func(s *exchange.Server) { s.Method, s.Name = exchange.IDJAG, "c" }, fault.Config, ""},
	} {
		t.Run(name, func(t *testing.T) { // the provider counts
			other := s
			tt.change(&other)
			before := len(c.provider.Exchanges())
			c.refused(t, other, tt.code, tt.hint)
			if n := len(c.provider.Exchanges()) - before; n != 0 {
				t.Errorf("%d exchanges", n)
			}
		})
	}
	c.provider.Change(func() { c.provider.StepUp = true })
	step := s
	step.Name = "more"
	c.refused(t, step, fault.NeedsAuth, c.signInHint())
	if err := c.Block(t.Context(), c.ada); err != nil {
		t.Fatal(err)
	}
	c.refused(t, s, fault.Denied, "administrator") // although a token is known
	c.provider.Change(func() { c.provider.StepUp = false })
	if err := c.Unblock(t.Context(), c.ada); err != nil {
		t.Fatal(err)
	}
	step.Name = "after"
	c.refused(t, step, fault.NeedsAuth, c.signInHint()) // what blocking ended stays ended
}

// TestSignOutEverywhere checks that the tokens of sign-ins end when the provider says that
// the person has signed out everywhere.
func TestSignOutEverywhere(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	end := func(claims oauthtest.Claims) {
		claims["events"] = map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}
		claims["iat"], claims["scope"] = time.Now().Unix(), nil
		form := url.Values{"logout_token": {c.provider.Token(t, oauthtest.ClientID, claims)}}
		if r := httpjsontest.Open(t, http.MethodPost, c.url+"/signin/ended/corp", form.Encode(), "Content-Type", "application/x-www-form-urlencoded"); r.StatusCode != http.StatusOK {
			t.Fatalf("ending: %s", r.Status)
		}
	}
	end(oauthtest.Claims{"sub": "ada-1", "sid": "session of ada-1"})
	c.token(t, c.at("one", "https://wiki.example/mcp")) // a browser session ended, no more
	end(oauthtest.Claims{"sub": "ada-1"})
	c.refused(t, c.at("two", "https://wiki.example/mcp"), fault.NeedsAuth, c.signInHint())
}

// TestOneExchange checks that many calls at a time exchange once.
func TestOneExchange(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	s := c.at("wiki", "https://wiki.example/mcp")
	var all sync.WaitGroup
	got := make([]string, 50)
	for i := range got {
		all.Go(func() { got[i], _ = c.Token(t.Context(), s) })
	}
	all.Wait()
	for _, token := range got {
		if token == "" || token != got[0] {
			t.Fatalf("%q and %q", token, got[0])
		}
	}
	if n := len(c.provider.Exchanges()); n != 1 {
		t.Errorf("%d exchanges", n)
	}
	elsewhere := c.at("wiki", "https://evil.example/mcp")
	if token := c.token(t, elsewhere); token == got[0] {
		t.Error("a token is sent to another server")
	}
}

// TestOneRenewal checks that several nodes renew the tokens of a sign-in once, since the
// provider takes a refresh token once.
func TestOneRenewal(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	c.provider.Change(func() { c.provider.Seconds = 30 })
	c.clock.Advance(time.Second)
	c.signIn(t)
	c.provider.Change(func() { c.provider.Seconds = 3600 })
	before := c.provider.Requests()
	nodes := []*identity.Service{c.node(t, clock.Real()), c.node(t, clock.Real())}
	var all sync.WaitGroup
	got := make([]signin.Subject, 20)
	errs := make([]error, len(got))
	for i := range got {
		all.Go(func() {
			got[i], errs[i] = nodes[i%2].Providers().Subject(t.Context(), c.ada, "acme", func(s signin.Subject) string { return s.Access })
		})
	}
	all.Wait()
	for i := range got {
		if errs[i] != nil || got[i] != got[0] || got[i].Access == "" {
			t.Errorf("%+v %v", got[i], errs[i])
		}
	}
	if n := c.provider.Requests() - before; n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestRefusedToken checks what happens when a tool server refuses a token.
func TestRefusedToken(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	s := c.at("wiki", "https://wiki.example/mcp")
	first := c.token(t, s)
	refuse := func(token string, status int, scopes ...string) (string, error) {
		r := oauth.Refusal{Status: status, Token: token}
		if len(scopes) > 0 {
			r.Challenge = oauth.Challenge{Error: oauth.InsufficientScope, Scopes: scopes}
		}
		return c.Refused(t.Context(), s, r)
	}
	if _, err := refuse(first, http.StatusUnauthorized); fault.CodeOf(err) != fault.NeedsAuth || !strings.Contains(fault.HintOf(err), "audience") {
		t.Errorf("a new token: %v %s", err, fault.HintOf(err))
	}
	c.clock.Advance(time.Minute)
	second, err := refuse(first, http.StatusUnauthorized)
	if err != nil || second == first || second == "" {
		t.Errorf("%q %v", second, err)
	}
	if again, err := refuse(first, http.StatusUnauthorized); err != nil || again != second {
		t.Errorf("a token that was replaced: %q %v", again, err)
	}
	more, err := refuse(second, http.StatusForbidden, "write")
	all := c.provider.Exchanges()
	if err != nil || more == second || all[len(all)-1].Get("scope") != "write" {
		t.Errorf("more scopes: %q %v, asked for %v", more, err, all[len(all)-1])
	}
	if _, err := refuse(more, http.StatusForbidden, "write"); fault.CodeOf(err) != fault.Denied {
		t.Errorf("scopes that it has: %v", err)
	}
	if _, err := refuse(more, http.StatusForbidden); fault.CodeOf(err) != fault.Denied {
		t.Errorf("forbidden: %v", err)
	}
}

// TestOnPostgres runs on Postgres what runs on SQLite.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t, TestIDJAG, TestNight, TestOneRenewal, TestNoToken)
}
