package login_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/ui/login"
)

// hub serves the routes to browsers and clients as the server does.
type hub struct {
	*fixture
	mux *http.ServeMux
}

func newHub(t *testing.T) *hub {
	t.Helper()
	return hubOf(setup(t))
}

func hubOf(f *fixture) *hub {
	for i := range f.manager.upstreams {
		f.manager.upstreams[i].Desired.Login = upstream.LoginEach
	}
	f.manager.upstreams = append(f.manager.upstreams, upstream.Status{Name: "shared", Desired: upstream.Spec{Name: "shared", Settings: upstream.Settings{URL: f.site.URL()}, Trusted: true}})
	return &hub{fixture: f, mux: principal.Unguarded(append(login.Routes(f.Service, netguard.Browsers{}), f.OwnRoutes(netguard.Browsers{})...))}
}

// session returns the person of a session's cookie: p_ada is that of Ada, p_ada/acme that of
// Ada in an organisation.
func session(_ context.Context, cookie string) (principal.Principal, error) {
	name, ok := strings.CutPrefix(cookie, "p_")
	if !ok {
		return principal.Anonymous(), fault.New(fault.NeedsAuth, "the session has ended")
	}
	_, org, _ := strings.Cut(name, "/")
	return principal.Principal{ID: "person:" + name, Name: name, Org: org}, nil
}

// browser is a browser with its cookies.
type browser struct {
	hub     *hub
	cookies map[string]string
}

// of returns a browser in which somebody is signed in; nobody if the name is empty.
func (h *hub) of(person string) *browser {
	b := &browser{h, map[string]string{}}
	if person != "" {
		b.cookies["luanette_session"] = "p_" + person
	}
	return b
}

// send sends a request. As on the server, a session counts only for requests that read,
// since forms have no header with the CSRF token.
func (b *browser) send(t *testing.T, method, address, form string) *httptest.ResponseRecorder {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+u.RequestURI(), strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	who := principal.Anonymous()
	if method != http.MethodPost {
		who, _ = session(t.Context(), b.cookies["luanette_session"])
	}
	w := httptest.NewRecorder()
	b.hub.mux.ServeHTTP(w, r.WithContext(principal.With(r.Context(), who)))
	for _, c := range w.Result().Cookies() {
		b.cookies[c.Name] = c.Value
	}
	return w
}

// begin begins a login on the page, agrees at the authorization server, and returns the
// address to which that redirects the browser.
func (b *browser) begin(t *testing.T, next string) string {
	t.Helper()
	return b.beginAt(t, "docs", next)
}

func (b *browser) beginAt(t *testing.T, name, next string) string {
	t.Helper()
	shown := b.send(t, "GET", "/connect/"+name+"?next="+url.QueryEscape(next), "")
	if shown.Code != http.StatusOK || !strings.Contains(shown.Body.String(), "Log in to "+name+"<") {
		t.Fatalf("%d %s", shown.Code, shown.Body)
	}
	form := url.Values{}
	for _, field := range regexp.MustCompile(`name="(\w+)" value="([^"]*)"`).FindAllStringSubmatch(shown.Body.String(), -1) {
		form.Set(field[1], field[2])
	}
	sent := b.send(t, "POST", "/connect/"+name, form.Encode())
	if sent.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", sent.Code, sent.Body)
	}
	return b.hub.site.Agree(t, sent.Header().Get("Location")).String()
}

// comeBack follows the redirect of the authorization server.
func (b *browser) comeBack(t *testing.T, address string) *httptest.ResponseRecorder {
	t.Helper()
	kept := b.cookies["luanette_session"]
	delete(b.cookies, "luanette_session") // it is not sent when another site redirects
	leads := b.send(t, "GET", address, "")
	if kept != "" {
		b.cookies["luanette_session"] = kept
	}
	on := regexp.MustCompile(`url=(/oauth/callback/finish\?[^"]*)"`).FindStringSubmatch(leads.Body.String())
	if leads.Code != http.StatusOK || on == nil {
		t.Fatalf("%d %s", leads.Code, leads.Body)
	}
	return b.send(t, "GET", strings.ReplaceAll(on[1], "&amp;", "&"), "")
}

func (b *browser) logins(t *testing.T) (list []login.OwnLogin) {
	t.Helper()
	w := b.send(t, "GET", "/api/v1/me/logins", "")
	var answer struct{ Logins []login.OwnLogin }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return answer.Logins
}

// state returns the state of the login to docs.
func (b *browser) state(t *testing.T) string {
	t.Helper()
	for _, l := range b.logins(t) {
		if l.Upstream == "docs" {
			return l.State
		}
	}
	return "not listed"
}

