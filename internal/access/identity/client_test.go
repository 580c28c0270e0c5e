package identity_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/access/identity"
	"github.com/luanette/luanette/internal/access/identity/identitytest"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
)

// TestClientActsForAPerson checks that a client gets the rights that the person gave it,
// and loses them when the person takes them back.
func TestClientActsForAPerson(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	b := h.signIn(t, "/signin")
	a := h.newApp(t, "https://app.example/back")
	access, refresh := a.tokens(t, b)
	who, status := h.call(t, access)
	if status != http.StatusOK || who.ID != "person:"+h.person(t).ID || who.May(principal.Chat, "") || !who.May(principal.Read, "") || who.Grant == "" || who.Client != "An app" {
		t.Errorf("%d %+v", status, who)
	}
	_, body := httpjsontest.Read(t, http.MethodGet, h.url+"/api/v1/me/keys", "", "Authorization", "Bearer "+access)
	if !strings.Contains(body, "only people") {
		t.Errorf("a client manages keys: %s", body)
	}
	grants := b.Open(t, h.url+"/api/v1/me/grants")
	var list struct{ Grants []authserver.GrantView }
	if err := json.Unmarshal([]byte(grants.Body), &list); err != nil || len(list.Grants) != 1 || list.Grants[0].ID != who.Grant || list.Grants[0].Name != "An app" {
		t.Fatalf("%d %s, %v", grants.Status, grants.Body, err)
	}
	m, _ := h.me(t, b)
	var cookies []string
	for _, c := range b.Cookies(h.url) {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	response := httpjsontest.Open(t, http.MethodDelete, h.url+"/api/v1/me/grants/"+who.Grant, "", "Cookie", strings.Join(cookies, "; "), "X-CSRF-Token", m.CSRF)
	if response.StatusCode != http.StatusNoContent {
		t.Errorf("revoke: %s", response.Status)
	}
	if _, status := h.call(t, access); status != http.StatusUnauthorized && status != http.StatusForbidden {
		t.Errorf("with a revoked token: %d", status)
	}
	if got, status := a.refresh(t, refresh); status != http.StatusBadRequest || got["error"] != "invalid_grant" {
		t.Errorf("with a revoked refresh token: %d %v", status, got)
	}
	access, _ = a.tokens(t, b) // it asks again: connect would fail if it did not
	if got, status := h.post(t, "/oauth/revoke", url.Values{"token": {access}, "client_id": {"another"}}); status != http.StatusOK {
		t.Errorf("%d %v", status, got)
	}
	if _, status := h.call(t, access); status != http.StatusOK {
		t.Errorf("another client revoked the token: %d", status)
	}
	if got, status := h.post(t, "/oauth/revoke", url.Values{"token": {access}, "client_id": {a.id}}); status != http.StatusOK {
		t.Errorf("%d %v", status, got)
	}
	if _, status := h.call(t, access); status == http.StatusOK {
		t.Error("a token that its client revoked works")
	}
}

// TestConsentPerClient checks that a second client gets nothing without a consent of its
// own, although the person is signed in here and at the provider.
func TestConsentPerClient(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	b := h.signIn(t, "/signin")
	first, second, local := h.newApp(t, "https://app.example/back"), h.newApp(t, "https://evil.example/back"), h.newApp(t, "http://127.0.0.1:7777/back")
	first.tokens(t, b)
	local.tokens(t, b)
	b.Stop = func(u *url.URL) bool { return u.Path == "/back" }
	if got := b.Open(t, first.link(nil)); got.To == "" {
		t.Errorf("the same client is asked for again: %d %s", got.Status, got.Body)
	}
	for name, link := range map[string]string{
		"another client":             second.link(nil),
		"more scopes":                first.link(func(q url.Values) { q.Set("scope", "mcp read chat") }),
		"a client on this machine":   local.link(nil),
		"another port of it":         local.link(func(q url.Values) { q.Set("redirect_uri", "http://127.0.0.1:8888/back") }),
		"the same client, signed in": first.link(func(q url.Values) { q.Set("scope", "chat") }),
	} {
		got := b.Open(t, link)
		if got.Status != http.StatusOK || got.To != "" || !strings.Contains(got.Body, `value="allow"`) || !strings.Contains(got.Body, "Ada") {
			t.Errorf("%s: %d, to %q: %s", name, got.Status, got.To, got.Body)
		}
		if policy := got.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", name, policy)
		}
	}
	got := b.Submit(t, b.Open(t, second.link(nil)), map[string]string{"decision": "deny"})
	if !strings.HasPrefix(got.To, "https://evil.example/back?") || !strings.Contains(got.To, "error=access_denied") || !strings.Contains(got.To, "iss=") || strings.Contains(got.To, "code=") {
		t.Errorf("denied: %d %s", got.Status, got.To)
	}
}

