package oauth

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// How tokens are renewed.
const (
	ahead     = time.Minute            // renew this long before the token expires
	claimTime = time.Minute            // how long one node has to renew; longer than a request takes and than clocks differ
	lookEvery = 100 * time.Millisecond // how often to check whether another node has renewed

	firstPause = 5 * time.Second // after a renewal that failed, for all nodes; doubles
	maxPause   = 5 * time.Minute
)

// Token returns the token for requests to the server, or "" without a login. It renews
// a token that is about to expire, and is cheap otherwise.
func (l *Logins) Token(ctx context.Context, s Server) (string, error) {
	have, err := l.current(ctx, s)
	if err != nil {
		return "", err
	}
	now := l.options.Clock.Now()
	if !have.expiresSoon(now) {
		return have.Access, nil
	}
	byItself := s.Settings.Grant == GrantCredentials
	valid := now.Before(have.Expires)
	switch {
	case have.ended(now) && !byItself:
		return "", nil
	case valid && (have.Refresh == "" && !byItself || now.Before(have.retryAt)):
		return have.Access, nil
	}
	fresh, err := l.renew(ctx, s, have.Access, nil)
	if err != nil && valid {
		l.options.Log.WarnContext(ctx, "token not renewed ahead of time", "upstream", s.Name, "error", err)
		return have.Access, nil
	}
	return fresh, err
}

func (have login) expiresSoon(now time.Time) bool {
	return have.Access != "" && !have.Expires.IsZero() && !now.Before(have.Expires.Add(-ahead))
}

// current is the login as it is known here, or else as it is stored.
func (l *Logins) current(ctx context.Context, s Server) (login, error) {
	l.mu.Lock()
	have, known := l.known[s.key()]
	l.mu.Unlock()
	if known {
		return have, nil
	}
	return l.load(ctx, s)
}

// Refusal is a request that the server refused because of its credentials.
type Refusal struct {
	Status    int
	Challenge Challenge
	Token     string // the token of the request; may be empty
}

// Refused returns another token after a refusal: one that was stored meanwhile, a
// renewed one, or a new one with client credentials. Without any, the fault says how
// to log in.
func (l *Logins) Refused(ctx context.Context, s Server, r Refusal) (string, error) {
	c := r.Challenge
	if r.Status == 403 && c.Error != InsufficientScope {
		return "", errForbidden(s)
	}
	have, err := l.load(ctx, s)
	if err != nil {
		return "", err
	}
	if have.Access != "" && have.Access != r.Token {
		return have.Access, nil
	}
	if c.wantsNoMoreThan(have.Scopes) {
		return "", fault.New(fault.Denied, "upstream %s requires %s, which the token already has", s.Name, printable(strings.Join(c.Scopes, " "))).
			WithHint("another login does not help; ask the operator of the server")
	}
	if r.renewable(s, have) {
		token, err := l.renew(ctx, s, r.Token, &c)
		if err == nil || fault.CodeOf(err) != fault.NeedsAuth || s.Settings.Grant == GrantCredentials {
			return token, err
		}
	}
	if err := l.storeChallenge(ctx, s, c); err != nil {
		return "", err
	}
	return "", l.loginNeeded(s, c)
}

// errForbidden says that the account may not do this.
func errForbidden(s Server) error {
	if s.Owner != "" {
		return fault.New(fault.Denied, "upstream %s refused the request: your account there may not do this", s.Name)
	}
	return fault.New(fault.NeedsAuth, "upstream %s refused the request as forbidden", s.Name).
		WithHint("the logged-in user may not do this; log in as another user with `luanette upstream login %s`", s.Name)
}

// renewable reports whether a token can be obtained without a person.
func (r Refusal) renewable(s Server, have login) bool {
	return r.Status == 401 && have.Refresh != "" || s.Settings.Grant == GrantCredentials
}

