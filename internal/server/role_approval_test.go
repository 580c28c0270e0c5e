package server

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/access/identity/identitytest"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/mail/mailtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// financeServer is a server where payments need two of finance. Its people sign in at a real
// provider; the bank, the webhook and the mail server are on this machine.
type financeServer struct {
	t        *testing.T
	url      string
	at       place
	srv      *Server
	provider *identitytest.Provider
	bank     *recordingTools
	mails    *mailtest.Server
	notices  chan string
}

// place is a path of its own of a public address, and whether the proxy removes it.
type place struct {
	path    string
	removed bool
}

// newFinanceServerAt returns a server with a path of its own, and more in its configuration.
func newFinanceServerAt(t *testing.T, database string, at place, more string) *financeServer {
	t.Helper()
	of := &financeServer{t: t, at: at, bank: &recordingTools{}, mails: mailtest.New(t), notices: make(chan string, 10)}
	of.mails.Plain()
	front := httptest.NewUnstartedServer(nil) // its address must be known before the server starts
	of.url = "http://" + front.Listener.Addr().String() + at.path
	of.provider = identitytest.NewProvider(t, of.url)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a broken notice is not the expected one
		of.notices <- string(body)
	}))
	t.Cleanup(hook.Close)
	file := fmt.Sprintf(`
public_url = %q
approve_webhook = %q
approve_webhook_secret = "${env:HOOK_SECRET}"
mcp.allowed_hosts = ["127.0.0.1"]
[mail]
server = %q
from = "Hub <hub@example.com>"
user = "hub"
password = "${env:MAIL_PASSWORD}"
[upstreams.bank]
url = %q
[[policy]]
tool = "bank.post"
do = "approve"
by = "finance"
count = 2
[roles.finance]
scopes = ["mcp", "read"]
[identity.real]
issuer = %q
client_id = %q
client_secret = "${env:CLIENT_SECRET}"
scopes = ["profile", "email", "groups"]
roles = ["author"]
[identity.real.orgs]
"acme" = "acme"
"acme-finance" = "acme/finance"
"beta-finance" = "beta/finance"
`, of.url, hook.URL, of.mails.Address, serveTools(t, "bank", of.bank), of.provider.URL, oauthtest.ClientID) + more
	of.serve(front, file, database, config.Environment{"HOOK_SECRET": "whsec_bHVhbmV0dGU=", "MAIL_PASSWORD": mailtest.Password})
	return of
}

// serve starts the server behind the address that its people know.
func (of *financeServer) serve(front *httptest.Server, file, database string, env config.Environment) {
	t := of.t
	t.Helper()
	maps.Copy(env, config.Environment{"CLIENT_SECRET": oauthtest.ClientSecret, "LUANETTE_DATABASE": database, "LUANETTE_OAUTH_KEY": "a key that is long enough"})
	address, srv := start(t, config.Sources{File: configtest.WriteFile(t, file), Env: env})
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	front.Config.Handler = &httputil.ReverseProxy{Transport: httpjsontest.Client.Transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }}
	if of.at.removed {
		front.Config.Handler = http.StripPrefix(of.at.path, front.Config.Handler)
	}
	front.Start()
	t.Cleanup(front.Close)
	of.srv = srv
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	srv.catalog.Refresh(t.Context())
}

// signIn opens a session of a person, who has these groups from now on.
func (of *financeServer) signIn(name string, groups ...string) (someone, *identitytest.Browser) {
	of.t.Helper()
	of.provider.SetGroups(of.t, name, groups...)
	b := identitytest.New(of.t)
	if p := b.LogIn(of.t, b.Open(of.t, of.url+"/signin"), name); p.URL.String() != of.url+"/" {
		of.t.Fatalf("%s signs in: %d %s %s", name, p.Status, p.URL, p.Body)
	}
	s := someone{t: of.t, url: of.url, fullName: "Person " + name}
	for _, c := range b.Cookies(of.url) {
		if c.Name == s.cookieName() {
			s.cookie = c.Value
		}
	}
	s.csrf = s.do(http.MethodGet, "/api/v1/me", "", "csrf_token")
	return s, b
}

