// Package oauthtest has a tool server that requires a login, and its authorization
// server. The authorization server is strict and records every mistake of its clients.
package oauthtest

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Site is both servers. Its fields are set before it is used, or within Change.
type Site struct {
	Resource *httptest.Server // the tool server, at /mcp
	Issuer   *httptest.Server

	Inner     http.Handler // serves requests with a valid token
	Scopes    []string     // the scopes that a request needs
	ExpiresIn int          // seconds; 0 omits it
	Iss       string       // iss in the redirect; "-" omits it
	// Metadata may change the metadata of the authorization server, and Protected that
	// of the tool server.
	Metadata  func(map[string]any)
	Protected func(map[string]any)
	// Secret, if set, is the required client secret; clients cannot be registered
	// then.
	Secret string
	// Trusts accepts the grants of others: token exchange and assertions. nil: none.
	Trusts func(form url.Values) error
	// AroundToken, if set, serves requests to the token endpoint in place of next, and
	// AroundRevoke those to the revocation endpoint.
	AroundToken  func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc)
	AroundRevoke func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc)

	mu        sync.Mutex
	mistakes  []string
	clients   map[string][]string // with their redirect URIs
	codes     map[string]request
	access    map[string]grant
	refresh   map[string]grant
	spent     map[string]bool // used refresh tokens
	devices   map[string]bool // whether the login was confirmed
	refreshes int
	revoked   int
}

type request struct{ client, redirect, challenge, resource, scope string }
type grant struct {
	client, scope string
	family        string
}

// New starts a site that is closed with the test.
func New(t testing.TB, inner http.Handler) *Site { return start(t, inner, httptest.NewServer) }

// NewTLS starts a site whose servers use https with a certificate.
func NewTLS(t testing.TB, inner http.Handler, certificate tls.Certificate) *Site {
	return start(t, inner, func(handler http.Handler) *httptest.Server {
		server := httptest.NewUnstartedServer(handler)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		server.StartTLS()
		return server
	})
}

func start(t testing.TB, inner http.Handler, serve func(http.Handler) *httptest.Server) *Site {
	s := &Site{
		Inner: inner, ExpiresIn: 3600,
		clients: map[string][]string{}, codes: map[string]request{}, access: map[string]grant{}, refresh: map[string]grant{},
		spent: map[string]bool{}, devices: map[string]bool{},
	}
	issuer := http.NewServeMux()
	issuer.HandleFunc("GET /.well-known/oauth-authorization-server", s.describe)
	issuer.HandleFunc("POST /register", s.register)
	issuer.HandleFunc("GET /authorize", s.authorize)
	issuer.HandleFunc("POST /token", s.around(func() around { return s.AroundToken }, s.token))
	issuer.HandleFunc("POST /revoke", s.around(func() around { return s.AroundRevoke }, s.revoke))
	issuer.HandleFunc("POST /device", s.device)
	s.Issuer = serve(issuer)
	resource := http.NewServeMux()
	resource.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", s.protected)
	resource.HandleFunc("/mcp", s.guard)
	s.Resource = serve(resource)
	t.Cleanup(func() {
		s.Resource.Close()
		s.Issuer.Close()
	})
	return s
}

type around = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc)

// around serves next, or what the test has in place of it.
func (s *Site) around(chosen func() around, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		instead := chosen()
		s.mu.Unlock()
		if instead == nil {
			next(w, r)
			return
		}
		instead(w, r, next)
	}
}

// Lose serves a request and closes the connection in place of the response.
func Lose(_ http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	next(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// URL is the address of the tool server.
func (s *Site) URL() string { return s.Resource.URL + "/mcp" }

// Change changes the site while it runs.
func (s *Site) Change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Mistakes returns the mistakes of its clients so far.
func (s *Site) Mistakes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mistakes)
}

// Refreshes returns how often a refresh token was used.
func (s *Site) Refreshes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refreshes
}

// Revoked returns how many logins their owners have ended.
func (s *Site) Revoked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revoked
}

// Expire ends all access tokens. Revoke ends the refresh tokens too.
func (s *Site) Expire() { s.Change(func() { clear(s.access) }) }

// Revoke ends all tokens.
func (s *Site) Revoke() { s.Change(func() { clear(s.access); clear(s.refresh) }) }

