package oauthtest

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"
)

// The grants and token types of token exchange (RFC 8693) and ID-JAG.
const (
	grantExchange  = "urn:ietf:params:oauth:grant-type:token-exchange"
	grantAssertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"

	typeAccess  = "urn:ietf:params:oauth:token-type:access_token"
	typeID      = "urn:ietf:params:oauth:token-type:id_token"
	typeRefresh = "urn:ietf:params:oauth:token-type:refresh_token"
	typeIDJAG   = "urn:ietf:params:oauth:token-type:id-jag"
)

// Exchanges returns the forms of all token exchanges.
func (p *Provider) Exchanges() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// exchange exchanges a token of the person for one that is for another server. It is
// called with the lock held.
func (p *Provider) exchange(w http.ResponseWriter, r *http.Request) {
	form := r.PostForm
	p.asked = append(p.asked, form)
	subject, kind := form.Get("subject_token"), form.Get("subject_token_type")
	if form.Get("grant_type") == grantAssertion && form.Get("requested_token_use") == "on_behalf_of" {
		subject, kind = form.Get("assertion"), typeAccess
	}
	_, live := p.refresh[subject]
	switch {
	case p.issued[subject] != kind || kind == "" || kind == typeRefresh && !live:
		http.Error(w, `{"error":"invalid_request","error_description":"the subject token is not good"}`, http.StatusBadRequest)
		return
	case p.StepUp:
		http.Error(w, `{"error":"insufficient_user_authentication"}`, http.StatusBadRequest)
		return
	}
	answer := map[string]any{"access_token": "exchanged-" + rand.Text(), "issued_token_type": typeAccess, "token_type": "Bearer", "expires_in": p.Seconds}
	if form.Get("requested_token_type") == typeIDJAG {
		about := Claims{"client_id": ClientID}
		for _, name := range []string{"resource", "scope"} {
			if form.Get(name) != "" {
				about[name] = form.Get(name)
			}
		}
		answer["access_token"], answer["token_type"], answer["issued_token_type"] = p.Assertion(p.t, form.Get("audience"), about), "N_A", typeIDJAG
	}
	_ = json.NewEncoder(w).Encode(answer) // the client may have disconnected
}

// Assertion returns an identity assertion grant (ID-JAG) about the person for an
// authorization server and the client ClientID; claims override or extend that.
func (p *Provider) Assertion(t testing.TB, audience string, claims Claims) string {
	t.Helper()
	all := Claims{
		"iss": p.URL, "aud": audience, "sub": p.Person["sub"], "client_id": ClientID, "jti": rand.Text(),
		"iat": time.Now().Unix(), "exp": time.Now().Add(5 * time.Minute).Unix(),
	}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	return p.Signed(t, Claims{"alg": "RS256", "kid": "1", "typ": "oauth-id-jag+jwt"}, all)
}