// client returns the token of a program that somebody lets act for them.
func (of *financeServer) client(b *identitytest.Browser) (token string) {
	of.t.Helper()
	form := func(path string, values url.Values) (answer map[string]any) {
		_, body := httpjsontest.Read(of.t, http.MethodPost, of.url+path, values.Encode(), "Content-Type", "application/x-www-form-urlencoded")
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			of.t.Fatalf("%s: %s", path, body)
		}
		return answer
	}
	begun := form("/oauth/device", url.Values{"client_id": {authserver.CommandLine}, "scope": {"mcp"}})
	page := b.Open(of.t, fmt.Sprint(begun["verification_uri_complete"]))
	if p := b.Submit(of.t, page, map[string]string{"decision": "allow", "org": "acme"}); p.Status != http.StatusOK {
		of.t.Fatalf("allow a client: %d %s", p.Status, p.Body)
	}
	return fmt.Sprint(form("/oauth/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {fmt.Sprint(begun["device_code"])}, "client_id": {authserver.CommandLine},
	})["access_token"])
}

// pay runs a script that pays, and returns the request for approval.
func (of *financeServer) pay(asker someone, to string) (id string) {
	of.t.Helper()
	status, body := asker.request(http.MethodPost, "/tools/lua_eval", `{"code":"return mcp.bank.post{ to = '`+to+`' }"}`)
	var answer struct {
		Status   string
		Approval struct {
			ID string `json:"approval_id"`
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Approval.ID == "" || of.bank.received() != "" && strings.Contains(of.bank.received(), to) {
		of.t.Fatalf("pay: %d %s, the bank received %s", status, body, of.bank.received())
	}
	return answer.Approval.ID
}

// decision is a request with which somebody allows an approval.
func decision(id string) string { return `{"approval_id":"` + id + `","decision":"allow"}` }

// allow lets somebody allow a request, and returns what they are told.
func (s someone) allow(id string) string {
	s.t.Helper()
	_, body := s.request(http.MethodPost, "/tools/approval_decide", decision(id))
	return body
}

// wantText fails unless a text has all others.
func wantText(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q is not in %s", what, part, text)
		}
	}
}

// TestTwoOfFinance lets people who sign in at a real provider decide about payments. Whoever
// decides has read a plan, which may have data with any label; the script has not.
func TestTwoOfFinance(t *testing.T) {
	t.Parallel()
	database := tables.SQLite(t)
	vault := serveTools(t, "vault", &recordingTools{})
	of := newFinanceServerAt(t, database, place{}, fmt.Sprintf("[upstreams.vault]\nurl = %q\nlabels = [\"secret\"]\n", vault))
	bob, _ := of.signIn("bob", "acme-finance")
	cleo, _ := of.signIn("cleo", "acme-finance")
	eve, _ := of.signIn("eve", "acme")
	zoe, _ := of.signIn("zoe", "beta-finance")
	cleo.do(http.MethodPost, "/tools/approval_delegate", `{"role":"finance","to":"eve@example.com","until":"1d"}`, "")
	ann, browser := of.signIn("ann", "acme-finance", "beta-finance")
	id := of.pay(ann, "first")
	of.checkNotices(id)
	of.checkAsker(ann, browser, id)
	of.checkSight(id, map[string]someone{"bob": bob, "eve": eve}, map[string]someone{"zoe": zoe})
	of.checkCount(id, bob, cleo, eve)
	of.checkLostRole(ann, bob, cleo)
}

// checkNotices checks who is told of a request: the webhook, those with the role, and who
// decides in their place.
func (of *financeServer) checkNotices(id string) {
	of.t.Helper()
	got := map[string]mailtest.Mail{}
	clocktest.Await(of.t, func() bool {
		for m, ok := of.mails.Next(); ok; m, ok = of.mails.Next() {
			got[m.To] = m
		}
		return len(got) == 3
	}, func() string { return fmt.Sprintf("mails to %q", slices.Collect(maps.Keys(got))) })
	if to := slices.Sorted(maps.Keys(got)); !slices.Equal(to, []string{"bob@example.com", "cleo@example.com", "eve@example.com"}) {
		of.t.Errorf("mails to %q", to)
	}
	for to, m := range got {
		wantText(of.t, "mail to "+to, m.Text, "bank.post, asked by Person ann", "2 of the role finance", of.url+"/#/approvals", id)
		if strings.Contains(m.Text, "first") {
			of.t.Errorf("the mail has arguments: %s", m.Text)
		}
	}
	select {
	case notice := <-of.notices:
		wantText(of.t, "webhook", notice, id, `"role":"finance"`, `"needed":2`, `"org":"acme"`, `"asked_by":"Person ann"`)
	case <-time.After(clocktest.Timeout):
		of.t.Error("the webhook was not told")
	}
}