// TestConsentOfAnotherBrowser checks that nobody can be made to decide a request that
// another browser brought, or without their own form.
func TestConsentOfAnotherBrowser(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	alice, bob := h.signIn(t, "/signin"), h.signIn(t, "/signin")
	a := h.newApp(t, "https://app.example/back")
	alice.Stop = func(u *url.URL) bool { return u.Host == "app.example" }
	bob.Stop = alice.Stop
	page := alice.Open(t, a.link(nil))
	if got := bob.Open(t, page.URL.String()); got.Status != http.StatusForbidden {
		t.Errorf("the page in another browser: %d %s", got.Status, got.Body)
	}
	if got := bob.Submit(t, page, map[string]string{"decision": "allow"}); got.Status != http.StatusForbidden || got.To != "" {
		t.Errorf("the form in another browser: %d %s", got.Status, got.To)
	}
	if got := alice.Submit(t, page, map[string]string{"decision": "allow", "csrf": "guess"}); got.Status != http.StatusForbidden {
		t.Errorf("a form of another page: %d %s", got.Status, got.Body)
	}
	if got := alice.Submit(t, page, map[string]string{"decision": "allow"}); !strings.Contains(got.To, "code=") {
		t.Errorf("in her own browser: %d %s", got.Status, got.Body)
	}
	if got := alice.Submit(t, page, map[string]string{"decision": "allow"}); got.Status != http.StatusForbidden {
		t.Errorf("twice: %d %s", got.Status, got.To)
	}
}

// TestRedirectURIs checks that codes go to the client's own addresses only, and that
// nobody is sent to others.
func TestRedirectURIs(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	b := h.signIn(t, "/signin")
	remote, local := h.newApp(t, "https://app.example/back"), h.newApp(t, "http://127.0.0.1:7777/back")
	b.Stop = func(u *url.URL) bool { return u.Host != strings.TrimPrefix(h.url, "http://") }
	for _, tt := range []struct {
		app    *app
		wanted string
	}{
		{remote, "https://app.example/back/more"}, {remote, "https://app.example/back?x=1"}, {remote, "https://app.example/back#x"},
		{remote, "https://app.example/back/../evil"}, {remote, "https://app.example/back/"}, {remote, "https://APP.example/back"},
		{remote, "https://app.example@evil.example/back"}, {remote, "https://evil.example/back"}, {remote, "https://app.example.evil.example/back"},
		{remote, "https://app.example:8443/back"}, {remote, "http://app.example/back"}, {remote, "https://app.example/bac"}, {remote, "https://app.example%2eevil.example/back"},
		{remote, "https://app.example\\@evil.example/back"}, {remote, "javascript:alert(1)"}, {remote, "//app.example/back"},
		{local, "http://127.0.0.1:7777/other"}, {local, "http://127.0.0.1.evil.example:7777/back"}, {local, "http://127.0.0.1:7777@evil.example/back"},
		{local, "https://127.0.0.1:7777/back"}, {local, "http://localhost:7777/back"}, {local, "http://127.0.0.1:7777/x/../back"}, {local, "http://10.0.0.1:7777/back"},
	} {
		got := b.Open(t, tt.app.link(func(q url.Values) { q.Set("redirect_uri", tt.wanted) }))
		if got.Status != http.StatusBadRequest || got.To != "" {
			t.Errorf("%s: %d, to %q", tt.wanted, got.Status, got.To)
		}
	}
	if got := b.Open(t, local.link(func(q url.Values) { q.Set("redirect_uri", "http://127.0.0.1:51004/back") })); got.Status != http.StatusOK {
		t.Errorf("another port on the person's machine: %d %s", got.Status, got.Body)
	}
	if got := b.Open(t, remote.link(func(q url.Values) { q.Add("redirect_uri", "https://evil.example/") })); got.Status != http.StatusBadRequest {
		t.Errorf("two redirect URIs: %d", got.Status)
	}
	for _, bad := range []string{"http://app.example/back", "javascript:alert(1)", "data:text/html,x", "https://user@app.example/", "https://app.example/#x", "https://app.example/../x", "file:///etc/passwd", ""} {
		response := httpjsontest.Open(t, http.MethodPost, h.url+"/oauth/register", fmt.Sprintf(`{"redirect_uris":[%q]}`, bad))
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("registering %s: %s", bad, response.Status)
		}
	}
}

