package identity_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/identity/identitytest"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/secret"
)

// TestRealProvider signs in, connects a client and a device, is asked again about the
// session, and signs out, with a real OpenID provider.
func TestRealProvider(t *testing.T) {
	t.Parallel()
	h, start := newHubLater(t)
	provider := identitytest.NewProvider(t, h.url)
	issuer := provider.URL
	start(signin.Provider{
		Name: "real", Issuer: issuer, ClientID: oauthtest.ClientID, Scopes: []string{"profile", "email", "groups", "offline_access"}, Groups: "groups",
		Secret: func() (secret.Text, error) { return secret.New(oauthtest.ClientSecret), nil },
		Roles:  map[string][]string{"hub-users": {"author"}}, Clients: signin.ClientSecrets{oauthtest.ClientID: func() (secret.Text, error) { return secret.New(appSecret), nil }},
	})
	b := identitytest.New(t)
	if p := b.LogIn(t, b.Open(t, h.url+"/signin"), "bea"); p.URL.String() != h.url+"/" {
		t.Fatalf("after signing in: %d %s %s", p.Status, p.URL, p.Body)
	}
	m, status := h.me(t, b)
	who := h.person(t)
	if status != http.StatusOK || m.ID != "person:"+who.ID || who.Name != "Person bea" || who.Email != "bea@example.com" || fmt.Sprint(who.Memberships) != "[{ [author] real}]" {
		t.Fatalf("%d %+v, %+v", status, m, who)
	}
	a := h.newApp(t, "https://app.example/back")
	access, _ := a.tokens(t, b)
	if got, status := h.call(t, access); status != http.StatusOK || got.User != who.ID {
		t.Errorf("a client: %d %+v", status, got)
	}
	h.clock.Advance(20 * time.Minute)
	if err := h.Recheck(t.Context()); err != nil {
		t.Errorf("asked again: %v", err)
	}
	if _, status := h.me(t, b); status != http.StatusOK {
		t.Errorf("after the provider was asked again: %d", status)
	}
	b.Stop = nil
	second := identitytest.New(t)
	if p := second.LogIn(t, second.Open(t, h.url+"/signin"), "cleo"); p.URL.String() != h.url+"/" {
		t.Fatalf("another person: %d %s %s", p.Status, p.URL, p.Body)
	}
	if other, _ := h.me(t, second); other.ID == m.ID {
		t.Error("two people are one")
	}
	exchangeAtProvider(t, h, who.ID)
	endAtProvider(t, h, second, issuer)
	ask := b.Submit(t, b.Open(t, h.url+"/signout"), nil)
	if !strings.HasPrefix(ask.URL.String(), issuer+"/session/end") || ask.Status != http.StatusOK {
		t.Fatalf("signing out: %d %s %s", ask.Status, ask.URL, ask.Body)
	}
	if p := b.Submit(t, ask, map[string]string{"logout": "yes"}); p.URL.String() != h.url+"/" {
		t.Errorf("after signing out at the provider: %d %s %s", p.Status, p.URL, p.Body)
	}
	if _, status := h.me(t, b); status != http.StatusUnauthorized {
		t.Errorf("after signing out: %d", status)
	}
	if p := b.Open(t, h.url+"/signin"); !strings.Contains(p.URL.Path, "/interaction/") {
		t.Errorf("the provider asks nobody: %d %s", p.Status, p.URL)
	}
}

// exchangeAtProvider lets the provider assert to the hub who somebody is, with each of the
// tokens that their sign-in has left.
func exchangeAtProvider(t *testing.T, h *hub, person string) {
	t.Helper()
	for kind, choose := range map[string]func(signin.Subject) string{
		"id_token":      func(s signin.Subject) string { return s.ID },
		"access_token":  func(s signin.Subject) string { return s.Access },
		"refresh_token": func(s signin.Subject) string { return s.Refresh },
	} {
		subject, err := h.Providers().Subject(t.Context(), person, "", choose)
		if err != nil || choose(subject) == "" {
			t.Fatalf("%s: %v", kind, err)
		}
		got, err := h.Providers().Ask(t.Context(), subject, url.Values{
			"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "requested_token_type": {"urn:ietf:params:oauth:token-type:id-jag"},
			"subject_token": {choose(subject)}, "subject_token_type": {"urn:ietf:params:oauth:token-type:" + kind},
			"audience": {h.url}, "resource": {h.url + "/mcp"}, "scope": {"mcp"},
		})
		if err != nil || got.Kind != "urn:ietf:params:oauth:token-type:id-jag" {
			t.Fatalf("%s: %+v %v", kind, got, err)
		}
		given, status := h.assert(t, got.Token, nil)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %v", kind, status, given)
		}
		if caller, status := h.call(t, given["access_token"].(string)); status != http.StatusOK || caller.User != person {
			t.Errorf("%s: %d %+v", kind, status, caller)
		}
	}
}

// endAtProvider ends a session at the provider, which tells the hub.
func endAtProvider(t *testing.T, h *hub, b *identitytest.Browser, issuer string) {
	t.Helper()
	b.Stop = func(u *url.URL) bool { return !strings.HasPrefix(u.String(), issuer) }
	b.Submit(t, b.Open(t, issuer+"/session/end"), map[string]string{"logout": "yes"})
	b.Stop = nil
	if _, status := h.me(t, b); status != http.StatusUnauthorized { // it has told the hub before it answered
		t.Errorf("after the session ended at the provider: %d", status)
	}
}
