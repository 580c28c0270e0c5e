package jwt

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// algorithms are the asymmetric ones. With none, or with a shared key, anyone who can
// verify a token could make one.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// principal returns whom a valid token identifies. Subjects are unique only within their issuer, so
// the user has both. The expiry allows for clock skew too; otherwise a token could be accepted and
// then expire at once.
func (i Issuer) principal(good *oidc.IDToken) (principal.Principal, error) {
	var claims struct {
		Scope string          `json:"scope"`
		Scp   json.RawMessage `json:"scp"`
		Name  string          `json:"name"`
	}
	if good.Claims(&claims) != nil {
		return principal.Anonymous(), fault.New(fault.NeedsAuth, "the token's claims cannot be read")
	}
	if good.Subject == "" {
		return principal.Anonymous(), fault.New(fault.NeedsAuth, "the token has no subject")
	}
	user := i.URL + "#" + good.Subject
	return principal.Principal{
		ID: principal.TokenPrefix + user, Name: cmp.Or(claims.Name, good.Subject), User: user, Org: i.Org, Expires: good.Expiry.Add(leeway),
		Scopes: i.scopes(append(strings.Fields(claims.Scope), claimValues(claims.Scp)...)),
	}, nil
}

// checkKind refuses tokens of the issuer that are for another use: ID tokens, which tell a
// client who signed in, and every type but that of access tokens, such as an identity
// assertion grant (RFC 9068, RFC 8725 section 3.11).
func (i Issuer) checkKind(token string, good *oidc.IDToken) error {
	kind, err := typeOf(token)
	var claims map[string]json.RawMessage
	if err != nil || good.Claims(&claims) != nil {
		return fault.New(fault.NeedsAuth, "the token's claims cannot be read")
	}
	_, nonce := claims["nonce"]
	_, hash := claims["at_hash"]
	if nonce || hash || kind != "" && kind != "jwt" && kind != "at+jwt" {
		return fault.New(fault.NeedsAuth, "the token is not an access token").
			WithHint("get an access token from %s with the audience %s", i.URL, i.Audience)
	}
	return nil
}

// typeOf returns what kind of token the header of one says that it is.
func typeOf(token string) (string, error) {
	head, _, _ := strings.Cut(token, ".")
	var header struct {
		Type string `json:"typ"`
	}
	err := decode(head, &header)
	return strings.TrimPrefix(strings.ToLower(header.Type), "application/"), err
}

// decode reads a part of a token.
func decode(part string, v any) error {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

// checkTimes refuses what the library accepts: times that are not numbers (RFC 7519), and
// a token that was issued in the future.
func (i Issuer) checkTimes(token *oidc.IDToken) error {
	var times struct {
		Expires   *float64 `json:"exp"`
		NotBefore *float64 `json:"nbf"`
		Issued    *float64 `json:"iat"`
	}
	what := ""
	switch {
	case token.Claims(&times) != nil || times.Expires == nil:
		what = "has a time that is not a number"
	case times.Issued != nil && token.IssuedAt.After(time.Now().Add(ahead)):
		what = "was issued in the future"
	default:
		return nil
	}
	return fault.New(fault.NeedsAuth, "the token %s", what).WithHint("get a new token from %s, and check the clocks of both machines", i.URL)
}

// refusal returns why a token is not valid, without anything of the token.
func (i Issuer) refusal(err error) error {
	what := "is not good"
	if expired := (*oidc.TokenExpiredError)(nil); errors.As(err, &expired) {
		what = "has expired"
	}
	return fault.New(fault.NeedsAuth, "the token %s", what).
		WithHint("get a new token from %s with the audience %s", i.URL, i.Audience)
}

// issuerOf returns the issuer that a token claims. The claim is not verified yet.
func (s *Server) issuerOf(token string) (Issuer, bool) {
	claimed := IssuerOf(token)
	at := slices.IndexFunc(s.issuers, func(i Issuer) bool { return i.URL == claimed })
	if at < 0 {
		return Issuer{}, false
	}
	return s.issuers[at], true
}

// names lists all issuers for messages.
func (s *Server) names() string {
	var all []string
	for _, i := range s.issuers {
		all = append(all, i.URL)
	}
	return strings.Join(all, " or ")
}

// scopes returns the scopes that the values of a token's scope grant.
func (i Issuer) scopes(words []string) (scopes []principal.Scope) {
	for _, word := range words {
		for _, s := range i.grants(word) {
			if !slices.Contains(scopes, s) {
				scopes = append(scopes, s)
			}
		}
	}
	return scopes
}

// grants returns the scopes that one value grants.
func (i Issuer) grants(word string) []principal.Scope {
	if i.Scopes == nil && slices.Contains(principal.DefaultScopes, principal.Scope(word)) {
		return []principal.Scope{principal.Scope(word)}
	}
	return i.Scopes[word]
}

// claimValues parses a claim that is a list of strings, or one string of several
// separated by spaces.
func claimValues(raw json.RawMessage) (list []string) {
	var text string
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	_ = json.Unmarshal(raw, &text) // any other type grants nothing
	return strings.Fields(text)
}

// now returns the time for checking tokens. It is behind by the leeway, because the
// issuer's clock may be.
func now() time.Time { return time.Now().Add(-leeway) }
