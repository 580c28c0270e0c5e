package signin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"

	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

// ClientSecrets are the secrets of a provider's clients that may bring its identity
// assertion grants here, by client id.
type ClientSecrets map[string]func() (secret.Text, error)

// Client is how a client proves who it is.
type Client struct{ ID, Secret string }

// ErrClient is the refusal of a client that does not prove who it is.
var ErrClient = errors.New("the client is not known, or its secret is wrong")

// Assertion is an identity assertion grant (ID-JAG), and the person whom it is about.
type Assertion struct {
	jwt.Assertion
	Issuer string
	Person string
	Org    string
}

// AcceptsAssertions reports whether a provider may let clients act here for its people.
func (s *Service) AcceptsAssertions() bool {
	return slices.ContainsFunc(s.options.Providers, func(p Provider) bool { return len(p.Clients) > 0 })
}

// Assertion verifies a grant that a client brings, and returns whom it is about. Somebody
// who never signed in becomes a person by the same rules as with a sign-in. The error is
// ErrClient, or fault.Denied for everything that is wrong with the grant.
func (s *Service) Assertion(ctx context.Context, raw, audience string, c Client) (Assertion, error) {
	trusted, err := s.providersOf(c)
	if err != nil {
		return Assertion{}, err
	}
	issuer := jwt.IssuerOf(raw)
	at := slices.IndexFunc(trusted, func(p *provider) bool { return p.Issuer == issuer })
	if at < 0 {
		return Assertion{}, fault.New(fault.Denied, "the issuer is not trusted with clients like this one")
	}
	p := trusted[at]
	verified, err := p.remote.VerifyAssertion(ctx, raw, audience)
	if err != nil {
		return Assertion{}, err
	}
	if verified.Client != c.ID {
		return Assertion{}, fault.New(fault.Denied, "the grant is for another client")
	}
	person, err := s.personOf(ctx, p, verified.Claims)
	org, _ := p.orgOf(person)
	return Assertion{verified, p.Issuer, person.ID, org}, err
}

// orgOf returns the organisation in which a person acts by the provider's word: its own, or
// the first that it put them in.
func (p *provider) orgOf(person people.Person) (string, bool) {
	var orgs []string
	for _, m := range person.Memberships {
		if m.Source == p.Name {
			orgs = append(orgs, m.Org)
		}
	}
	if slices.Contains(orgs, p.Org) || len(orgs) == 0 {
		return p.Org, len(orgs) > 0
	}
	return orgs[0], true
}

// providersOf returns the providers whose grants a client may bring, if it proves who it is.
func (s *Service) providersOf(c Client) (list []*provider, err error) {
	for _, configured := range s.options.Providers {
		find, known := configured.Clients[c.ID]
		if !known {
			continue
		}
		want, err := find()
		if err != nil {
			return nil, err
		}
		if sameSecret(want.Reveal(), c.Secret) {
			list = append(list, s.providers[configured.Name])
		}
	}
	if len(list) == 0 {
		return nil, ErrClient
	}
	return list, nil
}

// sameSecret compares secrets in a time that tells nothing about them.
func sameSecret(want, got string) bool {
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(got))
	return want != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// personOf returns the person of a grant. A grant tells less about somebody than a sign-in,
// so that whoever has a role keeps it.
func (s *Service) personOf(ctx context.Context, p *provider, claims jwt.Claims) (people.Person, error) {
	identity := people.Identity{Issuer: p.Issuer, Tenant: cmp.Or(claims.Text("tenant"), claims.Text("tid")), Subject: claims.Text("sub")}
	known, err := s.options.People.Find(ctx, identity)
	if err != nil {
		return known, err
	}
	if _, member := p.orgOf(known); member && known.Blocked.IsZero() {
		return known, nil
	}
	arrival, err := p.arrival(claims, nil)
	if err != nil {
		return known, err
	}
	arrival.Identity = identity
	return s.options.People.SignIn(ctx, arrival)
}
