package oauth

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Place is which authorization server gives tokens for a server, and for what.
type Place struct {
	Issuer   string
	Resource string
	Scopes   []string
}

// Granted is a token that is not stored.
type Granted struct {
	Token   string
	Scopes  []string
	Expires time.Time // zero: unknown
}

// Grant gets a token of the server's authorization server for a grant that somebody else
// gave, with the configured client. ask returns the form with that grant. The error is
// fault.NeedsAuth if the person must sign in again, and fault.Denied if the authorization
// server does not take the grant.
func (l *Logins) Grant(ctx context.Context, s Server, c Challenge, ask func(context.Context, Place) (url.Values, error)) (Granted, error) {
	f, err := l.fetcher(s)
	if err != nil {
		return Granted{}, err
	}
	where, at, challenge, err := f.tokenEndpoint(ctx, s, challenged(c))
	if err != nil {
		return Granted{}, err
	}
	scopes := s.Settings.Scopes
	if len(scopes) == 0 {
		if scopes = challenge.Scopes; len(scopes) == 0 {
			scopes = where.scopes
		}
	}
	scopes = slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool { return scope == offline }) // nothing is renewed
	form, err := ask(ctx, Place{at.Issuer, where.resource, scopes})
	if err != nil {
		return Granted{}, err
	}
	got, err := l.grant(ctx, f, s, at, configured(s.Settings, at), form)
	var no *refused
	if errors.As(err, &no) {
		return Granted{}, fault.Wrap(grantCode(no), err, "log in to %s", s.Name).
			WithHint("check upstreams.%s.oauth in luanette.toml, and that %s trusts your identity provider", s.Name, at.Issuer)
	}
	if len(got.Scopes) == 0 {
		got.Scopes = scopes
	}
	return Granted{got.Access, got.Scopes, got.Expires}, err
}

// grantCode is the code of a refused grant: whether the person can do something about it.
func grantCode(no *refused) fault.Code {
	if no.code == "insufficient_user_authentication" {
		return fault.NeedsAuth
	}
	return fault.Denied
}

// challenged is a challenge if there was one.
func challenged(c Challenge) *Challenge {
	if c.Metadata == "" && len(c.Scopes) == 0 && c.Error == "" {
		return nil
	}
	return &c
}
