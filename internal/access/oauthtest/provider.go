package oauthtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// ClientID and ClientSecret are those of the client of a Provider.
const (
	ClientID     = "hub"
	ClientSecret = "a secret of the hub"
)

// Provider is an OpenID provider at which one person is signed in, who consents to
// everything. Its fields may be changed with Change.
type Provider struct {
	*Issuer
	Person   Claims // of the ID token: sub, email, groups
	Extra    Claims // changes the claims of ID tokens, for attacks
	Redirect func(url.Values)
	Answer   func(claims Claims) string // makes the ID token; nil: a valid one
	Gone     bool                       // refresh tokens are refused
	StepUp   bool                       // whoever is exchanged must sign in again
	NoID     bool                       // refresh tokens get no ID token
	Seconds  int                        // how long tokens last

	t        testing.TB
	mu       sync.Mutex
	codes    map[string]url.Values
	refresh  map[string]Claims
	issued   map[string]string // the types of subject tokens
	asked    []url.Values      // exchanges
	requests int               // to the token endpoint
}

// NewProvider starts a provider that is closed with the test.
func NewProvider(t testing.TB, person Claims) *Provider {
	t.Helper()
	p := &Provider{Issuer: &Issuer{key: newKey(t)}, Person: person, t: t, codes: map[string]url.Values{}, refresh: map[string]Claims{}, issued: map[string]string{}, Seconds: 3600}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = server.URL
	p.more = Claims{
		"authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "userinfo_endpoint": p.URL + "/me",
		"end_session_endpoint": p.URL + "/end", "authorization_response_iss_parameter_supported": true,
	}
	return p
}

// Change changes fields.
func (p *Provider) Change(f func()) { p.mu.Lock(); defer p.mu.Unlock(); f() }

// Requests returns how many requests the token endpoint got.
func (p *Provider) Requests() int { p.mu.Lock(); defer p.mu.Unlock(); return p.requests }

// ServeHTTP serves the endpoints.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.URL.Path {
	case "/authorize":
		p.authorize(w, r)
	case "/token":
		p.requests++
		p.token(w, r)
	case "/me":
		_ = json.NewEncoder(w).Encode(p.Person) // the client may have disconnected
	case "/end":
		_, _ = w.Write([]byte("signed out at the provider"))
	default:
		p.serve(w, r)
	}
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("nonce") == "" || q.Get("code_challenge_method") != "S256" || !strings.HasSuffix(q.Get("redirect_uri"), "/signin/callback") {
		http.Error(w, "not a request of the hub", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
	if p.Redirect != nil {
		p.Redirect(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	secret, _ = url.QueryUnescape(secret)
	if id != ClientID || secret != ClientSecret {
		http.Error(w, `{"error":"invalid_client"}`, http.StatusUnauthorized)
		return
	}
	nonce := ""
	switch r.PostFormValue("grant_type") {
	case grantExchange, grantAssertion:
		p.exchange(w, r)
		return
	case "authorization_code":
		asked, ok := p.codes[r.PostFormValue("code")]
		delete(p.codes, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != asked.Get("code_challenge") || r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") {
			http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
		nonce = asked.Get("nonce")
	default:
		_, ok := p.refresh[r.PostFormValue("refresh_token")]
		delete(p.refresh, r.PostFormValue("refresh_token"))
		if !ok || p.Gone {
			http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
	}
	refresh, access := rand.Text(), rand.Text()
	p.refresh[refresh] = p.Person
	p.issued[refresh], p.issued[access] = typeRefresh, typeAccess
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": p.Seconds, "refresh_token": refresh}
	if nonce != "" || !p.NoID {
		id := p.idToken(nonce)
		answer["id_token"], p.issued[id] = id, typeID
	}
	_ = json.NewEncoder(w).Encode(answer) // the client may have disconnected
}

func (p *Provider) idToken(nonce string) string {
	claims := Claims{"iss": p.URL, "aud": ClientID, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "jti": rand.Text(), "sid": "session of " + p.Person["sub"].(string)}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	maps.Copy(claims, p.Person)
	maps.Copy(claims, p.Extra)
	if p.Answer != nil {
		return p.Answer(claims)
	}
	return p.Signed(p.t, Claims{"alg": "RS256", "kid": "1", "typ": "JWT"}, claims)
}