// TestRequestsThatAreNotValid checks the errors that go back to the client, with its state
// and our name.
func TestRequestsThatAreNotValid(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	a := h.newApp(t, "https://app.example/back")
	b := identitytest.New(t)
	b.Stop = func(u *url.URL) bool { return u.Host == "app.example" }
	for want, change := range map[string]func(url.Values){
		"unsupported_response_type": func(q url.Values) { q.Set("response_type", "token") },
		"invalid_request":           func(q url.Values) { q.Set("code_challenge_method", "plain") },
		"invalid_target":            func(q url.Values) { q.Set("resource", "https://other.example/mcp") },
		"invalid_scope":             func(q url.Values) { q.Set("scope", "everything") },
		"request_not_supported":     func(q url.Values) { q.Set("request_uri", "https://evil.example/") },
		"interaction_required":      func(q url.Values) { q.Set("prompt", "none") },
	} {
		got := b.Open(t, a.link(change))
		back, err := url.Parse(got.To)
		if err != nil || back.Query().Get("error") != want || back.Query().Get("state") != "the app's state" || back.Query().Get("iss") != h.url {
			t.Errorf("%s: %d %s", want, got.Status, got.To)
		}
	}
	for name, form := range map[string]url.Values{
		"unsupported_grant_type": {"grant_type": {"password"}},
		"invalid_target":         {"grant_type": {"authorization_code"}, "resource": {"https://other.example/"}},
		"invalid_grant":          {"grant_type": {"authorization_code"}, "code": {"guess"}},
		"invalid_request":        {"grant_type": {"authorization_code", "refresh_token"}},
	} {
		if got, status := h.post(t, "/oauth/token", form); status != http.StatusBadRequest || got["error"] != name {
			t.Errorf("%s: %d %v", name, status, got)
		}
	}
}

// TestCodesAreUsedOnce checks that a code needs its client, redirect and verifier, and that
// a code that comes twice ends the grant.
func TestCodesAreUsedOnce(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	b := h.signIn(t, "/signin")
	a := h.newApp(t, "https://app.example/back")
	code := a.connect(t, b)
	for name, other := range map[string]app{
		"another client":   {h, "another", a.redirect, a.verifier},
		"another redirect": {h, a.id, "https://app.example/other", a.verifier},
		"another verifier": {h, a.id, a.redirect, strings.Repeat("w", 43)},
		"no verifier":      {h, a.id, a.redirect, ""},
	} {
		if got, status := other.exchange(t, code); status != http.StatusBadRequest || got["error"] != "invalid_grant" {
			t.Errorf("%s: %d %v", name, status, got)
		}
	}
	got, status := a.exchange(t, code)
	if status != http.StatusOK {
		t.Fatalf("%d %v", status, got)
	}
	access := got["access_token"].(string)
	if got, status := a.exchange(t, code); status != http.StatusBadRequest {
		t.Errorf("twice: %d %v", status, got)
	}
	if _, status := h.call(t, access); status == http.StatusOK {
		t.Error("the tokens of a code that came twice work")
	}
	late := a.connect(t, b)
	h.clock.Advance(2 * time.Minute)
	if got, status := a.exchange(t, late); status != http.StatusBadRequest {
		t.Errorf("too late: %d %v", status, got)
	}
}

