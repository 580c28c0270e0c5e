package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/identity/identitytest"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/mail/mailtest"
	"github.com/luanette/luanette/internal/base/sse"
)

// placed is somebody signed in at a server whose public address has a path of its own.
type placed struct {
	*financeServer
	ann     someone
	browser *identitytest.Browser
}

// TestPathOfItsOwn opens every address that the server tells others, behind a proxy that passes
// the path on and behind one that removes it.
func TestPathOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]place{"passed on": {"/team/luanette", false}, "removed": {"/team/luanette", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := oauthtest.New(t, http.NotFoundHandler())
			of := newFinanceServerAt(t, tables.SQLite(t), at, fmt.Sprintf("[upstreams.docs]\nurl = %q\nlogin = \"each\"\n", site.URL()))
			p := &placed{financeServer: of}
			p.ann, p.browser = of.signIn("ann", "acme-finance", "acme") // by redirects, the provider's and ours
			for what, check := range map[string]func(*placed, *testing.T){
				"page": (*placed).checkPage, "cookie": (*placed).checkCookie, "messages of SSE": (*placed).checkSSE,
				"metadata": (*placed).checkMetadata, "client": (*placed).checkClient, "login to an upstream": (*placed).checkLogin,
				"mail": (*placed).checkMail, "redirect": (*placed).checkRedirect, "without the path": (*placed).checkLocal,
			} {
				t.Run(what, func(t *testing.T) { check(p, t) })
			}
			t.Run("sign out", p.checkSignOut)
		})
	}
}

// loaded finds what the page loads.
var loaded = regexp.MustCompile(`(?:src|href)="([^"]+)"`)

func (p *placed) checkPage(t *testing.T) {
	for _, from := range []string{p.url, p.url + "/"} {
		if from == p.url && p.at.removed {
			continue // the server cannot tell them apart
		}
		page := p.browser.Open(t, from)
		if page.URL.String() != p.url+"/" || !strings.Contains(page.Body, "<title>Luanette") {
			t.Errorf("%s: %s %d %s", from, page.URL, page.Status, page.Body)
		}
		for _, found := range loaded.FindAllStringSubmatch(page.Body, -1) {
			to, err := page.URL.Parse(found[1])
			if err != nil {
				t.Fatal(err)
			}
			if got := p.browser.Open(t, to.String()); got.Status != http.StatusOK || !strings.HasPrefix(to.String(), p.url+"/") {
				t.Errorf("%s: %d", to, got.Status)
			}
		}
	}
}

func (p *placed) checkCookie(t *testing.T) {
	for _, c := range p.browser.Cookies(p.url) {
		if strings.HasPrefix(c.Name, "luanette") && !strings.HasSuffix(c.Name, "_team_luanette") {
			t.Errorf("%s is also the cookie of a server at another path", c.Name)
		}
	}
	if who := p.ann.do(http.MethodGet, "/api/v1/me", "", "name"); who != "Person ann" {
		t.Errorf("the session's cookie is of %s", who)
	}
}