// checkAsker checks that the asker cannot allow the request: not in this session, not in
// another one, not in another organisation, and neither with a key nor through a client.
func (of *financeServer) checkAsker(ann someone, browser *identitytest.Browser, id string) {
	of.t.Helper()
	const own = "nobody approves their own request"
	wantText(of.t, "the asker", ann.allow(id), own)
	again, _ := of.signIn("ann", "acme-finance", "beta-finance")
	wantText(of.t, "the asker in another session", again.allow(id), own)
	again.do(http.MethodPost, "/api/v1/me/org", `{"org":"beta"}`, "")
	again.csrf = again.do(http.MethodGet, "/api/v1/me", "", "csrf_token")
	wantText(of.t, "the asker in another organisation", again.allow(id), "no approval "+id)
	key := ann.do(http.MethodPost, "/api/v1/me/keys", `{"name":"anns","scopes":["mcp"],"expires":"1d"}`, "token")
	commandLine := of.client(browser)
	_, me := requestAs(of.t, commandLine, http.MethodGet, of.url+"/api/v1/me", "")
	wantText(of.t, "luanette who", me, `"org":"acme"`, `"orgs":["acme","beta"]`, `"finance"`, `"client":"luanette on the command line"`)
	_, keys := requestAs(of.t, commandLine, http.MethodGet, of.url+"/api/v1/me/keys", "")
	wantText(of.t, "luanette key list --mine", keys, `"name":"anns"`)
	for how, token := range map[string]string{"with a key": key, "through a client": commandLine} {
		_, body := requestAs(of.t, token, http.MethodPost, of.url+"/tools/approval_decide", decision(id))
		wantText(of.t, "the asker "+how, body, own)
	}
}

// checkSight checks who finds a request and gets its events.
func (of *financeServer) checkSight(id string, seeing, others map[string]someone) {
	of.t.Helper()
	sees := func(who someone) (listed, told, shown bool) {
		_, list := who.request(http.MethodPost, "/tools/approval_list", `{}`)
		_, events := who.request(http.MethodGet, "/api/v1/events?types=approval.*&after=all&follow=false", "")
		_, status := who.request(http.MethodPost, "/tools/approval_status", `{"approval_id":"`+id+`"}`)
		return strings.Contains(list, id), strings.Contains(events, id), !strings.Contains(status, "no approval "+id)
	}
	for name, who := range seeing {
		if listed, told, shown := sees(who); !listed || !told || !shown {
			of.t.Errorf("%s: listed %v, events %v, shown %v", name, listed, told, shown)
		}
	}
	for name, who := range others {
		if listed, told, shown := sees(who); listed || told || shown {
			of.t.Errorf("%s of another organisation: listed %v, events %v, shown %v", name, listed, told, shown)
		}
		wantText(of.t, name, who.allow(id), "no approval "+id)
	}
}

// checkCount checks that one person is not enough, counts once, and is one together with
// who decides in their place.
func (of *financeServer) checkCount(id string, bob, cleo, eve someone) {
	of.t.Helper()
	wantText(of.t, "the delegate", eve.allow(id), `"status":"pending"`, `"agreed":1`, `"for":"Person cleo"`)
	for name, who := range map[string]someone{"the delegate again": eve, "who delegated": cleo} {
		wantText(of.t, name, who.allow(id), "you have decided")
	}
	if got := of.bank.received(); got != "" {
		of.t.Errorf("with one of two the bank received %s", got)
	}
	wantText(of.t, "the second", bob.allow(id), `"status":"allowed"`, `"agreed":2`)
	if got := of.bank.received(); strings.Count(got, "first") != 1 {
		of.t.Errorf("the bank received %q", got)
	}
	wantText(of.t, "after that", cleo.allow(id), "is allowed already")
}

// checkLostRole checks that the decision of somebody who has lost the role since does not
// count when the script runs: it asks again.
func (of *financeServer) checkLostRole(ann, bob, cleo someone) {
	of.t.Helper()
	id := of.pay(ann, "second")
	wantText(of.t, "the first", bob.allow(id), `"agreed":1`)
	of.signIn("bob", "acme")
	wantText(of.t, "the second", cleo.allow(id), `"pending_approval"`)
	if got := of.bank.received(); strings.Contains(got, "second") {
		of.t.Errorf("the bank received %q", got)
	}
	_, list := cleo.request(http.MethodPost, "/tools/approval_list", `{}`)
	if !strings.Contains(list, `"agreed":0`) || strings.Contains(list, id) {
		of.t.Errorf("the script does not ask again: %s", list)
	}
	wantText(of.t, "without the role", bob.allow(id), "no approval "+id)
}
