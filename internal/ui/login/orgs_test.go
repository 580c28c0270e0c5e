package login_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOrganisationsHaveTheirOwn checks that members of an organisation log in to its upstream
// by the name they call it, and that nobody else can: neither with another's name nor with
// the login of the same person in another organisation.
func TestOrganisationsHaveTheirOwn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, testOrganisations)
}

func testOrganisations(t *testing.T, store *db.DB) {
	h := hubOf(setupOn(t, store))
	spec := func(name string) upstream.Spec {
		return upstream.Spec{Name: name, Trusted: true, Settings: upstream.Settings{URL: h.site.URL(), Login: upstream.LoginEach}}
	}
	for _, name := range []string{"tracker", "tracker@acme", "tracker@beta", "wiki@beta"} {
		h.manager.upstreams = append(h.manager.upstreams, upstream.Status{Name: name, Desired: spec(name)})
	}
	h.manager.upstreams = slices.DeleteFunc(h.manager.upstreams, func(s upstream.Status) bool { return s.Name == "docs" })

	acme, beta, plain := h.of("ada/acme"), h.of("ada/beta"), h.of("ada")
	for who, want := range map[*browser]string{acme: "tracker none", beta: "tracker none, wiki none", plain: "tracker none"} {
		if got := who.states(t); got != want {
			t.Errorf("%s sees %s", who.cookies["luanette_session"], got)
		}
	}
	for path, status := range map[string]int{"/connect/tracker@beta": 404, "/connect/wiki": 404, "/connect/wiki@beta": 404, "/connect/tracker@acme": 200} {
		if w := acme.send(t, "GET", path, ""); w.Code != status || strings.Contains(w.Body.String(), h.site.URL()) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if w := acme.send(t, "POST", path, "csrf="+apikey.CSRF("p_ada/acme")); status == 404 && w.Code != 404 {
			t.Errorf("begin at %s: %d %s", path, w.Code, w.Body)
		}
	}

	link := acme.beginAt(t, "tracker", "")
	beta.cookies["luanette_flow"] = acme.cookies["luanette_flow"] // the same browser, now in the other organisation
	if w := beta.comeBack(t, link); w.Code != http.StatusForbidden {
		t.Errorf("finished in another organisation: %d %s", w.Code, w.Body)
	}
	if w := acme.comeBack(t, link); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Logged in to tracker<") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for who, want := range map[*browser]string{acme: "tracker active", beta: "tracker none, wiki none", plain: "tracker none"} {
		if got := who.states(t); got != want {
			t.Errorf("after the login %s sees %s", who.cookies["luanette_session"], got)
		}
	}
	for name, has := range map[string]bool{"tracker": false, "tracker@acme": true, "tracker@beta": false} {
		for _, owner := range []string{"person:ada/acme", "person:ada/beta", "person:ada", "person:bob/acme", ""} {
			of := spec(name)
			of.Owner, of.Person.Org = owner, strings.TrimPrefix(owner, "person:ada/")
			token, err := h.upstreams.Token(t.Context(), of)
			if err != nil || (token != "") != (has && owner == "person:ada/acme") {
				t.Errorf("%s of %q has the token %q, %v", name, owner, token, err)
			}
		}
	}
	h.endsIn(t, acme, beta)
}

// endsIn ends the login of Ada in one organisation, which the other cannot.
func (h *hub) endsIn(t *testing.T, acme, beta *browser) {
	t.Helper()
	if w := beta.send(t, "DELETE", "/api/v1/me/logins/tracker", ""); w.Code != http.StatusNotFound {
		t.Errorf("ended in another organisation: %d %s", w.Code, w.Body)
	}
	if w := acme.send(t, "DELETE", "/api/v1/me/logins/tracker", ""); w.Code != http.StatusOK || acme.states(t) != "tracker none" {
		t.Errorf("%d %s, then %s", w.Code, w.Body, acme.states(t))
	}
	if want := []string{"upstream.login tracker@acme by ada/acme", "upstream.logout tracker@acme by ada/acme"}; !slices.Equal(h.audited, want) {
		t.Errorf("audited %q", h.audited)
	}
}

// states are the logins of a browser's person, by name.
func (b *browser) states(t *testing.T) string {
	t.Helper()
	var list []string
	for _, l := range b.logins(t) {
		list = append(list, l.Upstream+" "+l.State)
		if l.Connect != "/connect/"+l.Upstream {
			t.Errorf("%s is at %s", l.Upstream, l.Connect)
		}
	}
	return strings.Join(list, ", ")
}

// TestWhoCanLogIn checks what a call without a login answers: to people the link, by the name
// they call the upstream, and to others what is possible, without a link that cannot help.
func TestWhoCanLogIn(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for name, tt := range map[string]struct {
		who  principal.Principal
		says []string
		link string
	}{
		"a person":           {principal.Principal{ID: "person:ada"}, []string{"upstream tracker@acme requires your login"}, "https://hub.example/connect/tracker@acme"},
		"a member":           {principal.Principal{ID: "person:ada/acme", Org: "acme"}, []string{"upstream tracker requires your login"}, "https://hub.example/connect/tracker"},
		"their key":          {principal.Principal{ID: "person:ada/acme", Org: "acme"}.ByKey("laptop"), []string{"upstream tracker requires your login"}, "https://hub.example/connect/tracker"},
		"the local owner":    {principal.Local(), []string{"requires your login"}, "https://hub.example/connect/tracker@acme"},
		"a key of a machine": {principal.Principal{ID: "key:robot", Org: "acme"}, []string{"key:robot is not a person", "a key or token of a person", "one login for all"}, ""},
		"somebody in a chat": {principal.Principal{ID: "key:web", Person: "acme/ada%20b"}, []string{"ada b is known only by key:web", "lets ada b sign in here", "docs/people.md#people-of-a-chat-application"}, ""},
	} {
		spec := upstream.Spec{Name: "tracker@acme", Trusted: true, Owner: tt.who.LoginOwner(), Settings: upstream.Settings{URL: f.site.URL(), Login: upstream.LoginEach}}
		spec.Person.Org = tt.who.Org
		_, err := f.upstreams.Refused(t.Context(), spec, http.StatusUnauthorized, "Bearer", "")
		text := err.Error() + " " + fault.HintOf(err)
		if fault.CodeOf(err) != fault.NeedsAuth || slices.ContainsFunc(tt.says, func(part string) bool { return !strings.Contains(text, part) }) {
			t.Errorf("%s is told: %v (%s)", name, err, fault.HintOf(err))
		}
		details := string(fault.From(err).Details)
		if linked := strings.Contains(text, "/connect/"); linked != (tt.link != "") || !strings.Contains(text, tt.link) || strings.Contains(details, `"`+tt.link+`"`) != (tt.link != "") {
			t.Errorf("%s: link in %q, details %s", name, text, details)
		}
	}
}