func (p *placed) checkSSE(t *testing.T) {
	stream := httpjsontest.Open(t, http.MethodGet, p.url+"/mcp/sse", "", "Cookie", p.ann.cookieName()+"="+p.ann.cookie, "X-CSRF-Token", p.ann.csrf)
	events := sse.NewReader(stream.Body, 0)
	first, err := events.Next()
	if err != nil {
		t.Fatal(err)
	}
	to, err := stream.Request.URL.Parse(string(first.Data))
	if err != nil {
		t.Fatal(err)
	}
	status, text := p.post(to.String(), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if status != http.StatusAccepted {
		t.Fatalf("%s: %d %s", to, status, text)
	}
	if answer, err := events.Next(); err != nil || !strings.Contains(string(answer.Data), `"serverInfo"`) {
		t.Errorf("answer: %s, %v", answer.Data, err)
	}
}

// post sends something of Ann's to an address.
func (p *placed) post(address, body string) (int, string) {
	s := p.ann
	s.url = address
	answer, text := httpjsontest.Read(s.t, http.MethodPost, address, body, "Cookie", p.ann.cookieName()+"="+s.cookie, "X-CSRF-Token", s.csrf, "Content-Type", "application/json")
	return answer.StatusCode, text
}

// document returns a document in JSON.
func document(t *testing.T, address string) map[string]any {
	t.Helper()
	var got map[string]any
	answer, text := httpjsontest.Read(t, http.MethodGet, address, "")
	if answer.StatusCode != http.StatusOK || json.Unmarshal([]byte(text), &got) != nil {
		t.Fatalf("%s: %d %s", address, answer.StatusCode, text)
	}
	return got
}

// checkMetadata follows what a client without a token is told.
func (p *placed) checkMetadata(t *testing.T) {
	refused, _ := httpjsontest.Read(t, http.MethodPost, p.url+"/mcp", `{}`)
	_, address, _ := strings.Cut(refused.Header.Get("WWW-Authenticate"), `resource_metadata="`)
	address, _, _ = strings.Cut(address, `"`)
	at := map[string]bool{address: true, p.url + "/.well-known/oauth-protected-resource/mcp": true}
	server := map[string]bool{p.url + "/.well-known/oauth-authorization-server": true}
	if origin := strings.TrimSuffix(p.url, p.at.path); !p.at.removed { // where the specifications look first
		at[origin+"/.well-known/oauth-protected-resource"+p.at.path+"/mcp"] = true
		server[origin+"/.well-known/oauth-authorization-server"+p.at.path] = true
	}
	for from := range at {
		if got := document(t, from); got["resource"] != p.url+"/mcp" || fmt.Sprint(got["authorization_servers"]) != "["+p.url+"]" {
			t.Errorf("%s: %v", from, got)
		}
	}
	for from := range server {
		got := document(t, from)
		for _, of := range []string{"issuer", "authorization_endpoint", "token_endpoint", "device_authorization_endpoint"} {
			if to := fmt.Sprint(got[of]); !strings.HasPrefix(to+"/", p.url+"/") {
				t.Errorf("%s: %s is at %s", from, of, to)
			}
		}
	}
}

// checkClient lets a program act for Ann: what she is asked, the form, and its token.
func (p *placed) checkClient(t *testing.T) {
	token := p.client(p.browser)
	name, value := httpjsontest.Bearer(token)
	if answer, text := httpjsontest.Read(t, http.MethodGet, p.url+"/api/v1/me", "", name, value); answer.StatusCode != http.StatusOK {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
}

// checkLogin logs Ann in to an upstream at an authorization server, which sends her back.
func (p *placed) checkLogin(t *testing.T) {
	page := p.browser.Open(t, p.srv.publicURL()+"/connect/docs?next=%2F%23%2Fservers")
	done := p.browser.Submit(t, page, nil)
	if !strings.HasPrefix(done.URL.String(), p.url+"/") || !strings.Contains(done.Body, "<title>Luanette") || done.Status != http.StatusOK {
		t.Errorf("%d %s %s", done.Status, done.URL, done.Body)
	}
	stranger := identitytest.New(t)
	if got := stranger.Open(t, p.url+"/connect/docs"); !strings.HasPrefix(got.URL.String(), p.provider.URL) {
		t.Errorf("who is not signed in comes to %s", got.URL)
	}
}

func (p *placed) checkMail(t *testing.T) {
	p.signIn("bob", "acme-finance") // who decides
	p.pay(p.ann, "first")
	var got mailtest.Mail
	clocktest.Await(t, func() (ok bool) { got, ok = p.mails.Next(); return ok }, func() string { return "no mail" })
	wantText(t, "mail", got.Text, p.url+"/#/approvals")
}

func (p *placed) checkRedirect(t *testing.T) {
	for from, to := range map[string]string{"/docs": "/#/docs", "/docs/people": "/#/docs/people"} {
		if got := p.browser.Open(t, p.url+from); got.URL.String() != p.url+to {
			t.Errorf("%s leads to %s, want %s", from, got.URL, p.url+to)
		}
	}
}

func (p *placed) checkSignOut(t *testing.T) {
	out := p.browser.Submit(t, p.browser.Open(t, p.url+"/signout"), nil)
	if out.Status != http.StatusOK {
		t.Errorf("sign out: %d %s", out.Status, out.URL)
	}
}

// checkLocal asks the server as programs of its machine do.
func (p *placed) checkLocal(t *testing.T) {
	for _, path := range []string{"/health", p.at.path + "/health"} {
		if answer, text := httpjsontest.Read(t, http.MethodGet, p.srv.URL()+path, ""); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
	}
	if answer, _ := httpjsontest.Read(t, http.MethodGet, p.srv.URL()+"/team/luanette-other/health", ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("another path: %s", answer.Status)
	}
}