// wantsNoMoreThan reports whether a server requires only scopes that were already
// granted.
func (c Challenge) wantsNoMoreThan(granted []string) bool {
	return c.Error == InsufficientScope && len(c.Scopes) > 0 && len(union(granted, c.Scopes)) == len(granted)
}

// loginNeeded is the error that a person has to log in.
func (l *Logins) loginNeeded(s Server, c Challenge) error {
	if s.Owner != "" && c.Error == InsufficientScope {
		return l.ownNeeded(s, "that you allow more: "+printable(strings.Join(c.Scopes, " ")))
	}
	if s.Owner != "" {
		return l.ownNeeded(s, "your login")
	}
	if c.Error == InsufficientScope {
		return fault.New(fault.NeedsAuth, "upstream %s requires more scopes: %s", s.Name, printable(strings.Join(c.Scopes, " "))).
			WithHint("grant them with `luanette upstream login %s`", s.Name)
	}
	return fault.New(fault.NeedsAuth, "upstream %s requires a login", s.Name).
		WithHint("log in with `luanette upstream login %s`", s.Name)
}

// renew replaces the token used. One caller on one node renews it; the others wait for
// the result.
func (l *Logins) renew(ctx context.Context, s Server, used string, c *Challenge) (string, error) {
	done, err := l.turn(ctx, s.key())
	if err != nil {
		return "", err
	}
	defer done()
	for {
		have, err := l.load(ctx, s)
		if err != nil {
			return "", err
		}
		if have.Access != "" && have.Access != used {
			return have.Access, nil
		}
		if have.Access == "" && s.Settings.Grant == GrantCredentials {
			return l.clientCredentials(ctx, s, login{}, c)
		}
		if have.Access == "" {
			return "", l.loginNeeded(s, Challenge{})
		}
		if pause := have.retryAt.Sub(l.options.Clock.Now()); pause > 0 {
			return "", fault.New(fault.Unavailable, "the login to %s could not be renewed", s.Name).
				WithHint("it is tried again in %s", pause.Round(time.Second))
		}
		ours, err := l.claim(ctx, s, have)
		if err != nil {
			return "", err
		}
		if !ours {
			if err := l.options.Clock.Sleep(ctx, lookEvery); err != nil {
				return "", err
			}
			continue
		}
		// The caller may give up, but the server's response must not be lost.
		ctx := context.WithoutCancel(ctx)
		if s.Settings.Grant == GrantCredentials {
			return l.clientCredentials(ctx, s, have, c)
		}
		return l.refresh(ctx, s, have)
	}
}

// refresh exchanges the refresh token for new tokens.
func (l *Logins) refresh(ctx context.Context, s Server, have login) (string, error) {
	f, err := l.fetcher(s)
	if err != nil {
		return "", err
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {have.Refresh}}
	if !have.Old {
		form.Set("resource", have.Resource)
	}
	got, err := l.grant(ctx, f, s, have.at, have.Client, form)
	var no *refused
	if errors.As(err, &no) && no.ends(have.Client) {
		l.options.Log.InfoContext(ctx, "login has ended", "upstream", s.Name, "owner", s.Owner, "issuer", have.Issuer, "error", no)
		if err := l.end(ctx, s, have); err != nil {
			return "", err
		}
		return "", l.loginNeeded(s, Challenge{})
	}
	if err != nil {
		l.release(ctx, s, have, min(firstPause<<min(have.failures, 10), maxPause))
		return "", fault.Wrap(fault.Unavailable, err, "renew the login to %s", s.Name)
	}
	if got.Refresh == "" {
		got.Refresh = have.Refresh
	}
	if len(got.Scopes) == 0 {
		got.Scopes = have.Scopes
	}
	got.Account = cmp.Or(got.Account, have.Account)
	have.tokens = got
	return got.Access, l.save(ctx, s, &have)
}

