package login_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/ui/login"
)

// loginsFake answers with fixed results and records what it was asked for.
type loginsFake struct {
	err      error
	document any
	begun    string // "NAME browser" or "NAME device"
}

func (l *loginsFake) Begin(_ context.Context, upstream string, how login.Method) (oauth.Begun, error) {
	if l.begun = upstream + " browser"; how.Device {
		l.begun = upstream + " device"
	}
	return oauth.Begun{Upstream: upstream, URL: "https://issuer.example/?a=1&b=<2>"}, l.err
}

func (l *loginsFake) Finish(_ context.Context, query url.Values) (string, error) {
	return query.Get("state"), l.err
}

func (l *loginsFake) Status(context.Context, string) (oauth.Status, error) {
	return oauth.Status{LoggedIn: true, Issuer: "https://issuer.example"}, l.err
}

func (l *loginsFake) Logout(context.Context, string) (bool, error) { return true, l.err }

func (l *loginsFake) Document() any { return l.document }

// request sends a request to the routes, which the server checks the scopes of.
func request(t *testing.T, l login.Logins, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	principal.Unguarded(login.Routes(l, netguard.Browsers{})).ServeHTTP(w, r)
	return w
}

const loginPath = "/api/v1/upstreams/docs/login"

func TestBegin(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{``: "docs browser", `{}`: "docs browser", `{"method":"browser"}`: "docs browser", `{"method":"device"}`: "docs device"} {
		l := &loginsFake{}
		w := request(t, l, "POST", loginPath, body)
		if w.Code != http.StatusOK || l.begun != want {
			t.Errorf("%q: %d, began %q, want %q", body, w.Code, l.begun, want)
		}
		if !strings.Contains(w.Body.String(), "https://issuer.example/?a=1&b=<2>") || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%q: %s %v, want the link as it is, not cached", body, w.Body, w.Header())
		}
	}
	for _, body := range []string{`{"method":"phone"}`, `{"methd":"device"}`, `{"method":`, strings.Repeat(" ", 65<<10)} {
		l := &loginsFake{}
		if w := request(t, l, "POST", loginPath, body); w.Code != http.StatusBadRequest && w.Code != http.StatusRequestEntityTooLarge || l.begun != "" || !strings.Contains(w.Body.String(), `"hint"`) {
			t.Errorf("%.20q: %d %s, began %q", body, w.Code, w.Body, l.begun)
		}
	}
}

func TestStatusAndLogout(t *testing.T) {
	t.Parallel()
	l := &loginsFake{}
	if w := request(t, l, "GET", loginPath, ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"logged_in":true`) {
		t.Errorf("status: %d %s", w.Code, w.Body)
	}
	if w := request(t, l, "DELETE", loginPath, ""); w.Code != http.StatusOK || w.Body.String() != "{\"logged_out\":true}\n" {
		t.Errorf("logout: %d %s", w.Code, w.Body)
	}
	for code, want := range map[fault.Code]int{
		fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict, fault.Upstream: http.StatusBadGateway,
		fault.Unavailable: http.StatusServiceUnavailable, fault.Timeout: http.StatusGatewayTimeout, fault.Internal: http.StatusInternalServerError,
	} {
		l.err = fault.New(code, "no").WithHint("try this")
		for _, method := range []string{"GET", "POST", "DELETE"} {
			w := request(t, l, method, loginPath, "")
			var answer fault.Error
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != want || answer.Code != code || answer.Hint != "try this" {
				t.Errorf("%s with %s: %d %s, want %d", method, code, w.Code, w.Body, want)
			}
		}
	}
}

// TestCallback checks the page that a person sees after a login, and that its address,
// which holds the code, reaches no other site.
func TestCallback(t *testing.T) {
	t.Parallel()
	l := &loginsFake{}
	w := request(t, l, "GET", login.CallbackPath+"?state=docs&code=hidden", "")
	if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, "Logged in to docs") || strings.Contains(body, "hidden") {
		t.Errorf("after a login: %d %s", w.Code, body)
	}
	for name, want := range map[string]string{"Referrer-Policy": "same-origin", "Cache-Control": "no-store", "Content-Type": "text/html; charset=utf-8"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	l.err = fault.New(fault.Denied, "<script>alert(1)</script>").WithHint("log in & again")
	w = request(t, l, "GET", login.CallbackPath, "")
	body := w.Body.String()
	if w.Code != http.StatusBadRequest || !strings.Contains(body, "Not logged in") || !strings.Contains(body, "log in &amp; again") || strings.Contains(body, "<script>") {
		t.Errorf("after a failure: %d %s", w.Code, body)
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	if w := request(t, &loginsFake{}, "GET", "/oauth/client.json", ""); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "client_metadata_url") {
		t.Errorf("without a document: %d %s", w.Code, w.Body)
	}
	if w := request(t, &loginsFake{document: map[string]string{"client_id": "x"}}, "GET", "/oauth/client.json", ""); w.Code != http.StatusOK || w.Body.String() != "{\"client_id\":\"x\"}\n" {
		t.Errorf("with one: %d %s", w.Code, w.Body)
	}
}

// TestLoginIsBoundToTheBrowser checks that a link to a login which a page began does
// nothing in another browser, and that the login is not used up by it.
func TestLoginIsBoundToTheBrowser(t *testing.T) {
	t.Parallel()
	f := setup(t)
	routes := principal.Unguarded(login.Routes(f, netguard.Browsers{}))
	send := func(method, target string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, r)
		return w
	}
	w := send("POST", "http://localhost"+loginPath, "Origin", "http://localhost")
	var begun struct{ URL string }
	if err := json.Unmarshal(w.Body.Bytes(), &begun); err != nil || w.Code != http.StatusOK || len(w.Result().Cookies()) != 1 {
		t.Fatalf("begin: %d %s, %v", w.Code, w.Body, err)
	}
	kept := w.Result().Cookies()[0]
	if !kept.HttpOnly || kept.SameSite != http.SameSiteLaxMode {
		t.Errorf("the cookie is %v", kept)
	}
	back := "http://localhost" + f.site.Agree(t, begun.URL).RequestURI()
	for name, other := range map[string]string{"no cookie": "", "another one": kept.Name + "=" + strings.Repeat("0", len(kept.Value))} {
		if w := send("GET", back, "Cookie", other); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "another browser") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if status, err := f.Status(t.Context(), "docs"); err != nil || status.LoggedIn {
		t.Errorf("after the refusals: %+v, %v", status, err)
	}
	if w := send("GET", back, "Cookie", kept.Name+"="+kept.Value); w.Code != http.StatusOK {
		t.Errorf("in the browser that began it: %d %s", w.Code, w.Body)
	}
	if w := send("GET", back, "Cookie", kept.Name+"="+kept.Value); w.Code != http.StatusBadRequest {
		t.Errorf("twice: %d %s", w.Code, w.Body)
	}
}
