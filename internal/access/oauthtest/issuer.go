package oauthtest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Issuer is an authorization server that issues JSON Web Tokens, with the endpoints
// that a resource server needs.
type Issuer struct {
	URL         string
	Failing     atomic.Bool  // every response is an error
	KeyRequests atomic.Int32 // how often its keys were requested
	key         *rsa.PrivateKey
	more        Claims // of its metadata
}

// NewIssuer starts an issuer that is closed with the test.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	m := &Issuer{key: newKey(t)}
	server := httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(server.Close)
	m.URL = server.URL
	return m
}

// free are keys of issuers that are closed: making one takes a quarter of a second.
var free struct {
	mu   sync.Mutex
	keys []*rsa.PrivateKey
}

// newKey returns a key that no other issuer has while the test runs.
func newKey(t testing.TB) (key *rsa.PrivateKey) {
	t.Helper()
	t.Cleanup(func() {
		free.mu.Lock()
		defer free.mu.Unlock()
		free.keys = append(free.keys, key)
	})
	free.mu.Lock()
	defer free.mu.Unlock()
	if last := len(free.keys) - 1; last >= 0 {
		key, free.keys = free.keys[last], free.keys[:last]
		return key
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Keys returns the address of its public keys.
func (m *Issuer) Keys() string { return m.URL + "/keys" }

func (m *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	var said any
	switch {
	case m.Failing.Load():
		http.Error(w, "the issuer fails", http.StatusInternalServerError)
		return
	case r.URL.Path == "/.well-known/openid-configuration":
		metadata := Claims{"issuer": m.URL, "jwks_uri": m.Keys(), "id_token_signing_alg_values_supported": []string{"RS256"}}
		maps.Copy(metadata, m.more)
		said = metadata
	case r.URL.Path == "/keys":
		m.KeyRequests.Add(1)
		said = map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": base64.RawURLEncoding.EncodeToString(m.key.N.Bytes()),
			"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(m.key.E)).Bytes()),
		}}}
	default:
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(said) // the client may have disconnected
}

// Claims are the claims of a token.
type Claims map[string]any

// Token returns a token for the audience, with the subject ada and the scope mcp,
// valid for an hour; claims override or extend that.
func (m *Issuer) Token(t testing.TB, audience string, claims Claims) string {
	t.Helper()
	return m.Signed(t, Claims{"alg": "RS256", "kid": "1", "typ": "JWT"}, m.claims(audience, claims))
}

// Forged returns a token that the issuer did not sign, with the algorithm none or
// HS256. Only its public key is needed to make one.
func (m *Issuer) Forged(t testing.TB, algorithm, audience string, claims Claims) string {
	t.Helper()
	return m.Signed(t, Claims{"alg": algorithm, "kid": "1"}, m.claims(audience, claims))
}

func (m *Issuer) claims(audience string, claims Claims) Claims {
	all := Claims{"iss": m.URL, "aud": audience, "sub": "ada", "scope": "mcp", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	return all
}

// Signed returns a token with the given header, signed with the algorithm of the
// header.
func (m *Issuer) Signed(t testing.TB, header, claims Claims) string {
	t.Helper()
	text := part(t, header) + "." + part(t, claims)
	digest := sha256.Sum256([]byte(text))
	var signature []byte
	switch header["alg"] {
	case "RS256":
		var err error
		if signature, err = rsa.SignPKCS1v15(rand.Reader, m.key, crypto.SHA256, digest[:]); err != nil {
			t.Fatal(err)
		}
	case "HS256": // signed with the public key as the shared secret, a common attack
		public, err := x509.MarshalPKIXPublicKey(&m.key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
		mac.Write([]byte(text))
		signature = mac.Sum(nil)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func part(t testing.TB, claims Claims) string {
	t.Helper()
	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}
