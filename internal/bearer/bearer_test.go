package bearer_test

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access"
	"github.com/luanette/luanette/internal/bearer"
	"github.com/luanette/luanette/internal/fault"
)

// maker is an authorization server, as far as it concerns us.
type maker struct {
	key *rsa.PrivateKey
	url string
}

func newMaker(t *testing.T) *maker {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	m := &maker{key: key}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": m.url, "jwks_uri": m.url + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
		case "/keys":
			e := base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())
			n := base64.RawURLEncoding.EncodeToString(key.N.Bytes())
			_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": n, "e": e}}})
		default:
			http.NotFound(w, r)
		}
	}))
	m.url = server.URL
	t.Cleanup(server.Close)
	return m
}

func part(v any) string {
	raw, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// token makes one, signed as alg says.
func (m *maker) token(t *testing.T, alg string, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": m.url, "aud": "https://hub.example/mcp", "sub": "ada", "scope": "mcp openid", "exp": time.Now().Add(time.Hour).Unix()}
	for k, v := range claims {
		all[k] = v
	}
	text := part(map[string]string{"alg": alg, "kid": "1", "typ": "JWT"}) + "." + part(all)
	digest := sha256.Sum256([]byte(text))
	var signature []byte
	switch alg {
	case "RS256":
		var err error
		if signature, err = rsa.SignPKCS1v15(rand.Reader, m.key, crypto.SHA256, digest[:]); err != nil {
			t.Fatal(err)
		}
	case "HS256": // with the public key as the shared one, the classic mistake
		mac := hmac.New(sha256.New, m.key.N.Bytes())
		mac.Write([]byte(text))
		signature = mac.Sum(nil)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	m, other := newMaker(t), newMaker(t)
	issuer := bearer.Issuer{URL: m.url, Audience: "https://hub.example/mcp"}
	v := bearer.New([]bearer.Issuer{issuer}, http.DefaultClient)
	p, err := v.Principal(t.Context(), m.token(t, "RS256", nil))
	if err != nil || p.ID != "oauth:"+m.url+"#ada" || p.User != "ada" || !p.May(access.MCP, "") || p.May(access.Read, "") || p.Expires.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := v.Principal(t.Context(), m.token(t, "RS256", map[string]any{"scope": "admin", "scp": []string{"read"}})); err != nil || p.Admin() || !p.May(access.Read, "") {
		t.Errorf("a word makes an administrator: %+v, %v", p, err)
	}
	good := m.token(t, "RS256", nil)
	for name, token := range map[string]string{
		"another audience":  m.token(t, "RS256", map[string]any{"aud": "https://elsewhere.example"}),
		"expired":           m.token(t, "RS256", map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}),
		"not yet":           m.token(t, "RS256", map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
		"no signature":      m.token(t, "none", nil),
		"a shared key":      m.token(t, "HS256", nil),
		"an unknown issuer": other.token(t, "RS256", nil),
		"another's key":     other.token(t, "RS256", map[string]any{"iss": m.url}),
		"nobody":            m.token(t, "RS256", map[string]any{"sub": ""}),
		"changed":           good[:len(good)-8] + "AAAAAAAA",
		"no token":          "a.b.c",
		"not even that":     "",
	} {
		if p, err := v.Principal(t.Context(), token); fault.CodeOf(err) != fault.Denied || p.ID != "nobody" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	issuer.Scopes, issuer.Keys = map[string][]access.Scope{"hub:all": {access.MCP, access.Admin}}, m.url+"/keys"
	v = bearer.New([]bearer.Issuer{issuer}, http.DefaultClient)
	if p, err := v.Principal(t.Context(), m.token(t, "RS256", map[string]any{"scope": "hub:all"})); err != nil || !p.Admin() {
		t.Errorf("a word that is mapped: %+v, %v", p, err)
	}
	if p, err := v.Principal(t.Context(), m.token(t, "RS256", nil)); err != nil || p.May(access.MCP, "") {
		t.Errorf("a word that is not: %+v, %v", p, err)
	}
}

func TestIssuerAway(t *testing.T) {
	t.Parallel()
	m := newMaker(t)
	v := bearer.New([]bearer.Issuer{{URL: "http://127.0.0.1:1", Audience: "a"}}, http.DefaultClient)
	if _, err := v.Principal(t.Context(), m.token(t, "RS256", map[string]any{"iss": "http://127.0.0.1:1"})); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}

// An issuer that does not answer holds up nobody but those with its tokens, who wait
// no longer than they want, and is asked once for all of them.
func TestSlowIssuer(t *testing.T) {
	t.Parallel()
	m := newMaker(t)
	var questions atomic.Int32
	answer := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		questions.Add(1)
		<-answer
		http.NotFound(w, r)
	}))
	t.Cleanup(slow.Close)
	v := bearer.New([]bearer.Issuer{{URL: m.url, Audience: "https://hub.example/mcp"}, {URL: slow.URL, Audience: "https://hub.example/mcp"}}, http.DefaultClient)
	token := m.token(t, "RS256", map[string]any{"iss": slow.URL})
	impatient, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 5 {
		waiting.Go(func() {
			if _, err := v.Principal(impatient, token); fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("while its issuer is silent: %v", err)
			}
		})
	}
	if _, err := v.Principal(t.Context(), m.token(t, "RS256", nil)); err != nil {
		t.Errorf("a token of another issuer: %v", err)
	}
	cancel()
	waiting.Wait()
	close(answer)
	if n := questions.Load(); n > 1 {
		t.Errorf("the issuer was asked %d times at once", n)
	}
}