// TestRefreshTokensRotate checks that an exchanged refresh token gets access tokens for a
// minute, and ends the grant after that.
func TestRefreshTokensRotate(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	b := h.signIn(t, "/signin")
	a := h.newApp(t, "https://app.example/back")
	_, first := a.tokens(t, b)
	got, status := a.refresh(t, first)
	second, _ := got["refresh_token"].(string)
	if status != http.StatusOK || second == "" || second == first {
		t.Fatalf("%d %v", status, got)
	}
	h.clock.Advance(30 * time.Second)
	got, status = a.refresh(t, first)
	access, _ := got["access_token"].(string)
	if _, again := got["refresh_token"]; status != http.StatusOK || access == "" || again {
		t.Errorf("the old one within a minute: %d %v", status, got)
	}
	if _, status := h.call(t, access); status != http.StatusOK {
		t.Errorf("its access token: %d", status)
	}
	if got, status := (&app{hub: h, id: "another"}).refresh(t, second); status != http.StatusBadRequest {
		t.Errorf("of another client: %d %v", status, got)
	}
	h.clock.Advance(time.Minute)
	if got, status := a.refresh(t, first); status != http.StatusBadRequest || got["error"] != "invalid_grant" {
		t.Errorf("the old one later: %d %v", status, got)
	}
	if got, status := a.refresh(t, second); status != http.StatusBadRequest {
		t.Errorf("the new one after that: %d %v", status, got)
	}
	if _, status := h.call(t, access); status == http.StatusOK {
		t.Error("an access token of the ended grant works")
	}
	access, refresh := a.tokens(t, b)
	h.clock.Advance(2 * time.Hour)
	if _, status := h.call(t, access); status == http.StatusOK {
		t.Error("an expired access token works")
	}
	if got, status := a.refresh(t, refresh); status != http.StatusOK {
		t.Errorf("%d %v", status, got)
	}
	h.clock.Advance(31 * 24 * time.Hour)
	if got, status := a.refresh(t, refresh); status != http.StatusBadRequest {
		t.Errorf("an expired refresh token: %d %v", status, got)
	}
}

// TestRefreshAtTheSameTime checks that of many processes with one refresh token, one gets
// the next, and all get access.
func TestRefreshAtTheSameTime(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	a := h.newApp(t, "https://app.example/back")
	_, refresh := a.tokens(t, h.signIn(t, "/signin"))
	var mu sync.Mutex
	next := 0
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			got, status := a.refresh(t, refresh)
			mu.Lock()
			defer mu.Unlock()
			if status != http.StatusOK || got["access_token"] == nil {
				t.Errorf("%d %v", status, got)
			}
			if got["refresh_token"] != nil {
				next++
			}
		})
	}
	all.Wait()
	if next != 1 {
		t.Errorf("%d got a refresh token", next)
	}
}

