package jwt

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// algorithms are those with a public and a private key. With none, or with one
// shared key, anybody who can check a token could make one.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// verify is what a good token says. Nothing of one that is not is repeated in errors.
func (s *Server) verify(ctx context.Context, token string) (*auth.TokenInfo, error) {
	issuer, ok := s.issuerOf(token)
	if !ok {
		return nil, fault.New(fault.NeedsAuth, "the token is of nobody we know").WithHint("take one of %s", s.names())
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	check, err := s.check(ctx, issuer)
	if err != nil {
		return nil, err
	}
	var away error
	good, err := check.Verify(context.WithValue(ctx, missing{}, &away), token)
	switch {
	case away != nil:
		return nil, away
	case err != nil:
		return nil, issuer.refusal(err)
	}
	var claims struct {
		Scope string          `json:"scope"`
		Scp   json.RawMessage `json:"scp"`
		Name  string          `json:"name"`
	}
	if good.Claims(&claims) != nil {
		return nil, fault.New(fault.NeedsAuth, "the token's claims cannot be read")
	}
	if good.Subject == "" {
		return nil, fault.New(fault.NeedsAuth, "the token says of nobody whose it is")
	}
	return &auth.TokenInfo{
		UserID: "oauth:" + issuer.URL + "#" + good.Subject, Expiration: good.Expiry,
		Scopes: issuer.scopes(append(strings.Fields(claims.Scope), words(claims.Scp)...)),
		Extra:  map[string]any{aboutName: cmp.Or(claims.Name, good.Subject), aboutUser: good.Subject, aboutOrg: issuer.Org},
	}, nil
}

// refusal says why a token is not good, in words that have nothing of the token.
func (i Issuer) refusal(err error) error {
	what := "is not good"
	if expired := (*oidc.TokenExpiredError)(nil); errors.As(err, &expired) {
		what = "has expired"
	}
	return fault.New(fault.NeedsAuth, "the token %s", what).
		WithHint("take a new one of %s, made for %s", i.URL, i.Audience)
}

// issuerOf finds the issuer that a token claims to be of; that it is will be seen.
func (s *Server) issuerOf(token string) (Issuer, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Issuer{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return Issuer{}, false
	}
	at := slices.IndexFunc(s.issuers, func(i Issuer) bool { return i.URL == claims.Issuer })
	if at < 0 {
		return Issuer{}, false
	}
	return s.issuers[at], true
}

// names are those of all issuers, for people.
func (s *Server) names() string {
	var all []string
	for _, i := range s.issuers {
		all = append(all, i.URL)
	}
	return strings.Join(all, " or ")
}

// scopes are what the words of a token open.
func (i Issuer) scopes(words []string) (scopes []string) {
	for _, word := range words {
		for _, s := range i.opens(word) {
			if !slices.Contains(scopes, string(s)) {
				scopes = append(scopes, string(s))
			}
		}
	}
	return scopes
}

// opens is what one word does.
func (i Issuer) opens(word string) []principal.Scope {
	if i.Scopes == nil && slices.Contains(principal.DefaultScopes, principal.Scope(word)) {
		return []principal.Scope{principal.Scope(word)}
	}
	return i.Scopes[word]
}

// words reads a claim that is a list of words, or one text of them.
func words(raw json.RawMessage) (list []string) {
	var text string
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	_ = json.Unmarshal(raw, &text) // what is neither opens nothing
	return strings.Fields(text)
}

// now is the time at which tokens are looked at: what has just expired by our clock may
// not have by the issuer's.
func now() time.Time { return time.Now().Add(-leeway) }
