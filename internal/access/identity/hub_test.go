package identity_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/identity"
	"github.com/luanette/luanette/internal/access/identity/identitytest"
	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// hub is a server at which people sign in, with two routes of its own: /mcp describes the
// caller, and /stream goes on until the caller's right ends.
type hub struct {
	*identity.Service
	server  *httptest.Server
	url     string
	keys    *apikey.Store
	clock   *clock.Virtual
	streams chan struct{} // gets one for each stream that has begun

	mu      sync.Mutex
	audited []string
}

// ada is a person of the group hub-users.
func ada() oauthtest.Claims {
	return oauthtest.Claims{"sub": "ada-1", "name": "Ada", "email": "ada@example.com", "email_verified": true, "groups": []string{"hub-users", "other"}}
}

// at is a provider as the configuration describes it.
func at(p *oauthtest.Provider, name string) signin.Provider {
	return signin.Provider{
		Name: name, Issuer: p.URL, ClientID: oauthtest.ClientID, Scopes: []string{"profile", "email"}, Groups: "groups",
		Secret: func() (secret.Text, error) { return secret.New(oauthtest.ClientSecret), nil },
		Roles:  map[string][]string{"hub-users": {"author"}, "hub-admins": {"admin"}},
	}
}

func newHub(t *testing.T, change func(*identity.Options), providers ...signin.Provider) *hub {
	t.Helper()
	h := &hub{clock: clock.NewVirtual(time.Now()), streams: make(chan struct{}, 10)}
	h.listen()
	h.start(t, change, providers...)
	return h
}

// newHubLater returns a hub whose address is known before its providers are.
func newHubLater(t *testing.T) (h *hub, start func(...signin.Provider)) {
	t.Helper()
	h = &hub{clock: clock.NewVirtual(time.Now()), streams: make(chan struct{}, 10)}
	h.listen()
	return h, func(providers ...signin.Provider) { h.start(t, nil, providers...) }
}

func (h *hub) listen() {
	h.server = httptest.NewUnstartedServer(nil)
	h.url = "http://" + h.server.Listener.Addr().String()
}

func (h *hub) start(t *testing.T, change func(*identity.Options), providers ...signin.Provider) {
	t.Helper()
	o := identity.Options{
		PublicURL: h.url, Providers: providers, Registration: true, Browsers: netguard.Browsers{PublicURL: h.url},
		Key:    func() (secret.Text, error) { return secret.New("a key with more than 16 bytes"), nil },
		Client: httpjsontest.Client, Clock: h.clock,
		Audit: func(ctx context.Context, action, subject string, _ []byte) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.audited = append(h.audited, action+" "+subject+" by "+principal.Of(ctx).Name)
		},
	}
	if change != nil {
		change(&o)
	}
	store := dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{})
	var err error
	if h.Service, err = identity.Open(t.Context(), store, o); err != nil {
		t.Fatal(err)
	}
	if h.keys, err = apikey.Open(t.Context(), store, apikey.Options{People: h.Service}); err != nil {
		t.Fatal(err)
	}
	auth := httpauth.New(httpauth.Options{Keys: h.keys, People: h.Service, Tokens: h.tokens(providers), Browsers: o.Browsers})
	t.Cleanup(auth.Close)
	h.server.Config.Handler = auth.Mux(slices.Concat(auth.Routes(), h.Routes(), []principal.Route{
		{Pattern: "/mcp", Scope: principal.MCP, Handler: http.HandlerFunc(describeCaller)},
		{Pattern: "/stream", Scope: principal.MCP, Handler: http.HandlerFunc(h.stream)},
	}))
	h.server.Start()
	t.Cleanup(h.server.Close)
}

// tokens accepts the providers' access tokens.
func (h *hub) tokens(providers []signin.Provider) *jwt.Server {
	var issuers []jwt.Issuer
	for _, p := range providers {
		issuers = append(issuers, jwt.Issuer{URL: p.Issuer, Audience: h.url + "/mcp"})
	}
	return jwt.New(issuers, httpjsontest.Client).WithOwn(h.url, h.Resource())
}

func describeCaller(w http.ResponseWriter, r *http.Request) {
	_ = json.NewEncoder(w).Encode(principal.Of(r.Context())) // the client may have disconnected
}

func (h *hub) stream(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // the client may have disconnected
	h.streams <- struct{}{}
	<-r.Context().Done()
}

