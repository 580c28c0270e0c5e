package identity_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/identity/identitytest"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/principal"
)

// ofGroups is a provider whose groups are organisations.
func ofGroups(p *oauthtest.Provider) signin.Provider {
	from := at(p, "corp")
	from.Everybody = []string{"user"}
	from.Orgs = map[string][]signin.Membership{"acme-staff": {{Org: "acme"}}, "beta-heads": {{Org: "beta", Roles: []string{"operator"}}}}
	return from
}

// inBoth is Ada in the groups of two organisations.
func inBoth() oauthtest.Claims {
	claims := ada()
	claims["groups"] = []string{"acme-staff", "beta-heads"}
	return claims
}

// cookies is the Cookie header of a browser.
func (h *hub) cookies(b *identitytest.Browser) string {
	var list []string
	for _, c := range b.Cookies(h.url) {
		list = append(list, c.Name+"="+c.Value)
	}
	return strings.Join(list, "; ")
}

// choose chooses an organisation for the session of a browser.
func (h *hub) choose(t *testing.T, b *identitytest.Browser, org, csrf string) (m httpauth.Me, status int) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"org": org})
	if err != nil {
		t.Fatal(err)
	}
	response, text := httpjsontest.Read(t, http.MethodPost, h.url+"/api/v1/me/org", string(body), "Content-Type", "application/json", "Cookie", h.cookies(b), "X-CSRF-Token", csrf)
	_ = json.Unmarshal([]byte(text), &m) // a refusal has another form
	return m, response.StatusCode
}

// TestChoiceOfOrganisation checks that somebody in two organisations acts in one at a
// time, as another principal and with the roles there, and in no third one.
func TestChoiceOfOrganisation(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, inBoth())
	h := newHub(t, nil, ofGroups(p))
	b := h.signIn(t, "/signin")
	id := h.person(t).ID
	m, _ := h.me(t, b)
	if m.ID != "person:"+id+"/acme" || m.Org != "acme" || fmt.Sprint(m.Orgs) != "[acme beta]" || fmt.Sprint(m.Scopes) != "[chat mcp]" || fmt.Sprint(m.Roles) != "[user]" {
		t.Fatalf("%+v", m)
	}
	for org, want := range map[string]int{"gamma": http.StatusNotFound, "": http.StatusNotFound, "acme/beta": http.StatusNotFound} {
		if got, status := h.choose(t, b, org, m.CSRF); status != want {
			t.Errorf("choosing %q: %d %+v", org, status, got)
		}
	}
	if _, status := h.choose(t, b, "beta", "guess"); status != http.StatusForbidden {
		t.Errorf("without the CSRF token: %d", status)
	}
	if now, _ := h.me(t, b); now.Org != "acme" {
		t.Errorf("a refused choice counts: %+v", now)
	}
	chosen, status := h.choose(t, b, "beta", m.CSRF)
	if status != http.StatusOK || chosen.ID != "person:"+id+"/beta" || !strings.Contains(fmt.Sprint(chosen.Scopes), "org") {
		t.Fatalf("%d %+v", status, chosen)
	}
	if now, _ := h.me(t, b); now.Org != "beta" || now.ID != chosen.ID || now.User != id || !slices.Contains(now.Roles, "operator") {
		t.Errorf("%+v", now)
	}
}

// TestMembersOfAnOrganisation checks that an organisation's own administrators see its
// people, with their roles in it only, and nobody sees those of another.
func TestMembersOfAnOrganisation(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, inBoth())
	h := newHub(t, nil, ofGroups(p))
	b := h.signIn(t, "/signin")
	m, _ := h.me(t, b)
	if got := b.Open(t, h.url+"/api/v1/orgs/acme/people"); got.Status != http.StatusForbidden {
		t.Errorf("as a user: %d %s", got.Status, got.Body)
	}
	h.choose(t, b, "beta", m.CSRF)
	if got := b.Open(t, h.url+"/api/v1/orgs/acme/people"); got.Status != http.StatusForbidden {
		t.Errorf("of another organisation: %d %s", got.Status, got.Body)
	}
	var answer struct{ People []people.Person }
	if err := json.Unmarshal([]byte(b.Open(t, h.url+"/api/v1/orgs/beta/people").Body), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.People) != 1 || len(answer.People[0].Memberships) != 1 || !slices.Contains(answer.People[0].Memberships[0].Roles, "operator") {
		t.Errorf("%+v", answer.People)
	}
}

// TestChoiceEndsStreams checks that what runs in the organisation that a session leaves is
// cancelled.
func TestChoiceEndsStreams(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, inBoth())
	h := newHub(t, nil, ofGroups(p))
	b := h.signIn(t, "/signin")
	m, _ := h.me(t, b)
	stream := httpjsontest.Open(t, http.MethodGet, h.url+"/stream", "", "Cookie", h.cookies(b))
	<-h.streams
	if _, status := h.choose(t, b, "beta", m.CSRF); status != http.StatusOK {
		t.Fatal(status)
	}
	if _, err := io.ReadAll(stream.Body); err != nil { // it ends, or the test does not
		t.Error(err)
	}
}

