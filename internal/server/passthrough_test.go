package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/access/identity/identitytest"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// tappedTools is a tool server that notes everything that it is sent.
type tappedTools struct {
	mu   sync.Mutex
	sent []string // the path, all headers and the body of each request
}

// serve returns the address of the server; each upstream has a path of its own.
func (s *tappedTools) serve(t *testing.T) string {
	t.Helper()
	echo := hub.New(hub.Options{Name: "tapped", Version: "1", Tools: echoTool{}})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what could be read is what was sent
		s.mu.Lock()
		s.sent = append(s.sent, fmt.Sprint(r.URL, " ", r.Header, " ", string(body)))
		s.mu.Unlock()
		r.Body, r.URL.Path = io.NopCloser(bytes.NewReader(body)), "/mcp"
		echo.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		_ = echo.Close(context.WithoutCancel(t.Context())) // nothing is running
		site.Close()
	})
	return site.URL
}

// saw returns the requests to an upstream that contain a text.
func (s *tappedTools) saw(upstream, text string) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.sent {
		if strings.HasPrefix(request, "/"+upstream) && strings.Contains(request, text) {
			list = append(list, request)
		}
	}
	return list
}

// credential is how somebody calls over HTTP.
type credential struct {
	headers []string
	secrets []string // what no upstream may see
	person  bool     // has a sign-in whose tokens can be exchanged
}

// TestInboundTokensStayHere calls upstreams with every kind of login, with each credential
// that the HTTP front accepts. What clients send to us never reaches an upstream, in
// whatever header or place: it gets its own credential, or none.
func TestInboundTokensStayHere(t *testing.T) {
	t.Parallel()
	tapped := &tappedTools{}
	of := &financeServer{t: t}
	front := httptest.NewUnstartedServer(nil)
	of.url = "http://" + front.Listener.Addr().String()
	of.provider = identitytest.NewProvider(t, of.url)
	issuer, audience, site := oauthtest.NewIssuer(t), of.url+"/mcp", tapped.serve(t)
	of.serve(front, fmt.Sprintf(`
public_url = %[1]q
mcp.allowed_hosts = ["127.0.0.1"]
[keys.robot]
env = "ROBOT"
scopes = ["mcp", "read"]
[issuers.corp]
issuer = %[2]q
audience = %[3]q
jwks = %[4]q
[upstreams.shared]
url = "%[5]s/shared"
wait = "2m"
[upstreams.each]
url = "%[5]s/each"
wait = "2m"
login = "each"
headers = { X-Own = "${personal:OWN}" }
[upstreams.exchanged]
url = "%[5]s/exchanged"
wait = "2m"
login = "exchange"
oauth = { audience = "tapped" }
[identity.real]
issuer = %[6]q
client_id = %[7]q
client_secret = "${env:CLIENT_SECRET}"
scopes = ["profile", "email", "groups"]
roles = ["author"]
[identity.real.orgs]
"acme" = "acme"
`, of.url, issuer.URL, audience, issuer.Keys(), site, of.provider.URL, oauthtest.ClientID), dbtest.SQLite(t), config.Environment{"ROBOT": "robot-token-of-a-client"})

	ann, browser := of.signIn("ann", "acme")
	bearer := func(token string, person bool) credential {
		name, value := httpjsontest.Bearer(token)
		return credential{headers: []string{name, value}, secrets: []string{token}, person: person}
	}
	callers := map[string]credential{
		"session": {headers: []string{"Cookie", "luanette_session=" + ann.cookie, "X-CSRF-Token", ann.csrf}, secrets: []string{ann.cookie, ann.csrf}, person: true},
		"client":  bearer(of.client(browser), true),
		"own key": bearer(ann.do(http.MethodPost, "/api/v1/me/keys", `{"name":"laptop","scopes":["mcp","read"]}`, "token"), true),
		"key":     bearer("robot-token-of-a-client", false),
		"issuer":  bearer(issuer.Token(t, audience, nil), false),
	}
	for name, c := range callers {
		of.callAll(name, c)
	}
	for name, c := range callers {
		for _, hidden := range append(c.secrets, "extra-"+strings.ReplaceAll(name, " ", "-")) {
			if seen := tapped.saw("", hidden); hidden == "" || len(seen) > 0 {
				t.Errorf("an upstream saw the %s %q: %q", name, hidden, seen)
			}
		}
	}
	for upstream, own := range map[string]string{"shared": "hello from", "each": "X-Own:[own-value]", "exchanged": "Authorization:[Bearer "} {
		if len(tapped.saw(upstream, own)) == 0 { // else nothing was tried
			t.Errorf("%s never saw %q: %q", upstream, own, tapped.saw(upstream, ""))
		}
	}
	if seen := append(tapped.saw("shared", "Authorization:"), tapped.saw("each", "Authorization:")...); len(seen) > 0 {
		t.Errorf("upstreams without a login saw %q", seen)
	}
}

// callAll calls the tool of each upstream in every way, and checks who may.
func (of *financeServer) callAll(name string, c credential) {
	of.t.Helper()
	extra := "extra-" + strings.ReplaceAll(name, " ", "-") // headers that a client may think are passed on
	headers := append([]string{"Content-Type", "application/json", "X-Api-Key", extra, "Proxy-Authorization", "Bearer " + extra, "X-Forwarded-Access-Token", extra, "Baggage", "token=" + extra}, c.headers...)
	send := func(method, path, body string) string {
		answer, text := httpjsontest.Read(of.t, method, of.url+path, body, headers...)
		return answer.Status + " " + text
	}
	if said := send(http.MethodPut, "/api/v1/me/secrets/OWN", `{"value":"own-value"}`); !strings.HasPrefix(said, "200") {
		of.t.Fatalf("%s stores a value: %s", name, said)
	}
	for upstream, works := range map[string]bool{"shared": true, "each": true, "exchanged": c.person} {
		text := "hello from " + name
		for way, said := range map[string]string{
			"a tool":   send(http.MethodPost, "/tools/call_tool", fmt.Sprintf(`{"name":"%s.echo","arguments":{"text":%q}}`, upstream, text)),
			"a script": send(http.MethodPost, "/tools/lua_eval", fmt.Sprintf(`{"code":"return mcp.%s.echo{text='%s'}"}`, upstream, text)),
		} {
			if works && !(strings.HasPrefix(said, "200") && strings.Contains(said, text)) || !works && !strings.Contains(said, "is used with the account of each person") {
				of.t.Errorf("%s calls %s by %s: %s", name, upstream, way, said)
			}
		}
	}
}
