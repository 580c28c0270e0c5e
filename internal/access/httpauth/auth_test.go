package httpauth_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clocktest.Settled(m)) }

// fixture is an Authenticator with a route of every kind.
type fixture struct {
	keys *apikey.Store
	url  string
}

func opened(t *testing.T, o httpauth.Options, fixed ...apikey.Key) fixture {
	t.Helper()
	store := dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{})
	keys, err := apikey.Open(t.Context(), store, apikey.Options{Fixed: fixed})
	if err != nil {
		t.Fatal(err)
	}
	o.Keys = keys
	g := httpauth.New(o)
	id := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, principal.Of(r.Context()).ID)
	})
	stream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		_, _ = io.WriteString(w, "over\n")
	})
	server := httptest.NewServer(g.Mux(append(g.Routes(), []principal.Route{
		{Pattern: "/open", Scope: principal.Open, Handler: id},
		{Pattern: "/mcp", Scope: principal.MCP, Bearer: true, Handler: id},
		{Pattern: "/read", Scope: principal.Read, Handler: id},
		{Pattern: "/chat", Scope: principal.Chat, Handler: id},
		{Pattern: "/admin", Scope: principal.Admin, Handler: id},
		{Pattern: "/of/{org}/{user}", Scope: principal.Org, Handler: id},
		{Pattern: "/any", Scope: principal.Chat, AnyKey: true, Handler: id, Bearer: true, Refuse: func(w http.ResponseWriter, _ *http.Request, status int, err error) {
			http.Error(w, "refused: "+err.Error(), status)
		}},
		{Pattern: "GET /stream", Scope: principal.Read, Handler: stream},
	}...)))
	t.Cleanup(func() {
		server.Close()
		g.Close()
	})
	return fixture{keys, server.URL}
}

func fixed(name string, rights apikey.Rights) apikey.Key {
	return apikey.Key{Name: name, Hash: apikey.HashOf(name + "-token"), Rights: rights, Fixed: true}
}

func scoped(scopes ...principal.Scope) apikey.Rights { return apikey.Rights{Scopes: scopes} }

// ask sends a request and returns the answer with its body.
func (y fixture) ask(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	return httpjsontest.Read(t, method, y.url+path, body, header...)
}

func TestAccess(t *testing.T) {
	t.Parallel()
	y := opened(t, httpauth.Options{},
		fixed("root", scoped(principal.Admin)), fixed("web", scoped(principal.Chat)), fixed("agent", scoped(principal.MCP)),
		fixed("acme", apikey.Rights{Scopes: []principal.Scope{principal.Org}, Org: "acme"}),
		fixed("ada", apikey.Rights{Scopes: []principal.Scope{principal.Admin}, Org: "acme", User: "ada"}),
		apikey.Key{Name: "old", Hash: apikey.HashOf("old-token"), Rights: scoped(principal.Admin), Expires: time.Unix(1, 0)})
	tests := []struct {
		name, path, header string
		status             int
		body, challenge    string
	}{
		{"no header", "/chat", "", 401, "Authorization header with Bearer token required", "Bearer"},
		{"another scheme", "/chat", "Basic d2Vi", 401, "Bearer token required", "Bearer"},
		{"an empty token", "/chat", "Bearer  ", 401, "Bearer token required", "Bearer"},
		{"a wrong key", "/chat", "Bearer guess", 403, "Invalid API key", `Bearer error="invalid_token"`},
		{"wrong at the MCP server", "/mcp", "Bearer guess", 401, "Invalid API key", `Bearer error="invalid_token"`},
		{"an expired key", "/chat", "Bearer old-token", 403, "expired", `Bearer error="invalid_token"`},
		{"a valid key", "/chat", "Bearer web-token", 200, "key:web", ""},
		{"the scheme in lower case", "/chat", "bearer  web-token", 200, "key:web", ""},
		{"a key without the scope", "/mcp", "Bearer web-token", 403, "scope mcp", `Bearer error="insufficient_scope"`},
		{"admin has every scope", "/read", "Bearer root-token", 200, "key:root", ""},
		{"a key that is not admin", "/admin", "Bearer agent-token", 403, "scope admin", ""},
		{"its own organisation", "/of/acme/bob", "Bearer acme-token", 200, "key:acme", ""},
		{"the scope org includes chat", "/chat", "Bearer acme-token", 200, "key:acme", ""},
		{"another organisation", "/of/other/bob", "Bearer acme-token", 403, "of the organisation other", ""},
		{"another user", "/of/acme/bob", "Bearer ada-token", 403, "for ada only", ""},
		{"the key's own user", "/of/acme/ada", "Bearer ada-token", 200, "key:ada", ""},
		{"an open route without a key", "/open", "", 200, "nobody", ""},
		{"an open route with a wrong key", "/open", "Bearer guess", 200, "nobody", ""},
		{"any key, where keys exist", "/any", "Bearer guess", 401, "refused: Invalid API key", `Bearer error="invalid_token"`},
		{"a route with its own form", "/any", "Bearer agent-token", 403, "refused: ", `Bearer error="insufficient_scope"`},
		{"an open route with a key", "/open", "Bearer web-token", 200, "key:web", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var header []string
			if tt.header != "" {
				header = []string{"Authorization", tt.header}
			}
			answer, body := y.ask(t, http.MethodGet, tt.path, "", header...)
			if answer.StatusCode != tt.status || !strings.Contains(body, tt.body) {
				t.Errorf("%d %s, want %d %s", answer.StatusCode, body, tt.status, tt.body)
			}
			if tt.challenge != "" && answer.Header.Get("WWW-Authenticate") != tt.challenge {
				t.Errorf("WWW-Authenticate: %s", answer.Header.Get("WWW-Authenticate"))
			}
		})
	}
}

