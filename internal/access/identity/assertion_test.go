package identity_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
)

const appSecret = "a secret of the app: %"

// withClients is a provider whose word is enough for two clients.
func withClients(p *oauthtest.Provider, name string) signin.Provider {
	found := at(p, name)
	find := func() (secret.Text, error) { return secret.New(appSecret), nil }
	found.Clients = signin.ClientSecrets{oauthtest.ClientID: find, "second": find}
	return found
}

// assert brings an assertion to the token endpoint.
func (h *hub) assert(t *testing.T, assertion string, change func(url.Values)) (map[string]any, int) {
	t.Helper()
	form := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}, "client_id": {oauthtest.ClientID}, "client_secret": {appSecret},
	}
	if change != nil {
		change(form)
	}
	return h.post(t, "/oauth/token", form)
}

// TestAssertion checks that a provider's word gets a client a token for a person, who need
// not have been here before, and that it ends with the person's rights.
func TestAssertion(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	corp := withClients(p, "corp")
	corp.Org, corp.Everybody = "acme", []string{"user"}
	h := newHub(t, nil, corp)
	got, status := h.assert(t, p.Assertion(t, h.url, oauthtest.Claims{"scope": "mcp read chat", "resource": h.url + "/mcp"}), func(f url.Values) { f.Set("scope", "mcp chat") })
	if status != http.StatusOK || got["scope"] != "mcp chat" || got["refresh_token"] != nil || got["token_type"] != "Bearer" {
		t.Fatalf("%d %v", status, got)
	}
	token, person := got["access_token"].(string), h.person(t)
	who, status := h.call(t, token)
	if status != http.StatusOK || who.ID != principal.PersonID(person.ID, "acme") || who.Org != "acme" || !who.May(principal.MCP, "acme") || who.May(principal.Read, "acme") || who.Grant == "" {
		t.Errorf("%d %+v", status, who)
	}
	b := h.signIn(t, "/signin") // more roles, by groups
	basic := httpjsontest.Open(t, http.MethodPost, h.url+"/oauth/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {p.Assertion(t, h.url, oauthtest.Claims{"scope": "mcp chat"})},
	}.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Authorization", basicAuth(oauthtest.ClientID, appSecret))
	if basic.StatusCode != http.StatusOK {
		t.Errorf("with Basic: %s", basic.Status)
	}
	if roles := fmt.Sprint(h.person(t).Memberships); roles != "[{acme [author user] corp}]" {
		t.Errorf("an assertion without groups changed the roles: %s", roles)
	}
	grants := b.Open(t, h.url+"/api/v1/me/grants")
	if strings.Count(grants.Body, `"id"`) != 1 || !strings.Contains(grants.Body, who.Grant) {
		t.Errorf("the person sees %s", grants.Body)
	}
	if err := h.Block(t.Context(), person.ID); err != nil {
		t.Fatal(err)
	}
	if _, status := h.call(t, token); status == http.StatusOK {
		t.Error("the token of a blocked person works")
	}
	if got, status := h.assert(t, p.Assertion(t, h.url, nil), nil); status != http.StatusBadRequest || got["error"] != "invalid_grant" {
		t.Errorf("an assertion about a blocked person: %d %v", status, got)
	}
}

func basicAuth(id, secret string) string {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
	return r.Header.Get("Authorization")
}

// TestAssertionOnce checks that of many clients with one assertion one gets a token.
func TestAssertionOnce(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, withClients(p, "corp"))
	h.signIn(t, "/signin")
	assertion := p.Assertion(t, h.url, nil)
	statuses := make([]int, 8)
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() { _, statuses[i] = h.assert(t, assertion, nil) })
	}
	all.Wait()
	if text := fmt.Sprint(statuses); strings.Count(text, "200") != 1 || strings.Count(text, "400") != len(statuses)-1 {
		t.Errorf("statuses %s", text)
	}
	h.clock.Advance(time.Hour)
	if got, status := h.assert(t, assertion, nil); status != http.StatusBadRequest || got["error"] != "invalid_grant" {
		t.Errorf("again, later: %d %v", status, got)
	}
}

