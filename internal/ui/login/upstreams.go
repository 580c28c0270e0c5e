package login

import (
	"context"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/exchange"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
)

// Upstreams logs in to upstreams. It implements upstream.Login.
type Upstreams struct {
	*oauth.Logins
	options  oauth.Options
	exchange *exchange.Exchanger
}

// OpenUpstreams opens the stored logins of a database.
func OpenUpstreams(ctx context.Context, store *db.DB, options oauth.Options) (*Upstreams, error) {
	logins, err := oauth.Open(ctx, store, options)
	if err != nil {
		return nil, err
	}
	u := &Upstreams{Logins: logins, options: options}
	u.WithExchange(exchange.Options{})
	return u, nil
}

// WithExchange sets how tokens of people's sign-ins are exchanged for those of upstreams.
func (u *Upstreams) WithExchange(o exchange.Options) {
	o.Logins = u.Logins
	u.exchange = exchange.New(o)
}

// exchanged reports whether tokens for a spec are exchanged for those of its owner. The
// connection that all share, which lists the tools, has a login like others.
func exchanged(spec upstream.Spec) bool {
	return spec.Owner != "" && (spec.Login == upstream.LoginExchange || spec.Login == upstream.LoginIDJAG)
}

func exchangeServer(spec upstream.Spec) exchange.Server {
	s := exchange.Server{Server: oauthServer(spec), Method: spec.Login, Audience: spec.OAuth.Audience, Subject: spec.OAuth.Subject}
	s.Person, s.Org, _ = principal.SplitPersonID(spec.Owner)
	return s
}

func oauthServer(spec upstream.Spec) oauth.Server {
	o := spec.OAuth
	return oauth.Server{Name: spec.Name, Owner: spec.Owner, Org: spec.Person.Org, URL: spec.URL, Trusted: spec.Trusted, CAFile: spec.CAFile, Settings: oauth.Settings{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, ClientKey: o.ClientKey, Scopes: o.Scopes, Issuer: o.Issuer, Grant: o.Grant,
		TokenURL: o.TokenURL,
	}}
}

// Token implements upstream.Login.
func (u *Upstreams) Token(ctx context.Context, spec upstream.Spec) (string, error) {
	if exchanged(spec) {
		return u.exchange.Token(ctx, exchangeServer(spec))
	}
	return u.Logins.Token(ctx, oauthServer(spec))
}

// Refused implements upstream.Login.
func (u *Upstreams) Refused(ctx context.Context, spec upstream.Spec, status int, challenge, token string) (string, error) {
	refusal := oauth.Refusal{Status: status, Challenge: oauth.ParseChallenge(challenge), Token: token}
	if exchanged(spec) {
		return u.exchange.Refused(ctx, exchangeServer(spec), refusal)
	}
	return u.Logins.Refused(ctx, oauthServer(spec), refusal)
}

// Start starts a login. For a login with a device code it also returns the function
// that waits until the person has agreed.
func (u *Upstreams) Start(ctx context.Context, spec upstream.Spec, device bool, back oauth.Return) (oauth.Begun, func(context.Context) error, error) {
	if spec.OAuth.Grant == oauth.GrantCredentials {
		return oauth.Begun{}, nil, fault.New(fault.Conflict, "upstream %s logs in by itself, with client credentials", spec.Name)
	}
	addresses := spec.Addresses()
	if len(addresses) == 0 {
		return oauth.Begun{}, nil, fault.New(fault.InvalidParams, "upstream %s is not reached over HTTP, so it has no login", spec.Name).
			WithHint("give a program its credentials in env")
	}
	server, err := u.Locate(ctx, oauthServer(spec), addresses)
	if err != nil {
		return oauth.Begun{}, nil, err
	}
	if device || spec.OAuth.Grant == oauth.GrantDevice {
		return u.Device(ctx, server)
	}
	begun, err := u.Begin(ctx, server, back)
	return begun, nil, err
}

// StatusOf returns the login to an upstream at the first of its addresses that has one.
func (u *Upstreams) StatusOf(ctx context.Context, spec upstream.Spec) (oauth.Status, error) {
	best := oauth.Status{State: oauth.StateNone}
	for _, address := range spec.Addresses() {
		spec.URL = address
		st, err := u.Status(ctx, oauthServer(spec))
		if err != nil || st.LoggedIn {
			return st, err
		}
		if best.State == oauth.StateNone {
			best = st
		}
	}
	return best, nil
}

var _ upstream.Login = (*Upstreams)(nil)
