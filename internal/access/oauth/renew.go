package oauth

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// How tokens are renewed.
const (
	ahead     = time.Minute            // before they expire
	claimTime = time.Minute            // one node has to do it; longer than asking takes, and than clocks differ
	lookEvery = 100 * time.Millisecond // at what another node made of it
)

// Token is what requests to the server bear; "" when we are not logged in. It
// renews a token that is about to expire, and is cheap otherwise.
func (l *Logins) Token(ctx context.Context, s Server) (string, error) {
	l.mu.Lock()
	have, known := l.known[s.key()]
	l.mu.Unlock()
	if !known {
		var err error
		if have, err = l.load(ctx, s); err != nil {
			return "", err
		}
	}
	now := l.options.Clock.Now()
	if have.Access == "" || have.Expires.IsZero() || now.Before(have.Expires.Add(-ahead)) {
		return have.Access, nil
	}
	if have.Refresh == "" && s.Settings.Grant != GrantCredentials {
		if now.Before(have.Expires) {
			return have.Access, nil
		}
		return "", nil
	}
	fresh, err := l.renew(ctx, s, have.Access, nil)
	if err != nil && now.Before(have.Expires) {
		l.options.Log.WarnContext(ctx, "token not renewed ahead of time", "upstream", s.Name, "error", err)
		return have.Access, nil
	}
	return fresh, err
}

// Refusal is a request that the server refused for want of credentials.
type Refusal struct {
	Status    int
	Challenge Challenge
	Token     string // that the request bore; may be empty
}

// Refused finds another token after a refusal: one that was got meanwhile, a
// renewed one, or with credentials of our own a new one. Without any the fault
// says how to log in.
func (l *Logins) Refused(ctx context.Context, s Server, r Refusal) (string, error) {
	c := r.Challenge
	if r.Status == 403 && c.Error != InsufficientScope {
		return "", fault.New(fault.NeedsAuth, "upstream %s forbids it", s.Name).
			WithHint("who is logged in may not do this there; log in as somebody else with `luanette upstream login %s`", s.Name)
	}
	have, err := l.load(ctx, s)
	if err != nil {
		return "", err
	}
	if have.Access != "" && have.Access != r.Token {
		return have.Access, nil
	}
	if c.wantsNoMoreThan(have.Scopes) {
		return "", fault.New(fault.Denied, "upstream %s wants %s, which it was granted already", s.Name, harmless(strings.Join(c.Scopes, " "))).
			WithHint("another login does not help; ask whoever runs the server")
	}
	if r.renewable(s, have) {
		token, err := l.renew(ctx, s, r.Token, &c)
		if err == nil || fault.CodeOf(err) != fault.NeedsAuth || s.Settings.Grant == GrantCredentials {
			return token, err
		}
	}
	if err := l.hear(ctx, s, c); err != nil {
		return "", err
	}
	return "", l.wanting(s, c)
}

// renewable tells whether a token can be had without a person.
func (r Refusal) renewable(s Server, have login) bool {
	return r.Status == 401 && have.Refresh != "" || s.Settings.Grant == GrantCredentials
}

// wantsNoMoreThan tells whether a server asks for scopes that it has granted.
func (c Challenge) wantsNoMoreThan(granted []string) bool {
	return c.Error == InsufficientScope && len(c.Scopes) > 0 && len(union(granted, c.Scopes)) == len(granted)
}

// wanting says that a person has to log in.
func (l *Logins) wanting(s Server, c Challenge) error {
	if c.Error == InsufficientScope {
		return fault.New(fault.NeedsAuth, "upstream %s wants to be allowed more: %s", s.Name, harmless(strings.Join(c.Scopes, " "))).
			WithHint("agree to it with `luanette upstream login %s`", s.Name)
	}
	return fault.New(fault.NeedsAuth, "upstream %s wants a login", s.Name).
		WithHint("log in with `luanette upstream login %s`", s.Name)
}

// renew replaces the token used by another. One caller does it, on one node; the
// others wait and take what came of it.
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
			return l.present(ctx, s, login{}, c)
		}
		if have.Access == "" {
			return "", l.wanting(s, Challenge{})
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
		// Whoever waits may give up; what the server answers must not be lost.
		ctx := context.WithoutCancel(ctx)
		if s.Settings.Grant == GrantCredentials {
			return l.present(ctx, s, have, c)
		}
		return l.refresh(ctx, s, have)
	}
}

// refresh trades the refresh token for new ones.
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
	if errors.As(err, &no) {
		if err := l.forget(ctx, s, have); err != nil {
			return "", err
		}
		l.options.Log.InfoContext(ctx, "login has ended", "upstream", s.Name, "issuer", have.Issuer, "error", no)
		return "", l.wanting(s, Challenge{})
	}
	if err != nil {
		l.unclaim(ctx, s, have)
		return "", fault.Wrap(fault.Unavailable, err, "renew the login to %s", s.Name)
	}
	if got.Refresh == "" {
		got.Refresh = have.Refresh
	}
	if len(got.Scopes) == 0 {
		got.Scopes = have.Scopes
	}
	have.tokens = got
	return got.Access, l.save(ctx, s, &have)
}

// present gets a token with credentials of our own, which takes nobody's consent.
func (l *Logins) present(ctx context.Context, s Server, have login, c *Challenge) (string, error) {
	f, err := l.fetcher(s)
	if err != nil {
		return "", err
	}
	var challenge Challenge
	if c != nil {
		challenge = *c
	} else if _, challenge, err = f.probe(ctx, s); err != nil {
		return "", err
	}
	where, at, err := f.discover(ctx, s, challenge)
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
			l.unclaim(ctx, s, have)
		}
		return "", fault.Wrap(fault.NeedsAuth, err, "log in to %s", s.Name).
			WithHint("look at upstreams.%s.oauth in luanette.toml", s.Name)
	}
	return got.Access, l.keep(ctx, p, got)
}

// claim makes us the one who renews a login, among all nodes.
func (l *Logins) claim(ctx context.Context, s Server, have login) (bool, error) {
	now, n := l.options.Clock.Now(), int64(0)
	err := l.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, `UPDATE oauth_logins SET claimed_until = $5
			WHERE upstream = $1 AND server = $2 AND issuer = $3 AND version = $4 AND claimed_until < $6`,
			s.Name, s.address(), have.Issuer, have.version, now.Add(claimTime).UnixMicro(), now.UnixMicro())
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return n == 1, err
}

// unclaim lets others try after it came to nothing.
func (l *Logins) unclaim(ctx context.Context, s Server, have login) {
	err := l.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE oauth_logins SET claimed_until = 0 WHERE upstream = $1 AND server = $2 AND issuer = $3 AND version = $4`,
			s.Name, s.address(), have.Issuer, have.version)
		return err
	})
	if err != nil {
		l.options.Log.WarnContext(ctx, "login stays claimed for a while", "upstream", s.Name, "error", err)
	}
}

// turn waits until nobody else in this process renews the login.
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