// TestOrganisationOfAClient checks that the person chooses in which organisation a client
// acts, and that the client stays there.
func TestOrganisationOfAClient(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, inBoth())
	h := newHub(t, nil, ofGroups(p))
	b := h.signIn(t, "/signin")
	id := h.person(t).ID
	a := h.newApp(t, "https://app.example/back")
	b.Stop = func(u *url.URL) bool { return strings.HasPrefix(u.String(), a.redirect) }
	for range 2 { // it is asked every time
		page := b.Open(t, a.link(nil))
		if !strings.Contains(page.Body, `value="acme" checked`) || !strings.Contains(page.Body, `value="beta"`) {
			t.Fatalf("%d %s", page.Status, page.Body)
		}
		if got := b.Submit(t, page, map[string]string{"decision": "allow", "org": "gamma"}); got.Status != http.StatusForbidden {
			t.Errorf("an organisation of others: %d %s", got.Status, got.To)
		}
		back, err := url.Parse(b.Submit(t, page, map[string]string{"decision": "allow", "org": "beta"}).To)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := a.exchange(t, back.Query().Get("code"))
		access, _ := got["access_token"].(string)
		who, status := h.call(t, access)
		if status != http.StatusOK || who.ID != "person:"+id+"/beta" || who.Org != "beta" {
			t.Errorf("%d %+v", status, who)
		}
		_, text := httpjsontest.Read(t, http.MethodGet, h.url+"/api/v1/me", "", "Authorization", "Bearer "+access)
		if strings.Contains(text, "acme") {
			t.Errorf("a client learns of other organisations: %s", text)
		}
		_, text = httpjsontest.Read(t, http.MethodPost, h.url+"/api/v1/me/org", `{"org":"acme"}`, "Content-Type", "application/json", "Authorization", "Bearer "+access)
		if !strings.Contains(text, "only the session") {
			t.Errorf("a client chooses: %s", text)
		}
	}
}

// TestOrganisationOfADevice checks that the page of a device proposes the organisation of
// its link.
func TestOrganisationOfADevice(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, inBoth())
	h := newHub(t, nil, ofGroups(p))
	got, _ := h.post(t, "/oauth/device", url.Values{"client_id": {authserver.CommandLine}, "scope": {"mcp"}})
	b := identitytest.New(t)
	page := b.Open(t, got["verification_uri_complete"].(string)+"&org=beta") // signs in first
	if !strings.Contains(page.Body, `value="beta" checked`) {
		t.Fatalf("%d %s", page.Status, page.Body)
	}
	if got := b.Submit(t, page, map[string]string{"decision": "allow", "org": "beta"}); got.Status != http.StatusOK {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	tokens, _ := h.post(t, "/oauth/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {got["device_code"].(string)}, "client_id": {authserver.CommandLine},
	})
	access, _ := tokens["access_token"].(string)
	if who, status := h.call(t, access); status != http.StatusOK || who.Org != "beta" {
		t.Errorf("%d %+v", status, who)
	}
}

// TestLeavingAnOrganisation checks that memberships follow the groups, that sessions and
// principals of an organisation that somebody left are refused, and that those which an
// administrator gave stay.
func TestLeavingAnOrganisation(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, inBoth())
	h := newHub(t, nil, ofGroups(p))
	first := h.signIn(t, "/signin")
	id := h.person(t).ID
	if err := h.Join(t.Context(), id, "gamma", []string{"viewer"}); err != nil {
		t.Fatal(err)
	}
	for org, want := range map[string]error{"acme": nil, "beta": nil, "gamma": nil, "": errAny, "delta": errAny} {
		if err := h.Check(principal.PersonID(id, org)); (err == nil) != (want == nil) {
			t.Errorf("in %q: %v", org, err)
		}
	}
	p.Change(func() { p.Person["groups"] = []string{"beta-heads"} })
	h.signIn(t, "/signin")
	if _, status := h.me(t, first); status != http.StatusUnauthorized {
		t.Errorf("a session in an organisation that was left: %d", status)
	}
	if err := h.Check(principal.PersonID(id, "acme")); fault.CodeOf(err) != fault.Denied {
		t.Errorf("acme was left: %v", err)
	}
	if orgs := fmt.Sprint(h.person(t).Orgs()); orgs != "[beta gamma]" {
		t.Error(orgs)
	}
	if err := h.Leave(t.Context(), id, "gamma"); err != nil {
		t.Fatal(err)
	}
	if orgs := fmt.Sprint(h.person(t).Orgs()); orgs != "[beta]" {
		t.Error(orgs)
	}
	p.Change(func() { p.Person["groups"] = []string{"others"} })
	if page := identitytest.New(t).Open(t, h.url+"/signin"); page.Status != http.StatusForbidden || !strings.Contains(page.Body, "in no organisation") {
		t.Errorf("without an organisation: %d %s", page.Status, page.Body)
	}
}

var errAny = fault.New(fault.Denied, "any")
