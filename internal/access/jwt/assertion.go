package jwt

import (
	"context"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// assertionType is the type of an identity assertion grant (ID-JAG): a provider's word to
// another authorization server that a client may act there for a person.
const assertionType = "oauth-id-jag+jwt"

// Assertion is an identity assertion grant that was verified.
type Assertion struct {
	Claims
	Client    string   // that may use it
	Resources []string // that it is for; empty: any of the audience
	Scopes    []string
	ID        string // unique at the provider
	Expires   time.Time
}

// VerifyAssertion returns an identity assertion grant of the provider for an authorization
// server, and nothing else: other tokens of the provider are for other uses.
func (p *Provider) VerifyAssertion(ctx context.Context, raw, audience string) (Assertion, error) {
	known, err := p.load(ctx)
	if err != nil {
		return Assertion{}, err
	}
	claims, token, err := p.verify(ctx, known.verifier(audience), raw)
	if err != nil {
		return Assertion{}, err
	}
	a := Assertion{
		Claims: claims, Client: claims.Text("client_id"), Resources: claims.Words("resource"), Scopes: claims.Words("scope"),
		ID: claims.Text("jti"), Expires: token.Expiry,
	}
	kind, err := typeOf(raw)
	switch {
	case err != nil || kind != assertionType:
		return a, p.refusal("is not an identity assertion grant")
	case len(token.Audience) != 1:
		return a, p.refusal("is for several servers")
	case token.Subject == "" || a.Client == "" || a.ID == "":
		return a, p.refusal("has no subject, client or id")
	case claims["cnf"] != nil || claims["authorization_details"] != nil:
		return a, p.refusal("has conditions that are not supported here")
	case claims["resource"] != nil && len(a.Resources) == 0 || claims["scope"] != nil && claims.Text("scope") == "":
		return a, p.refusal("has a resource or scope that cannot be read")
	}
	return a, p.checkTimes(token)
}

// checkTimes refuses what the library accepts: a token that does not say when it was issued,
// or in the future, and times that are not numbers.
func (p *Provider) checkTimes(token *oidc.IDToken) error {
	if token.IssuedAt.Unix() <= 0 || token.IssuedAt.After(time.Now().Add(ahead)) {
		return p.refusal("does not say when it was issued")
	}
	if err := (Issuer{URL: p.issuer}).checkTimes(token); err != nil {
		return p.refusal("has a time that is not a number")
	}
	return nil
}

// IssuerOf returns the issuer that a token claims, which is not verified; empty if it
// cannot be read.
func IssuerOf(token string) string {
	var claims struct {
		Issuer string `json:"iss"`
	}
	decodeClaims(token, &claims)
	return claims.Issuer
}

// ExpiryOf returns when a token that was verified before expires; zero if it cannot be
// read.
func ExpiryOf(token string) time.Time {
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if decodeClaims(token, &claims); claims.Expires <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expires), 0)
}

// decodeClaims reads the claims of a token; a token that cannot be read has none.
func decodeClaims(token string, claims any) {
	if parts := strings.Split(token, "."); len(parts) == 3 {
		_ = decode(parts[1], claims)
	}
}