// TestDeviceLogin checks the login of a program without a browser.
func TestDeviceLogin(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	begin := func() (device, code, page string) {
		got, status := h.post(t, "/oauth/device", url.Values{"client_id": {authserver.CommandLine}, "scope": {"admin mcp"}})
		if status != http.StatusOK {
			t.Fatalf("%d %v", status, got)
		}
		return got["device_code"].(string), got["user_code"].(string), got["verification_uri_complete"].(string)
	}
	poll := func(device string) (map[string]any, int) {
		return h.post(t, "/oauth/token", url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {device}, "client_id": {authserver.CommandLine}})
	}
	device, code, page := begin()
	for _, want := range []string{"authorization_pending", "slow_down", "slow_down"} {
		if got, status := poll(device); status != http.StatusBadRequest || got["error"] != want {
			t.Errorf("%d %v, want %s", status, got, want)
		}
	}
	h.clock.Advance(16 * time.Second)
	if got, _ := poll(device); got["error"] != "authorization_pending" {
		t.Errorf("after the longer pause: %v", got)
	}
	b := identitytest.New(t)
	shown := b.Open(t, page) // signs in first
	if shown.Status != http.StatusOK || !strings.Contains(shown.Body, code) || !strings.Contains(shown.Body, "Ada") {
		t.Fatalf("%d %s", shown.Status, shown.Body)
	}
	if got := b.Submit(t, shown, map[string]string{"decision": "allow", "csrf": "guess"}); got.Status != http.StatusForbidden {
		t.Errorf("a form of another page: %d", got.Status)
	}
	if got := b.Submit(t, shown, map[string]string{"decision": "allow"}); got.Status != http.StatusOK || !strings.Contains(got.Body, "Allowed") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if got := b.Submit(t, shown, map[string]string{"decision": "allow"}); got.Status != http.StatusNotFound {
		t.Errorf("decided twice: %d %s", got.Status, got.Body)
	}
	got, status := poll(device)
	access, _ := got["access_token"].(string)
	if who, called := h.call(t, access); status != http.StatusOK || called != http.StatusOK || who.Admin() || !who.May(principal.Chat, "") {
		t.Errorf("%d %v, %d %+v: it has the person's rights, not more", status, got, called, who)
	}
	if got, status := poll(device); status != http.StatusBadRequest || got["error"] != "invalid_grant" {
		t.Errorf("the device code twice: %d %v", status, got)
	}
	if _, status := h.call(t, access); status == http.StatusOK {
		t.Error("the tokens of a device code that came twice work")
	}
	device, _, page = begin()
	b.Submit(t, b.Open(t, page), map[string]string{"decision": "deny"})
	if got, _ := poll(device); got["error"] != "access_denied" {
		t.Errorf("denied: %v", got)
	}
	device, code, _ = begin()
	typed := strings.ToLower(strings.ReplaceAll(code, "-", " "))
	if got := b.Open(t, h.url+"/device?user_code="+url.QueryEscape(typed)); got.Status != http.StatusOK {
		t.Errorf("typed as %q: %d", typed, got.Status)
	}
	h.clock.Advance(11 * time.Minute)
	if got, _ := poll(device); got["error"] != "expired_token" {
		t.Errorf("too late: %v", got)
	}
}