// Agree confirms a login as a person in a browser does. It returns the address of the
// redirect.
func (s *Site) Agree(t testing.TB, link string) *url.URL {
	t.Helper()
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(get(t, link))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusFound {
		t.Fatalf("the login page answered %s; mistakes: %v", response.Status, s.Mistakes())
	}
	back, err := response.Location()
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// AgreeOnDevice confirms a device login with its code.
func (s *Site) AgreeOnDevice() {
	s.Change(func() {
		for code := range s.devices {
			s.devices[code] = true
		}
	})
}

func get(t testing.TB, link string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *Site) mistake(w http.ResponseWriter, code, format string, args ...any) {
	s.mistakes = append(s.mistakes, fmt.Sprintf(format, args...))
	s.refuse(w, code)
}

func (s *Site) refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code})
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func (s *Site) describe(w http.ResponseWriter, _ *http.Request) {
	base := s.Issuer.URL
	said := map[string]any{
		"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
		"device_authorization_endpoint": base + "/device", "revocation_endpoint": base + "/revoke", "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"authorization_response_iss_parameter_supported": true,
	}
	if s.Secret == "" {
		said["registration_endpoint"] = base + "/register"
	} else {
		said["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Metadata != nil {
		s.Metadata(said)
	}
	reply(w, said)
}

func (s *Site) protected(w http.ResponseWriter, _ *http.Request) {
	said := map[string]any{"resource": s.URL(), "authorization_servers": []string{s.Issuer.URL}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Protected != nil {
		s.Protected(said)
	}
	reply(w, said)
}

func (s *Site) register(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Redirects []string `json:"redirect_uris"`
		Kind      string   `json:"application_type"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Kind != "native" {
		s.mistake(w, "invalid_client_metadata", "registered as %q", asked.Kind)
		return
	}
	id := "client-" + rand.Text()
	s.clients[id] = asked.Redirects
	w.WriteHeader(http.StatusCreated)
	reply(w, map[string]any{"client_id": id, "token_endpoint_auth_method": "none"})
}

func (s *Site) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	redirects, known := s.clients[q.Get("client_id")]
	switch {
	case s.Secret == "" && !known:
		s.mistake(w, "invalid_client", "unknown client %q", q.Get("client_id"))
	case s.Secret == "" && !slices.Contains(redirects, q.Get("redirect_uri")):
		s.mistake(w, "invalid_request", "redirect_uri %q was not registered", q.Get("redirect_uri"))
	case q.Get("response_type") != "code":
		s.mistake(w, "unsupported_response_type", "response_type %q", q.Get("response_type"))
	case q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "":
		s.mistake(w, "invalid_request", "no PKCE")
	case len(q.Get("state")) < 20:
		s.mistake(w, "invalid_request", "state %q can be guessed", q.Get("state"))
	case q.Get("resource") != s.URL():
		s.mistake(w, "invalid_target", "resource %q", q.Get("resource"))
	default:
		code := rand.Text()
		s.codes[code] = request{q.Get("client_id"), q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("resource"), q.Get("scope")}
		back, _ := url.Parse(q.Get("redirect_uri"))
		answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {s.Issuer.URL}}
		if s.Iss != "" {
			answer.Set("iss", s.Iss)
		}
		if s.Iss == "-" {
			answer.Del("iss")
		}
		back.RawQuery = answer.Encode()
		http.Redirect(w, r, back.String(), http.StatusFound)
	}
}

// client returns the client that requests a token, or "" if it is not authenticated.
func (s *Site) client(r *http.Request) string {
	if s.Secret == "" {
		return r.PostForm.Get("client_id")
	}
	id, given, _ := r.BasicAuth()
	if given != s.Secret {
		return ""
	}
	return id
}

func (s *Site) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = r.ParseForm()
	form := r.PostForm
	client := s.client(r)
	switch {
	case client == "":
		s.mistake(w, "invalid_client", "a client did not prove who it is")
	case form.Get("resource") != s.URL():
		s.mistake(w, "invalid_target", "resource %q at the token endpoint", form.Get("resource"))
	case form.Get("grant_type") == "authorization_code":
		s.byCode(w, client, form)
	case form.Get("grant_type") == "refresh_token":
		s.byRefresh(w, client, form.Get("refresh_token"))
	case form.Get("grant_type") == "urn:ietf:params:oauth:grant-type:device_code":
		if agreed, known := s.devices[form.Get("device_code")]; !known {
			s.mistake(w, "invalid_grant", "unknown device code")
		} else if !agreed {
			s.refuse(w, "authorization_pending")
		} else {
			s.give(w, grant{client, "", rand.Text()})
		}
	case form.Get("grant_type") == "client_credentials" && s.Secret != "":
		s.give(w, grant{client, form.Get("scope"), ""})
	case s.Trusts != nil && (form.Get("grant_type") == grantExchange || form.Get("grant_type") == grantAssertion):
		if err := s.Trusts(form); err != nil {
			s.mistake(w, "invalid_grant", "%s: %v", form.Get("grant_type"), err)
			return
		}
		s.give(w, grant{client, form.Get("scope"), ""})
	default:
		s.mistake(w, "unsupported_grant_type", "grant_type %q", form.Get("grant_type"))
	}
}

func (s *Site) byCode(w http.ResponseWriter, client string, form url.Values) {
	asked, known := s.codes[form.Get("code")]
	delete(s.codes, form.Get("code"))
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	switch {
	case !known:
		s.mistake(w, "invalid_grant", "unknown or used code")
	case asked.client != client:
		s.mistake(w, "invalid_grant", "code of another client")
	case asked.redirect != form.Get("redirect_uri"):
		s.mistake(w, "invalid_grant", "redirect_uri %q, was %q", form.Get("redirect_uri"), asked.redirect)
	case base64.RawURLEncoding.EncodeToString(sum[:]) != asked.challenge:
		s.mistake(w, "invalid_grant", "the verifier does not fit")
	default:
		s.give(w, grant{client, asked.scope, rand.Text()})
	}
}

// byRefresh accepts each refresh token once. The second use revokes all tokens of the
// login, because the token may be stolen.
func (s *Site) byRefresh(w http.ResponseWriter, client, token string) {
	had, known := s.refresh[token]
	delete(s.refresh, token)
	switch {
	case s.spent[token]:
		for _, tokens := range []map[string]grant{s.access, s.refresh} {
			for t := range tokens {
				delete(tokens, t)
			}
		}
		s.mistake(w, "invalid_grant", "a refresh token was used twice")
	case !known:
		s.refuse(w, "invalid_grant")
	case had.client != client:
		s.mistake(w, "invalid_grant", "refresh token of another client")
	default:
		s.spent[token] = true
		s.refreshes++
		s.give(w, had)
	}
}

// revoke ends a login by its refresh token (RFC 7009).
func (s *Site) revoke(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = r.ParseForm()
	had, known := s.refresh[r.PostForm.Get("token")]
	switch {
	case r.PostForm.Get("token_type_hint") != "refresh_token":
		s.mistake(w, "unsupported_token_type", "revoked a %q", r.PostForm.Get("token_type_hint"))
	case known && had.client != s.client(r):
		s.mistake(w, "invalid_client", "another client revokes a token")
	case known:
		delete(s.refresh, r.PostForm.Get("token"))
		for token, g := range s.access {
			if g.family == had.family {
				delete(s.access, token)
			}
		}
		s.revoked++
	}
}

func (s *Site) give(w http.ResponseWriter, g grant) {
	access := "access-" + rand.Text()
	s.access[access] = g
	said := map[string]any{"access_token": access, "token_type": "Bearer"}
	if g.family != "" {
		refresh := "refresh-" + rand.Text()
		s.refresh[refresh] = g
		said["refresh_token"] = refresh
	}
	if s.ExpiresIn > 0 {
		said["expires_in"] = s.ExpiresIn
	}
	if g.scope != "" {
		said["scope"] = g.scope
	}
	reply(w, said)
}

func (s *Site) device(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	code := rand.Text()
	s.devices[code] = false
	reply(w, map[string]any{
		"device_code": code, "user_code": "WDJB-MJHT", "verification_uri": s.Issuer.URL + "/activate", "expires_in": 600, "interval": 1,
	})
}

// guard serves requests with a valid token.
func (s *Site) guard(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	had, known := s.access[token]
	wanted := s.Scopes
	s.mu.Unlock()
	challenge := fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, s.Resource.URL)
	if len(wanted) > 0 {
		challenge += fmt.Sprintf(`, scope="%s"`, strings.Join(wanted, " "))
	}
	lacks := slices.ContainsFunc(wanted, func(scope string) bool { return !slices.Contains(strings.Fields(had.scope), scope) })
	switch {
	case !known:
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, "log in first", http.StatusUnauthorized)
	case lacks:
		w.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope"`)
		http.Error(w, "ask for more", http.StatusForbidden)
	default:
		s.Inner.ServeHTTP(w, r)
	}
}