// clientCredentials gets a token with the client's own credentials, which needs no
// consent.
func (l *Logins) clientCredentials(ctx context.Context, s Server, have login, c *Challenge) (string, error) {
	f, err := l.fetcher(s)
	if err != nil {
		return "", err
	}
	where, at, challenge, err := f.tokenEndpoint(ctx, s, c)
	if err != nil {
		return "", err
	}
	who, err := l.clientFor(ctx, f, s, at, "")
	if err != nil {
		return "", err
	}
	scopes, err := l.scopesFor(ctx, s, challenge, where, at)
	if err != nil {
		return "", err
	}
	p := flow{Server: s, At: at, Client: who, Resource: where.resource, Old: at.old}
	form := p.form(url.Values{"grant_type": {"client_credentials"}})
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	got, err := l.grant(ctx, f, s, at, who, form)
	if err != nil {
		if have.Access != "" {
			l.release(ctx, s, have, 0)
		}
		return "", fault.Wrap(fault.NeedsAuth, err, "log in to %s", s.Name).
			WithHint("check upstreams.%s.oauth in luanette.toml", s.Name)
	}
	return got.Access, l.saveTokens(ctx, p, got)
}

// tokenEndpoint finds where client credentials get a token: the endpoint that the server's
// description names, unless an issuer is configured, else that of its authorization server.
func (f *fetcher) tokenEndpoint(ctx context.Context, s Server, c *Challenge) (place, description, Challenge, error) {
	var challenge Challenge
	if c != nil {
		challenge = *c
	}
	if s.Settings.TokenURL != "" && s.Settings.Issuer == "" {
		endpoint, err := f.parse(s.Settings.TokenURL)
		if err != nil {
			return place{}, description{}, challenge, err
		}
		issuer := endpoint.Scheme + "://" + endpoint.Host
		return place{resource: resourceOf(f.home), issuer: issuer, old: true}, description{Issuer: issuer, Token: s.Settings.TokenURL, old: true}, challenge, nil
	}
	if c == nil {
		var err error
		if _, challenge, err = f.probe(ctx, s); err != nil {
			return place{}, description{}, challenge, err
		}
	}
	where, at, err := f.discover(ctx, s, challenge)
	return where, at, challenge, err
}

// claim acquires the lease for renewing a login, among all nodes.
func (l *Logins) claim(ctx context.Context, s Server, have login) (bool, error) {
	now := l.options.Clock.Now()
	n, err := l.db.Change(ctx, `UPDATE oauth_logins SET claimed_until = $6
		WHERE upstream = $1 AND owner = $2 AND server = $3 AND issuer = $4 AND version = $5 AND claimed_until < $7 AND retry_at <= $7`,
		s.Name, s.Owner, s.address(), have.Issuer, have.version, now.Add(claimTime).UnixMicro(), now.UnixMicro())
	return n == 1, err
}

// release gives up the lease after a failure that may pass, and lets nobody try again during
// a pause: the response may be lost although the server has seen the refresh token, and a
// server that is overloaded is not helped by all callers asking at once.
func (l *Logins) release(ctx context.Context, s Server, have login, pause time.Duration) {
	err := l.db.Exec(ctx, `UPDATE oauth_logins SET claimed_until = 0, failures = failures + 1, retry_at = $6
			WHERE upstream = $1 AND owner = $2 AND server = $3 AND issuer = $4 AND version = $5`,
		s.Name, s.Owner, s.address(), have.Issuer, have.version, l.options.Clock.Now().Add(pause).UnixMicro())
	if err != nil {
		l.options.Log.WarnContext(ctx, "login stays claimed for a while", "upstream", s.Name, "error", err)
	}
}

// turn waits until no other caller in this process renews the login.
func (l *Logins) turn(ctx context.Context, key Key) (done func(), err error) {
	l.mu.Lock()
	lock, ok := l.turns[key]
	if !ok {
		lock = make(chan struct{}, 1)
		l.turns[key] = lock
	}
	l.mu.Unlock()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