// TestDeviceCodesAreNotGuessed checks that a person cannot try many codes.
func TestDeviceCodesAreNotGuessed(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	b := h.signIn(t, "/signin")
	got, _ := h.post(t, "/oauth/device", url.Values{"client_id": {authserver.CommandLine}})
	for i := range 10 {
		if page := b.Open(t, h.url+"/device?user_code=BBBB-BBB"+string("BCDFGHJKLM"[i])); page.Status != http.StatusNotFound {
			t.Errorf("guess %d: %d", i, page.Status)
		}
	}
	if page := b.Open(t, got["verification_uri_complete"].(string)); page.Status != http.StatusTooManyRequests {
		t.Errorf("the right code after ten wrong ones: %d %s", page.Status, page.Body)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if recorded := strings.Count(strings.Join(h.audited, "\n"), "device.wrong_code"); recorded != 10 {
		t.Errorf("%d of ten wrong codes are recorded", recorded)
	}
}

// TestMetadata checks what clients find.
func TestMetadata(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	for _, registration := range []bool{true, false} {
		h := newHub(t, func(o *identity.Options) { o.Registration = registration }, at(p, "corp"))
		_, body := httpjsontest.Read(t, http.MethodGet, h.url+"/.well-known/oauth-authorization-server", "", "Origin", "https://inspector.example")
		var m map[string]any
		if err := json.Unmarshal([]byte(body), &m); err != nil || m["issuer"] != h.url || m["authorization_endpoint"] != h.url+"/oauth/authorize" ||
			m["client_id_metadata_document_supported"] != true || m["authorization_response_iss_parameter_supported"] != true ||
			fmt.Sprint(m["code_challenge_methods_supported"]) != "[S256]" || (m["registration_endpoint"] != nil) != registration {
			t.Errorf("%s, %v", body, err)
		}
		response := httpjsontest.Open(t, http.MethodPost, h.url+"/oauth/register", `{"redirect_uris":["https://app.example/back"]}`)
		if (response.StatusCode == http.StatusCreated) != registration {
			t.Errorf("registering: %s", response.Status)
		}
	}
}

// TestClientDocuments checks that a client can be described by a document at its address,
// and what is refused of such addresses.
func TestClientDocuments(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	release := make(chan struct{})
	var site *httptest.Server
	site = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		id := site.URL + r.URL.Path
		switch r.URL.Path {
		case "/big":
			_, _ = w.Write([]byte(`{"client_id":"` + id + `","redirect_uris":["https://app.example/back"],"x":"` + strings.Repeat("x", 10<<20) + `"}`)) // the client hangs up
			return
		case "/slow":
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		case "/moved":
			http.Redirect(w, r, "/good", http.StatusFound)
			return
		case "/other":
			id = site.URL + "/good"
		case "/html":
			w.Header().Set("Content-Type", "text/html")
		case "/bad":
			_ = json.NewEncoder(w).Encode(map[string]any{"client_id": id, "redirect_uris": []string{"javascript:alert(1)"}})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"client_id": id, "client_name": "A documented app", "redirect_uris": []string{"https://app.example/back"}})
	}))
	t.Cleanup(site.Close)
	t.Cleanup(func() { close(release) })
	h := newHub(t, func(o *identity.Options) { o.Documents = site.Client() }, at(p, "corp"))
	b := h.signIn(t, "/signin")
	b.Stop = func(u *url.URL) bool { return u.Host == "app.example" }
	open := func(h *hub, b *identitytest.Browser, id string) identitytest.Page {
		return b.Open(t, (&app{h, id, "https://app.example/back", strings.Repeat("v", 43)}).link(nil))
	}
	host := strings.TrimPrefix(site.URL, "https://")
	if got := open(h, b, site.URL+"/good"); got.Status != http.StatusOK || !strings.Contains(got.Body, "A documented app") || !strings.Contains(got.Body, host) {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	for _, path := range []string{"/big", "/moved", "/other", "/html", "/bad", "/x/../good", "", "/", "/good#x"} {
		if got := open(h, b, site.URL+path); got.Status != http.StatusBadRequest || got.To != "" {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
	impatient := *site.Client()
	impatient.Timeout = 50 * time.Millisecond
	slow := newHub(t, func(o *identity.Options) { o.Documents = &impatient }, at(p, "corp"))
	if got := open(slow, slow.signIn(t, "/signin"), site.URL+"/slow"); got.Status != http.StatusBadRequest {
		t.Errorf("a slow document: %d %s", got.Status, got.Body)
	}
	guarded := newHub(t, func(o *identity.Options) { o.Documents = netguard.Outbound{}.Client() }, at(p, "corp"))
	b = guarded.signIn(t, "/signin")
	for _, id := range []string{site.URL + "/good", "https://10.0.0.1/x", "https://169.254.169.254/latest", "https://[::1]/x", "https://localhost/x", "http://app.example/x", "https://user@app.example/x"} {
		if got := open(guarded, b, id); got.Status != http.StatusBadRequest || got.To != "" {
			t.Errorf("%s: %d %s", id, got.Status, got.Body)
		}
	}
}

// TestForeignHost checks that metadata never names a host that a request brought.
func TestForeignHost(t *testing.T) {
	t.Parallel()
	p := oauthtest.NewProvider(t, ada())
	h := newHub(t, nil, at(p, "corp"))
	metadata := h.tokens([]signin.Provider{at(p, "corp")})
	for name, ask := range map[string]func(*http.Request) string{
		"authorization server": func(r *http.Request) string {
			response, err := httpjsontest.Client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body) + fmt.Sprint(response.Header)
		},
		"challenge": metadata.Metadata,
		"resource": func(r *http.Request) string {
			w := httptest.NewRecorder()
			metadata.ServeHTTP(w, r)
			return w.Body.String()
		},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/.well-known/oauth-authorization-server", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.example"
		r.Header.Set("X-Forwarded-Host", "evil.example")
		r.Header.Set("Forwarded", "host=evil.example")
		if said := ask(r); strings.Contains(said, "evil") || !strings.Contains(said, h.url) {
			t.Errorf("%s: %s", name, said)
		}
	}
}