func TestRouteWithoutScope(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a route that does not say who may use it is served")
		}
	}()
	(&httpauth.Authenticator{}).Mux([]principal.Route{{Pattern: "/open"}})
}

// otherIssuer accepts any token but "b.a.d"; "l.at.e" cannot be verified.
type otherIssuer struct{ asked atomic.Int32 }

func (o *otherIssuer) Principal(_ context.Context, token string) (principal.Principal, error) {
	o.asked.Add(1)
	switch token {
	case "b.a.d":
		return principal.Anonymous(), fault.New(fault.NeedsAuth, "the token is not valid").WithHint("get a new token")
	case "l.at.e":
		return principal.Anonymous(), fault.New(fault.Unavailable, "the issuer cannot be reached")
	}
	return principal.Principal{ID: "oauth:x#ada", Scopes: []principal.Scope{principal.Chat}}, nil
}

func (*otherIssuer) Metadata(r *http.Request) string { return "http://" + r.Host + "/who\"" }

func (*otherIssuer) ScopeName(s principal.Scope) string {
	if s == principal.Admin {
		return ""
	}
	return "use:" + string(s)
}

// TestTokensOfOtherIssuers checks that tokens of other issuers pass the same check as
// keys, and that keys are never sent to an issuer.
func TestTokensOfOtherIssuers(t *testing.T) {
	t.Parallel()
	tokens := &otherIssuer{}
	y := opened(t, httpauth.Options{Tokens: tokens}, fixed("web", scoped(principal.Chat)), apikey.Key{Name: "dots", Hash: apikey.HashOf("d.o.ts"), Rights: scoped(principal.Chat), Fixed: true})
	where := `resource_metadata="` + y.url + `/who\""`
	for _, tt := range []struct {
		name, path, token string
		status            int
		challenge, body   string
		asked             int32
	}{
		{"a key", "/chat", "web-token", 200, "", "key:web", 0},
		{"a key that looks like a token", "/chat", "d.o.ts", 200, "", "key:dots", 0},
		{"a wrong key", "/chat", "guess", 403, `Bearer error="invalid_token", ` + where + `, scope="use:chat"`, "Invalid API key", 0},
		{"no header", "/admin", "", 401, "Bearer " + where, "key create", 0},
		{"a token", "/chat", "g.oo.d", 200, "", "oauth:x#ada", 1},
		{"a token without the scope", "/mcp", "g.oo.d", 403, `Bearer error="insufficient_scope", ` + where + `, scope="use:mcp"`, "the scope mcp", 1},
		{"a wrong token", "/chat", "b.a.d", 401, `Bearer error="invalid_token", ` + where + `, scope="use:chat"`, "get a new token", 1},
		{"the issuer is unreachable", "/mcp", "l.at.e", 503, "", "cannot be reached", 1},
		{"an open route with a wrong token", "/open", "b.a.d", 200, "", "nobody", 1},
	} {
		before := tokens.asked.Load()
		var header []string
		if tt.token != "" {
			header = []string{"Authorization", "Bearer " + tt.token}
		}
		answer, body := y.ask(t, http.MethodGet, tt.path, "", header...)
		if got := answer.Header.Get("WWW-Authenticate"); answer.StatusCode != tt.status || got != tt.challenge || !strings.Contains(body, tt.body) {
			t.Errorf("%s: %d %s %s", tt.name, answer.StatusCode, got, body)
		}
		if asked := tokens.asked.Load() - before; asked != tt.asked {
			t.Errorf("%s: the issuer was asked %d times", tt.name, asked)
		}
	}
}