// signIn returns a browser in which the person of the provider is signed in.
func (h *hub) signIn(t *testing.T, path string) *identitytest.Browser {
	t.Helper()
	b := identitytest.New(t)
	if p := b.Open(t, h.url+path); p.Status != http.StatusNotFound || p.URL.Path != "/" { // the test has no page there
		t.Fatalf("after signing in: %d %s %s", p.Status, p.URL, p.Body)
	}
	return b
}

// me is the answer of /api/v1/me.
func (h *hub) me(t *testing.T, b *identitytest.Browser) (m httpauth.Me, status int) {
	t.Helper()
	p := b.Open(t, h.url+"/api/v1/me")
	_ = json.Unmarshal([]byte(p.Body), &m) // a refusal has another form
	return m, p.Status
}

// call calls /mcp with a token.
func (h *hub) call(t *testing.T, token string) (who principal.Principal, status int) {
	t.Helper()
	name, value := httpjsontest.Bearer(token)
	response, body := httpjsontest.Read(t, http.MethodGet, h.url+"/mcp", "", name, value)
	_ = json.Unmarshal([]byte(body), &who) // a refusal has another form
	return who, response.StatusCode
}

// post sends a form to an endpoint for programs.
func (h *hub) post(t *testing.T, path string, form url.Values) (answer map[string]any, status int) {
	t.Helper()
	response, body := httpjsontest.Read(t, http.MethodPost, h.url+path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%s: %s: %v", path, body, err)
	}
	return answer, response.StatusCode
}

// person returns the only person.
func (h *hub) person(t *testing.T) people.Person {
	t.Helper()
	list, err := h.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%d people: %v", len(list), err)
	}
	return list[0]
}

// app is a client with a redirect URI that nobody serves.
type app struct {
	hub      *hub
	id       string
	redirect string
	verifier string
}

// newApp registers a client.
func (h *hub) newApp(t *testing.T, redirect string) *app {
	t.Helper()
	_, body := httpjsontest.Read(t, http.MethodPost, h.url+"/oauth/register", `{"client_name":"An app","redirect_uris":["`+redirect+`"]}`)
	var made struct {
		ID string `json:"client_id"`
	}
	if err := json.Unmarshal([]byte(body), &made); err != nil || made.ID == "" {
		t.Fatalf("register: %s", body)
	}
	return &app{h, made.ID, redirect, strings.Repeat("v", 43)}
}

// link is the address at which the app sends people.
func (a *app) link(change func(url.Values)) string {
	query := url.Values{
		"response_type": {"code"}, "client_id": {a.id}, "redirect_uri": {a.redirect}, "state": {"the app's state"}, "scope": {"mcp read"},
		"code_challenge": {challenge(a.verifier)}, "code_challenge_method": {"S256"}, "resource": {a.hub.url + "/mcp"},
	}
	if change != nil {
		change(query)
	}
	return a.hub.url + "/oauth/authorize?" + query.Encode()
}

// connect lets the person allow the app, and returns its code.
func (a *app) connect(t *testing.T, b *identitytest.Browser) (code string) {
	t.Helper()
	b.Stop = func(u *url.URL) bool { return strings.HasPrefix(u.String(), a.redirect) }
	p := b.Open(t, a.link(nil))
	if p.To == "" {
		p = b.Submit(t, p, map[string]string{"decision": "allow"})
	}
	back, err := url.Parse(p.To)
	if err != nil || back.Query().Get("state") != "the app's state" || back.Query().Get("iss") != a.hub.url || back.Query().Get("code") == "" {
		t.Fatalf("back to the app: %d %q %s", p.Status, p.To, p.Body)
	}
	return back.Query().Get("code")
}

// exchange exchanges a code.
func (a *app) exchange(t *testing.T, code string) (map[string]any, int) {
	t.Helper()
	return a.hub.post(t, "/oauth/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": {a.id}, "redirect_uri": {a.redirect}, "code_verifier": {a.verifier}, "resource": {a.hub.url + "/mcp"},
	})
}

// tokens connects the app and returns its tokens.
func (a *app) tokens(t *testing.T, b *identitytest.Browser) (access, refresh string) {
	t.Helper()
	got, status := a.exchange(t, a.connect(t, b))
	if status != http.StatusOK {
		t.Fatalf("tokens: %d %v", status, got)
	}
	return got["access_token"].(string), got["refresh_token"].(string)
}

// refresh exchanges a refresh token.
func (a *app) refresh(t *testing.T, token string) (map[string]any, int) {
	t.Helper()
	return a.hub.post(t, "/oauth/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {a.id}})
}

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