// TestAssertionsThatAreRefused checks every condition of an assertion and of its client.
func TestAssertionsThatAreRefused(t *testing.T) {
	t.Parallel()
	p, other := oauthtest.NewProvider(t, ada()), oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, withClients(p, "corp"), at(other, "other"))
	h.signIn(t, "/signin/to/corp")
	sign := func(header oauthtest.Claims) string {
		claims := oauthtest.Claims{
			"iss": p.URL, "aud": h.url, "sub": "ada-1", "client_id": oauthtest.ClientID, "jti": "one", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
		}
		return p.Signed(t, header, claims)
	}
	with := func(claims oauthtest.Claims) string { return p.Assertion(t, h.url, claims) }
	for name, assertion := range map[string]string{
		"nothing":                         "",
		"no token":                        "a.b.c",
		"an access token":                 sign(oauthtest.Claims{"alg": "RS256", "kid": "1", "typ": "at+jwt"}),
		"an ID token":                     sign(oauthtest.Claims{"alg": "RS256", "kid": "1", "typ": "JWT"}),
		"without a type":                  sign(oauthtest.Claims{"alg": "RS256", "kid": "1"}),
		"signed by nobody":                sign(oauthtest.Claims{"alg": "none", "kid": "1", "typ": "oauth-id-jag+jwt"}),
		"signed with the public key":      sign(oauthtest.Claims{"alg": "HS256", "kid": "1", "typ": "oauth-id-jag+jwt"}),
		"for another server":              p.Assertion(t, "https://other.example", nil),
		"for two servers":                 with(oauthtest.Claims{"aud": []string{h.url, "https://other.example"}}),
		"for a server with a slash":       with(oauthtest.Claims{"aud": h.url + "/"}),
		"of a provider that may not":      other.Assertion(t, h.url, nil),
		"in the name of another":          other.Assertion(t, h.url, oauthtest.Claims{"iss": p.URL}),
		"for another client":              with(oauthtest.Claims{"client_id": "second"}),
		"for no client":                   with(oauthtest.Claims{"client_id": nil}),
		"for another resource":            with(oauthtest.Claims{"resource": "https://other.example/mcp"}),
		"for two resources":               with(oauthtest.Claims{"resource": []string{h.url + "/mcp", "https://other.example/mcp"}}),
		"for a resource that is a number": with(oauthtest.Claims{"resource": 7}),
		"expired":                         with(oauthtest.Claims{"exp": time.Now().Add(-time.Hour).Unix()}),
		"without an end":                  with(oauthtest.Claims{"exp": nil}),
		"without a beginning":             with(oauthtest.Claims{"iat": nil}),
		"of the future":                   with(oauthtest.Claims{"iat": time.Now().Add(time.Hour).Unix()}),
		"not valid yet":                   with(oauthtest.Claims{"nbf": time.Now().Add(time.Hour).Unix()}),
		"without an id":                   with(oauthtest.Claims{"jti": nil}),
		"without a subject":               with(oauthtest.Claims{"sub": nil}),
		"bound to a key":                  with(oauthtest.Claims{"cnf": map[string]string{"jkt": "x"}}),
		"with details":                    with(oauthtest.Claims{"authorization_details": []any{map[string]string{"type": "x"}}}),
		"about somebody without a role":   with(oauthtest.Claims{"sub": "eve"}),
		"about another tenant's person":   with(oauthtest.Claims{"tenant": "evil"}),
	} {
		if got, status := h.assert(t, assertion, nil); status != http.StatusBadRequest || got["error"] != "invalid_grant" {
			t.Errorf("%s: %d %v", name, status, got)
		}
	}
	for name, tt := range map[string]struct {
		change func(url.Values)
		claims oauthtest.Claims
		status int
		error  string
	}{
		"a wrong secret":        {func(f url.Values) { f.Set("client_secret", "x") }, nil, http.StatusUnauthorized, "invalid_client"},
		"no secret":             {func(f url.Values) { f.Del("client_secret") }, nil, http.StatusUnauthorized, "invalid_client"},
		"an unknown client":     {func(f url.Values) { f.Set("client_id", "x") }, oauthtest.Claims{"client_id": "x"}, http.StatusUnauthorized, "invalid_client"},
		"another client":        {func(f url.Values) { f.Set("client_id", "second") }, nil, http.StatusBadRequest, "invalid_grant"},
		"another resource":      {func(f url.Values) { f.Set("resource", "https://other.example") }, nil, http.StatusBadRequest, "invalid_target"},
		"more than was granted": {func(f url.Values) { f.Set("scope", "admin") }, oauthtest.Claims{"scope": "mcp"}, http.StatusBadRequest, "invalid_scope"},
		"no scope of ours":      {nil, oauthtest.Claims{"scope": "theirs"}, http.StatusBadRequest, "invalid_scope"},
	} {
		if got, status := h.assert(t, with(tt.claims), tt.change); status != tt.status || got["error"] != tt.error {
			t.Errorf("%s: %d %v", name, status, got)
		}
	}
	if people, err := h.List(t.Context()); err != nil || len(people) != 1 {
		t.Errorf("%d people, %v", len(people), err)
	}
}

// TestAssertionsAreOff checks that without clients of a provider nothing says or accepts
// that its word is enough.
func TestAssertionsAreOff(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	for _, tt := range []struct {
		provider signin.Provider
		on       bool
	}{{at(p, "corp"), false}, {withClients(p, "corp"), true}} {
		h := newHub(t, nil, tt.provider)
		h.signIn(t, "/signin")
		got, status := h.assert(t, p.Assertion(t, h.url, nil), nil)
		if (status == http.StatusOK) != tt.on || !tt.on && got["error"] != "unsupported_grant_type" {
			t.Errorf("on %v: %d %v", tt.on, status, got)
		}
		_, body := httpjsontest.Read(t, http.MethodGet, h.url+"/.well-known/oauth-authorization-server", "")
		var m struct {
			Grants   []string `json:"grant_types_supported"`
			Profiles []string `json:"authorization_grant_profiles_supported"`
			Auth     []string `json:"token_endpoint_auth_methods_supported"`
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		said := strings.Contains(fmt.Sprint(m.Grants), "jwt-bearer")
		if said != tt.on || (fmt.Sprint(m.Profiles) == "[urn:ietf:params:oauth:grant-profile:id-jag]") != tt.on || (len(m.Auth) > 1) != tt.on {
			t.Errorf("on %v: %s", tt.on, body)
		}
	}
}