func TestWithoutKeysLocalCallersMayDoAll(t *testing.T) {
	t.Parallel()
	y := opened(t, httpauth.Options{Peers: &owner.Peers{Local: owner.AsOwner}})
	if answer, body := y.ask(t, http.MethodPost, "/admin", ""); answer.StatusCode != 200 || body != "local" {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if answer, body := y.ask(t, http.MethodPost, "/any", "", "Authorization", "Bearer whatever"); answer.StatusCode != 200 || body != "local" {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if answer, body := y.ask(t, http.MethodPost, "/any", "", "Authorization", "Bearer whatever", "X-Forwarded-For", "1.2.3.4"); answer.StatusCode != 403 {
		t.Errorf("through a proxy: %d %s", answer.StatusCode, body)
	}
	if _, body := y.ask(t, http.MethodGet, "/api/v1/me", ""); !strings.Contains(body, `"open":true`) {
		t.Error(body)
	}
	if _, _, err := y.keys.Create(t.Context(), apikey.Key{Name: "first", Rights: scoped(principal.Admin)}); err != nil {
		t.Fatal(err)
	}
	if answer, _ := y.ask(t, http.MethodPost, "/admin", ""); answer.StatusCode != 401 {
		t.Errorf("a request without a key after one was created: %d", answer.StatusCode)
	}
	if _, body := y.ask(t, http.MethodGet, "/api/v1/me", ""); !strings.Contains(body, "luanette login") {
		t.Errorf("how to sign in is not said: %s", body)
	}
	if _, err := y.keys.Revoke(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	if answer, _ := y.ask(t, http.MethodPost, "/admin", ""); answer.StatusCode != 401 {
		t.Errorf("a request without a key after the last one was revoked: %d", answer.StatusCode)
	}
}

// login returns the session's cookie and CSRF token.
func (y fixture) login(t *testing.T, key string) (cookie, csrf string) {
	t.Helper()
	answer, body := y.ask(t, http.MethodPost, "/api/v1/login", `{"key":"`+key+`"}`)
	if answer.StatusCode != 200 {
		t.Fatalf("%d %s", answer.StatusCode, body)
	}
	var me httpauth.Me
	if err := json.Unmarshal([]byte(body), &me); err != nil || me.CSRF == "" || strings.Contains(body, key) {
		t.Fatalf("%v: %s", err, body)
	}
	set := answer.Header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Expires="} {
		if !strings.Contains(set, want) {
			t.Errorf("cookie without %s: %s", want, set)
		}
	}
	cookie, _, _ = strings.Cut(set, ";")
	return cookie, me.CSRF
}

func TestLogin(t *testing.T) {
	t.Parallel()
	y := opened(t, httpauth.Options{}, fixed("web", scoped(principal.MCP, principal.Read)))
	for body, want := range map[string]int{`{"key":"guess"}`: 403, `{"key":""}`: 403, `{`: 400, `[]`: 400} {
		if answer, text := y.ask(t, http.MethodPost, "/api/v1/login", body); answer.StatusCode != want {
			t.Errorf("%s: %d %s", body, answer.StatusCode, text)
		}
	}
	if answer, _ := y.ask(t, http.MethodPost, "/api/v1/login", `{"key":"web-token"}`, "Content-Type", "text/plain"); answer.StatusCode != 400 {
		t.Errorf("a login as text/plain: %d", answer.StatusCode)
	}
	if answer, _ := y.ask(t, http.MethodPost, "/api/v1/login", `{"key":"web-token"}`, "Origin", "https://evil.example"); answer.StatusCode != 403 {
		t.Errorf("a login from a page of another origin: %d", answer.StatusCode)
	}
	cookie, csrf := y.login(t, "web-token")
	tests := []struct {
		name, method, path string
		header             []string
		status             int
	}{
		{"reading", "GET", "/read", []string{"Cookie", cookie}, 200},
		{"a change without the CSRF token", "POST", "/mcp", []string{"Cookie", cookie}, 403},
		{"a change with a wrong CSRF token", "POST", "/mcp", []string{"Cookie", cookie, "X-CSRF-Token", strings.Repeat("0", len(csrf))}, 403},
		{"a change with the CSRF token", "POST", "/mcp", []string{"Cookie", cookie, "X-CSRF-Token", csrf}, 200},
		{"a key needs no CSRF token", "POST", "/mcp", []string{"Authorization", "Bearer web-token"}, 200},
		{"a scope that the key lacks", "GET", "/admin", []string{"Cookie", cookie}, 403},
		{"an unknown cookie", "GET", "/read", []string{"Cookie", "luanette_session=GUESS"}, 401},
		{"the caller", "GET", "/api/v1/me", []string{"Cookie", cookie}, 200},
		{"the caller without a cookie", "GET", "/api/v1/me", nil, 401},
		{"a logout without the CSRF token", "POST", "/api/v1/logout", []string{"Cookie", cookie}, 403},
		{"a logout", "POST", "/api/v1/logout", []string{"Cookie", cookie, "X-CSRF-Token", csrf}, 204},
		{"the cookie after the logout", "GET", "/read", []string{"Cookie", cookie}, 401},
		{"a second logout", "POST", "/api/v1/logout", []string{"Cookie", cookie}, 204},
	}
	for _, tt := range tests { // in this order
		if answer, body := y.ask(t, tt.method, tt.path, "{}", tt.header...); answer.StatusCode != tt.status {
			t.Errorf("%s: %d %s", tt.name, answer.StatusCode, body)
		}
	}
}

func TestWrongKeysAreRateLimited(t *testing.T) {
	t.Parallel()
	y := opened(t, httpauth.Options{}, fixed("web", scoped(principal.Chat)))
	for n := range 200 { // a minute may end meanwhile, and counting begins anew
		answer, _ := y.ask(t, http.MethodPost, "/api/v1/login", fmt.Sprintf(`{"key":"guess %d"}`, n))
		if answer.StatusCode == 429 {
			if answer.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			if right, body := y.ask(t, http.MethodPost, "/api/v1/login", `{"key":"web-token"}`); right.StatusCode != 200 {
				t.Errorf("a right key: %d %s", right.StatusCode, body)
			}
			return
		}
	}
	t.Error("wrong keys are never refused with 429")
}

// TestOneWrongKeyBlocksOnlyItself checks that a program that repeats one wrong key, at the
// login or elsewhere, does not keep others at its address from logging in.
func TestOneWrongKeyBlocksOnlyItself(t *testing.T) {
	t.Parallel()
	y := opened(t, httpauth.Options{}, fixed("web", scoped(principal.Chat)))
	for range 50 {
		y.ask(t, http.MethodGet, "/chat", "", "Authorization", "Bearer stale")
	}
	blocked := false
	for range 200 {
		answer, _ := y.ask(t, http.MethodPost, "/api/v1/login", `{"key":"stale"}`)
		if blocked = answer.StatusCode == 429; blocked {
			break
		}
	}
	if !blocked {
		t.Error("one wrong key is never refused with 429")
	}
	if answer, body := y.ask(t, http.MethodPost, "/api/v1/login", `{"key":"web-token"}`); answer.StatusCode != 200 {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// stream opens one and returns its lines.
func (y fixture) stream(t *testing.T, header ...string) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, y.url+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(header[0], header[1])
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	if !lines.Scan() || lines.Text() != "begun" {
		t.Fatal(lines.Text())
	}
	return lines
}

// TestStreamsEndWithTheirKey checks that an open stream ends when its key is revoked.
func TestStreamsEndWithTheirKey(t *testing.T) {
	t.Parallel()
	y := opened(t, httpauth.Options{})
	create := func(name string) string {
		_, token, err := y.keys.Create(t.Context(), apikey.Key{Name: name, Rights: scoped(principal.Read)})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	token, other := create("web"), create("other")
	cookie, csrf := y.login(t, token)
	again, _ := y.login(t, token)
	byKey, byCookie, bySecond, byOther := y.stream(t, "Authorization", "Bearer "+token), y.stream(t, "Cookie", cookie), y.stream(t, "Cookie", again), y.stream(t, "Authorization", "Bearer "+other)
	if answer, _ := y.ask(t, http.MethodPost, "/api/v1/logout", "", "Cookie", cookie, "X-CSRF-Token", csrf); answer.StatusCode != 204 {
		t.Fatal(answer.StatusCode)
	}
	if !byCookie.Scan() || byCookie.Text() != "over" {
		t.Error("a stream outlives the logout")
	}
	if _, err := y.keys.Revoke(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	if !byKey.Scan() || byKey.Text() != "over" || !bySecond.Scan() || bySecond.Text() != "over" {
		t.Error("a stream outlives its key")
	}
	if answer, _ := y.ask(t, http.MethodGet, "/read", "", "Authorization", "Bearer "+other); answer.StatusCode != 200 {
		t.Error("another key was revoked too")
	}
	if _, err := y.keys.Revoke(t.Context(), "other"); err != nil { // only now
		t.Fatal(err)
	}
	if !byOther.Scan() || byOther.Text() != "over" {
		t.Error("the stream of the last key goes on")
	}
}

// TestStreamsOfReadersGoOn checks that the stream of a key that may not call tools goes on when
// other keys change.
func TestStreamsOfReadersGoOn(t *testing.T) {
	t.Parallel()
	keys, err := apikey.Open(t.Context(), dbtest.Open(t, dbtest.SQLite(t)), apikey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := keys.Create(t.Context(), apikey.Key{Name: "dashboard", Rights: scoped(principal.Read)})
	if err != nil {
		t.Fatal(err)
	}
	g := httpauth.New(httpauth.Options{Keys: keys})
	begun, changed, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	handler := g.Mux([]principal.Route{{Pattern: "/stream", Scope: principal.Read, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-changed
		ended <- r.Context().Err()
	})}})
	request := httptest.NewRequest(http.MethodGet, "/stream", nil)
	request.Header.Set("Authorization", "Bearer "+token)
	go handler.ServeHTTP(httptest.NewRecorder(), request)
	<-begun
	if _, _, err := keys.Create(t.Context(), apikey.Key{Name: "other", Rights: scoped(principal.Read)}); err != nil {
		t.Fatal(err)
	}
	g.Close() // after all streams were checked
	close(changed)
	if err := <-ended; err != nil {
		t.Errorf("the stream ended: %v", err)
	}
}

func TestStreamsEndWhenTheirKeyExpires(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.db")
	synctest.Test(t, func(t *testing.T) {
		store, err := db.Open(t.Context(), "sqlite:"+path, db.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		keys, err := apikey.Open(t.Context(), store, apikey.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, token, err := keys.Create(t.Context(), apikey.Key{Name: "brief", Expires: time.Now().Add(time.Hour), Rights: scoped(principal.Read)})
		if err != nil {
			t.Fatal(err)
		}
		g := httpauth.New(httpauth.Options{Keys: keys})
		defer g.Close()
		began := time.Now()
		handler := g.Mux([]principal.Route{{Pattern: "/stream", Scope: principal.Read, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		})}})
		r := httptest.NewRequest(http.MethodGet, "/stream", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		if lasted := time.Since(began); lasted != time.Hour {
			t.Errorf("the stream lasted %v, want an hour", lasted)
		}
	})
}

func TestKeysOverHTTP(t *testing.T) {
	t.Parallel()
	y := opened(t, httpauth.Options{}, fixed("root", scoped(principal.Admin)), fixed("web", scoped(principal.MCP)))
	root := []string{"Authorization", "Bearer root-token"}
	answer, body := y.ask(t, http.MethodPost, "/api/v1/keys", `{"name":"ci","scopes":["mcp"],"expires":"90d","namespaces":["fs"],"budget":10}`, root...)
	var made httpauth.KeyView
	if err := json.Unmarshal([]byte(body), &made); err != nil || answer.StatusCode != 201 || made.Token == "" || made.Budget != 10 || made.Expires == nil {
		t.Fatalf("%d %s", answer.StatusCode, body)
	}
	if answer, body := y.ask(t, http.MethodGet, "/mcp", "", "Authorization", "Bearer "+made.Token); answer.StatusCode != 200 || body != "key:ci" {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if _, body := y.ask(t, http.MethodGet, "/api/v1/keys", "", root...); strings.Contains(body, made.Token) || !strings.Contains(body, `"name":"ci"`) || !strings.Contains(body, `"state":"active"`) {
		t.Error(body)
	}
	for _, bad := range []string{`{"name":"x","expires":"soon"}`, `{"name":"x","scopes":["root"]}`, `{"name":""}`, `{"name":"x","expires":"2001-01-01"}`} {
		if answer, body := y.ask(t, http.MethodPost, "/api/v1/keys", bad, root...); answer.StatusCode != 400 {
			t.Errorf("%s: %d %s", bad, answer.StatusCode, body)
		}
	}
	if answer, _ := y.ask(t, http.MethodPost, "/api/v1/keys", `{"name":"mine","scopes":["admin"]}`, "Authorization", "Bearer web-token"); answer.StatusCode != 403 {
		t.Errorf("a key without admin creates an admin key: %d", answer.StatusCode)
	}
	for name, want := range map[string]int{"ci": 200, "nobody": 404, "root": 409} {
		if answer, body := y.ask(t, http.MethodDelete, "/api/v1/keys/"+name, "", root...); answer.StatusCode != want {
			t.Errorf("%s: %d %s", name, answer.StatusCode, body)
		}
	}
	if answer, _ := y.ask(t, http.MethodGet, "/mcp", "", "Authorization", "Bearer "+made.Token); answer.StatusCode != 401 {
		t.Errorf("a revoked key is accepted: %d", answer.StatusCode)
	}
}

// TestRate checks that a key above its rate is refused with the time of the next try,
// and that other keys are not.
func TestRate(t *testing.T) {
	t.Parallel()
	y := opened(t, httpauth.Options{},
		fixed("slow", apikey.Rights{Scopes: []principal.Scope{principal.Read}, Limits: principal.Limits{Rate: 3}}), fixed("other", scoped(principal.Read)))
	var last *http.Response
	var body string
	for range 100 { // it gets a new one every 20 seconds
		if last, body = y.ask(t, http.MethodGet, "/read", "", "Authorization", "Bearer slow-token"); last.StatusCode == 429 {
			break
		}
	}
	if last.StatusCode != 429 || last.Header.Get("Retry-After") == "" || !strings.Contains(body, "the key slow may have 3 requests a minute") {
		t.Errorf("%d %s %s", last.StatusCode, last.Header.Get("Retry-After"), body)
	}
	if other, _ := y.ask(t, http.MethodGet, "/read", "", "Authorization", "Bearer other-token"); other.StatusCode != 200 {
		t.Errorf("another key: %d", other.StatusCode)
	}
}

// FuzzRequests checks that no header authenticates a caller without a valid key, and
// that none makes the server fail.
func FuzzRequests(f *testing.F) {
	store, err := db.Open(f.Context(), "sqlite:"+filepath.Join(f.TempDir(), "keys.db"), db.Options{})
	if err != nil {
		f.Fatal(err)
	}
	keys, err := apikey.Open(f.Context(), store, apikey.Options{Fixed: []apikey.Key{fixed("root", scoped(principal.Admin))}})
	if err != nil {
		f.Fatal(err)
	}
	g := httpauth.New(httpauth.Options{Keys: keys})
	f.Cleanup(func() { g.Close(); _ = store.Close() })
	handler := g.Mux(g.Routes())
	for i, body := range []string{`{"key":"root-token"}`, `{"name":"x"}`, `{`, `null`, `[]`, `{"key":1e999}`} {
		f.Add(i, "Bearer x", "luanette_session=x", body)
	}
	paths := []string{"POST /api/v1/login", "POST /api/v1/keys", "POST /api/v1/logout", "GET /api/v1/me", "GET /api/v1/keys", "DELETE /api/v1/keys/x"}
	f.Fuzz(func(t *testing.T, which int, authorization, cookie, body string) {
		method, path, _ := strings.Cut(paths[(which%len(paths)+len(paths))%len(paths)], " ")
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", authorization)
		r.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= 500 || strings.HasPrefix(path, "/api/v1/keys") && w.Code != 401 && w.Code != 403 && !strings.Contains(authorization, "root-token") {
			t.Errorf("%s %s with %q: %d %s", method, path, authorization, w.Code, w.Body)
		}
	})
}

func TestParseExpiry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"": "0001-01-01T00:00:00Z", "90d": "2026-05-30T12:00:00Z", "12h": "2026-03-02T00:00:00Z",
		"2027-01-31": "2027-01-31T00:00:00Z", "2027-01-31T10:00:00Z": "2027-01-31T10:00:00Z",
	} {
		if got, err := httpauth.ParseExpiry(text, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"soon", "-1d", "0d", "-2h", "1e9d", "999999999d"} {
		if got, err := httpauth.ParseExpiry(bad, now); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

// TestPagesOfOtherOrigins sends requests as browsers do for pages.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	keys, err := apikey.Open(t.Context(), dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{}), apikey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := httpauth.New(httpauth.Options{Keys: keys, Browsers: netguard.Browsers{Origins: []string{"https://good.example"}}})
	t.Cleanup(g.Close)
	asked := 0
	serve := func(*http.Request) (any, error) { asked++; return "served", nil }
	mux := g.Mux([]principal.Route{
		{Pattern: "/own", Scope: principal.Open, Serve: serve},
		{Pattern: "/itself", Scope: principal.Open, Serve: serve, Authenticates: true},
		{Pattern: "/any", Scope: principal.Open, Serve: serve, AnyOrigin: true},
		{Pattern: "/chat", Scope: principal.Chat, Serve: serve},
	})
	ask := func(method, path, origin string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, nil)
		if origin != "none" {
			r.Header.Set("Origin", origin)
		}
		if method == http.MethodOptions {
			r.Header.Set("Access-Control-Request-Method", "PUT")
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	for origin, want := range map[string]int{
		"https://evil.example": http.StatusForbidden, "": http.StatusForbidden, "null": http.StatusForbidden,
		"https://good.example": http.StatusOK, "http://localhost:8080": http.StatusOK, "none": http.StatusOK,
	} {
		for path, want := range map[string]int{"/own": want, "/itself": want, "/any": http.StatusOK} {
			before := asked
			w := ask(http.MethodGet, path, origin)
			if w.Code != want || (asked > before) != (want == http.StatusOK) || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s from %q: %d %v %s", path, origin, w.Code, w.Header(), w.Body)
			}
		}
	}
	const good = "https://good.example"
	for _, path := range []string{"/own", "/chat"} { // /chat answers 401, which the page may read
		if w := ask(http.MethodGet, path, good); w.Header().Get("Access-Control-Allow-Origin") != good || w.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		if w := ask(http.MethodGet, path, "http://localhost:8080"); w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s for a page of this machine: %d %v", path, w.Code, w.Header())
		}
		before := asked
		w := ask(http.MethodOptions, path, good)
		if w.Code != http.StatusNoContent || w.Header().Get("Access-Control-Allow-Origin") != good || !strings.Contains(w.Header().Get("Access-Control-Allow-Methods"), "PUT") ||
			!strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), "Authorization") {
			t.Errorf("preflight of %s: %d %v", path, w.Code, w.Header())
		}
		if w := ask(http.MethodOptions, path, "https://evil.example"); w.Code != http.StatusForbidden || w.Header().Get("Access-Control-Allow-Origin") != "" || asked != before {
			t.Errorf("preflight of %s for another origin: %d %v", path, w.Code, w.Header())
		}
	}
}
