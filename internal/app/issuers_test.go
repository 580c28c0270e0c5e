package app

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A token of an issuer in the configuration opens what its scope says, and is never
// passed upstream; without one a client is told where to get it.
func TestTokensOfAnIssuer(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	part := func(v any) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "kid": "1", "n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
		}}})
	}))
	t.Cleanup(issuer.Close)
	token := func(audience string) string {
		text := part(map[string]string{"alg": "RS256", "kid": "1"}) + "." + part(map[string]any{
			"iss": issuer.URL, "aud": audience, "sub": "ada", "scope": "mcp", "exp": time.Now().Add(time.Hour).Unix(),
		})
		digest := sha256.Sum256([]byte(text))
		signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		return text + "." + base64.RawURLEncoding.EncodeToString(signature)
	}
	var mu sync.Mutex
	var sent []string
	upstream := stranger(t, func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.Header.Get("Authorization"))
	})
	config := write(t, `
[mcp]
mode = "direct"
[upstreams.one]
url = "`+upstream+`"
expose = "all"
[issuers.corp]
issuer = "`+issuer.URL+`"
audience = "https://hub.example/mcp"
jwks = "`+issuer.URL+`/keys"
`)
	url, house := start(t, Sources{File: config})
	house.upstreams.allTried(t.Context(), patience)
	house.catalog.Refresh(t.Context())

	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if challenge := answer.Header.Get("WWW-Authenticate"); answer.StatusCode != 401 || challenge != `Bearer resource_metadata="`+url+`/.well-known/oauth-protected-resource"` {
		t.Errorf("%d %s", answer.StatusCode, challenge)
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		if status, body := get(t, url+path, nil); status != 200 || !strings.Contains(string(body), `"authorization_servers":["`+issuer.URL+`"]`) || !strings.Contains(string(body), `"resource":"https://hub.example/mcp"`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	good := token("https://hub.example/mcp")
	if text := (keyholder{t, url, good}).call("one__echo", `{"text":"hello"}`); !strings.Contains(text, "hello") {
		t.Errorf("a good token: %s", text)
	}
	if status, _ := (keyholder{t, url, token("https://elsewhere.example")}).rpc("/mcp", "tools/list", ""); status != 401 {
		t.Errorf("a token for somebody else: %d", status)
	}
	if status, _ := get(t, url+"/api/v1/traces", http.Header{"Authorization": {"Bearer " + good}}); status != 403 {
		t.Errorf("more than its scope: %d", status)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(sent) == 0 {
		t.Error("nothing reached the upstream")
	}
	for _, header := range sent {
		if header != "" {
			t.Errorf("the upstream was shown %q", header)
		}
	}
}