// A person logs in with their own account, sees it, and ends it.
func TestConnect(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	ada, bob := h.of("ada"), h.of("bob")
	list := ada.logins(t)
	if len(list) != 1 || list[0].Upstream != "docs" || list[0].State != oauth.StateNone || list[0].Connect != "/connect/docs" {
		t.Errorf("before: %+v", list)
	}
	waiting := make(chan error, 1)
	go func() {
		waiting <- h.AwaitLogin(principal.With(t.Context(), principal.Principal{ID: "person:ada"}), "docs")
	}()
	done := ada.comeBack(t, ada.begin(t, ""))
	if done.Code != http.StatusOK || !strings.Contains(done.Body.String(), "Logged in to docs") {
		t.Errorf("%d %s", done.Code, done.Body)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if ada.state(t) != oauth.StateActive || bob.state(t) != oauth.StateNone {
		t.Errorf("Ada %s, Bob %s", ada.state(t), bob.state(t))
	}
	if status, err := h.Status(t.Context(), "docs"); err != nil || status.LoggedIn || len(h.manager.retried) > 0 {
		t.Errorf("the shared login: %+v %v, retried %v", status, err, h.manager.retried)
	}
	back := bob.comeBack(t, bob.begin(t, "/#/servers"))
	if back.Code != http.StatusOK || !strings.Contains(back.Body.String(), `url=/#/servers`) {
		t.Errorf("back to the page: %d %s", back.Code, back.Body)
	}
	if w := ada.send(t, "DELETE", "/api/v1/me/logins/docs", ""); w.Code != http.StatusOK || ada.state(t) != oauth.StateNone || bob.state(t) != oauth.StateActive {
		t.Errorf("%d %s, Ada %s, Bob %s", w.Code, w.Body, ada.state(t), bob.state(t))
	}
	if w := ada.send(t, "DELETE", "/api/v1/me/logins/docs", ""); w.Code != http.StatusNotFound {
		t.Errorf("again: %d %s", w.Code, w.Body)
	}
	if err := h.upstreams.Revoke(t.Context()); err != nil || h.site.Revoked() != 1 {
		t.Errorf("%d revoked, %v", h.site.Revoked(), err)
	}
	if mistakes := h.site.Mistakes(); len(mistakes) > 0 {
		t.Errorf("mistakes: %v", mistakes)
	}
}

// TestAttackSentLink opens the link of a login that Ada began in other browsers, and as
// other people in hers.
func TestAttackSentLink(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	ada := h.of("ada")
	link := ada.begin(t, "")
	stolen := h.of("ada") // the same person in another browser
	stolen.cookies["luanette_flow"] = "GUESSEDGUESSEDGUESSEDGUESS"
	after := h.of("bob") // Bob has signed in in Ada's browser
	after.cookies["luanette_flow"] = ada.cookies["luanette_flow"]
	for name, b := range map[string]*browser{"Bob": h.of("bob"), "Ada elsewhere": h.of("ada"), "guessed": stolen, "nobody": h.of(""), "Bob after Ada": after} {
		if w := b.comeBack(t, link); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if ada.state(t) != oauth.StateNone || h.of("bob").state(t) != oauth.StateNone {
		t.Error("there is a login")
	}
	if w := ada.comeBack(t, link); w.Code != http.StatusOK || ada.state(t) != oauth.StateActive {
		t.Errorf("Ada herself: %d %s", w.Code, w.Body)
	}
}

// Whoever is not signed in is led to sign in, and back.
func TestConnectSignsIn(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	nobody := h.of("")
	w := nobody.send(t, "GET", "/connect/docs?next=/x", "")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "url=/connect/docs?again=1&amp;next=%2Fx") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = nobody.send(t, "GET", "/connect/docs?again=1&next=%2Fx", "")
	if want := "/signin?next=" + url.QueryEscape("/connect/docs?next=%2Fx"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
		t.Errorf("%d %s, want %s", w.Code, w.Header().Get("Location"), want)
	}
	if w := h.of("ada").send(t, "GET", "/connect/docs?next=https://evil.example", ""); strings.Contains(w.Body.String(), "evil") {
		t.Errorf("it goes on to another site: %s", w.Body)
	}
}

func TestRefusedConnects(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	ada := h.of("ada")
	for path, want := range map[string]int{"nothing": 404, "hidden": 404, "shared": 409} {
		for _, method := range []string{"GET", "POST"} {
			if w := ada.send(t, method, "/connect/"+path, "csrf="+apikey.CSRF("p_ada")); w.Code != want {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
	}
	if w := ada.send(t, "POST", "/connect/program", "csrf="+apikey.CSRF("p_ada")); w.Code != http.StatusBadRequest {
		t.Errorf("program: %d %s", w.Code, w.Body)
	}
	for _, csrf := range []string{"", "csrf=" + apikey.CSRF("p_bob")} {
		if w := ada.send(t, "POST", "/connect/docs", csrf); w.Code != http.StatusForbidden {
			t.Errorf("with the CSRF token %q: %d %s", csrf, w.Code, w.Body)
		}
	}
	if w := h.of("").send(t, "POST", "/connect/docs", ""); w.Code != http.StatusForbidden {
		t.Errorf("nobody: %d %s", w.Code, w.Body)
	}
	for name, who := range map[string]principal.Principal{
		"a key":                {ID: "key:robot", Scopes: []principal.Scope{principal.Admin}},
		"a client of a person": {ID: "person:ada", Grant: "g-1"},
		"somebody unknown":     principal.Anonymous(),
	} {
		ctx := principal.With(t.Context(), who)
		if list, err := h.OwnLogins(ctx); fault.CodeOf(err) != fault.Denied {
			t.Errorf("%s sees %+v, %v", name, list, err)
		}
		if err := h.EndOwn(ctx, "docs"); fault.CodeOf(err) != fault.Denied {
			t.Errorf("%s ends a login: %v", name, err)
		}
	}
	who := principal.Principal{ID: "person:eve", Namespaces: []string{"robot"}}
	if list, err := h.OwnLogins(principal.With(t.Context(), who)); err != nil || len(list) != 0 {
		t.Errorf("who does not see docs is shown %+v, %v", list, err)
	}
}
