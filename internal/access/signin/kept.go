package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/sealed"
)

// kept are the tokens of one sign-in. Its session uses them to ask the provider again, and
// work that goes on without a browser uses those of the newest sign-in.
type kept struct {
	id, person, provider string
	version              int64
	tokens
}

// Times of kept tokens.
const (
	replacedTime = 12 * time.Hour         // how long those before the newest are kept: as long as a session lasts
	idleTime     = 90 * 24 * time.Hour    // and those that nobody uses
	renewAhead   = time.Minute            // before they expire
	claimTime    = time.Minute            // longer than a request takes
	lookEvery    = 100 * time.Millisecond // whether another process has renewed them
	unknownTime  = 5 * time.Minute        // of access tokens whose end the provider does not tell
)

// errSignIn is the refusal of work for somebody whose sign-in has ended.
var errSignIn = fault.New(fault.NeedsAuth, "the sign-in at the provider has ended").WithHint("sign in again")

// keep stores the tokens of a sign-in.
func (s *Service) keep(ctx context.Context, p *provider, b people.Begun, got tokens) (id string, err error) {
	k := kept{id: rand.Text(), person: b.Person, provider: p.Name, tokens: got}
	sealed, err := s.seal(k)
	if err != nil {
		return "", err
	}
	now := s.options.Clock.Now()
	return k.id, s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM signin_tokens WHERE person = $1 AND provider = $2 AND created < $3 OR updated < $4",
			k.person, k.provider, now.Add(-replacedTime).UnixMicro(), now.Add(-idleTime).UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO signin_tokens (id, person, provider, created, updated, sealed) VALUES ($1, $2, $3, $4, $4, $5)",
			k.id, k.person, k.provider, now.UnixMicro(), sealed)
		return err
	})
}

func (s *Service) seal(k kept) ([]byte, error) {
	return s.box.Seal(k.tokens, "signin tokens", k.id, k.person, k.provider)
}

// load returns kept tokens; the error is errSignIn if there are none.
func (s *Service) load(ctx context.Context, where string, args ...any) (k kept, err error) {
	var sealed []byte
	err = s.db.QueryRow(ctx, "SELECT id, person, provider, version, sealed FROM signin_tokens WHERE "+where+" ORDER BY created DESC, id LIMIT 1", args...).
		Scan(&k.id, &k.person, &k.provider, &k.version, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return k, errSignIn
	}
	if err != nil {
		return k, err
	}
	return k, s.box.Open(sealed, &k.tokens, "signin tokens", k.id, k.person, k.provider)
}

// EndTokens deletes the tokens of a person's sign-ins, in the transaction that ends what
// acts for them.
func EndTokens(ctx context.Context, tx *db.Tx, person string) error {
	_, err := tx.Exec(ctx, "DELETE FROM signin_tokens WHERE person = $1", person)
	return err
}

// endTokensAt deletes the tokens that a provider gave somebody who signed out everywhere.
func (s *Service) endTokensAt(ctx context.Context, p *provider, of people.Identity) error {
	person, err := s.options.People.Find(ctx, of)
	if err != nil || person.ID == "" {
		return err
	}
	return s.db.Exec(ctx, "DELETE FROM signin_tokens WHERE person = $1 AND provider = $2", person.ID, p.Name)
}

// renew gets new tokens with the refresh token. One caller does, on one node; the others
// get what it got. The person gets the roles that the provider tells now. The error is
// fault.Denied or fault.NeedsAuth if the sign-in has ended.
func (s *Service) renew(ctx context.Context, was kept) (k kept, err error) {
	k = was
	err = s.renewals.Do(ctx, was.id, func(ctx context.Context) error {
		for {
			if k, err = s.load(ctx, "id = $1", was.id); err != nil || k.version != was.version {
				return err
			}
			mine, err := s.claim(ctx, k)
			if err != nil {
				return err
			}
			if mine {
				k, err = s.renewClaimed(context.WithoutCancel(ctx), k) // the provider may have used up the token
				return err
			}
			if err := s.options.Clock.Sleep(ctx, lookEvery); err != nil {
				return err
			}
		}
	})
	return k, err
}

// claim acquires the right to renew tokens, among all nodes.
func (s *Service) claim(ctx context.Context, k kept) (mine bool, err error) {
	now := s.options.Clock.Now()
	n, err := s.db.Change(ctx, "UPDATE signin_tokens SET claimed_until = $3 WHERE id = $1 AND version = $2 AND claimed_until < $4",
		k.id, k.version, now.Add(claimTime).UnixMicro(), now.UnixMicro())
	return n == 1, err
}

// renewClaimed renews tokens that no other process renews now.
func (s *Service) renewClaimed(ctx context.Context, k kept) (kept, error) {
	p, err := s.named(k.provider)
	if err != nil {
		return k, err
	}
	at, err := p.remote.Endpoints(ctx)
	var got tokens
	if err == nil {
		got, err = s.exchange(ctx, p, at, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {k.Refresh}})
	}
	if errors.Is(err, errGone) {
		return k, errors.Join(errSignIn, s.forget(ctx, k))
	}
	if err != nil { // it may pass
		releaseErr := s.db.Exec(ctx, "UPDATE signin_tokens SET claimed_until = 0 WHERE id = $1 AND version = $2", k.id, k.version)
		return k, errors.Join(err, releaseErr)
	}
	k.Access, k.Expires = got.Access, got.Expires
	k.ID, k.Refresh = cmp.Or(got.ID, k.ID), cmp.Or(got.Refresh, k.Refresh)
	if err := s.replace(ctx, &k); err != nil { // first: the old refresh token may be used up
		return k, err
	}
	if got.ID == "" {
		return k, nil
	}
	begun, err := s.admit(ctx, p, at, got, "")
	switch {
	case err == nil && begun.Person == k.person:
		return k, nil
	case err == nil: // somebody else
		return k, errors.Join(errSignIn, s.forget(ctx, k))
	case fault.CodeOf(err) == fault.Denied: // without a role now
		return k, errors.Join(err, s.forget(ctx, k), s.options.People.LeaveSource(ctx, k.person, k.provider))
	}
	return k, err
}

// replace stores tokens after a renewal.
func (s *Service) replace(ctx context.Context, k *kept) error {
	sealed, err := s.seal(*k)
	if err != nil {
		return err
	}
	n, err := s.db.Change(ctx, "UPDATE signin_tokens SET sealed = $3, updated = $4, version = version + 1, claimed_until = 0 WHERE id = $1 AND version = $2",
		k.id, k.version, sealed, s.options.Clock.Now().UnixMicro())
	if err == nil && n == 0 {
		return errSignIn // they were deleted meanwhile
	}
	k.version++
	return err
}

func (s *Service) forget(ctx context.Context, k kept) error {
	return s.db.Exec(ctx, "DELETE FROM signin_tokens WHERE id = $1", k.id)
}

// Subject has the tokens by which a provider knows a person. Those that have ended are
// empty.
type Subject struct {
	Access, ID, Refresh string
	provider            string
}

// Subject returns the tokens of a person's newest sign-in at the provider that says that
// they are in an organisation, renewed if those of the kind that is needed have ended. The
// error is fault.NeedsAuth if the person must sign in again.
func (s *Service) Subject(ctx context.Context, person, org string, needed func(Subject) string) (Subject, error) {
	k, err := s.load(ctx, "person = $1 AND provider = $2", person, s.options.People.Source(person, org))
	if err != nil {
		return Subject{}, err
	}
	found := s.subject(k)
	if needed(found) != "" || k.Refresh == "" {
		return found, nil
	}
	if k, err = s.renew(ctx, k); err != nil {
		return Subject{}, err
	}
	return s.subject(k), nil
}

func (s *Service) subject(k kept) Subject {
	found := Subject{Refresh: k.Refresh, provider: k.provider}
	soon := s.options.Clock.Now().Add(renewAhead)
	if soon.Before(k.Expires) {
		found.Access = k.Access
	}
	if soon.Before(jwt.ExpiryOf(k.ID)) {
		found.ID = k.ID
	}
	return found
}

// Issued is a token that a provider gave for another server.
type Issued struct {
	Token   string
	Kind    string // issued_token_type
	Expires time.Time
}

// Ask sends a form to the token endpoint of a subject's provider, as our client there. The
// error is fault.NeedsAuth if the person must sign in again, and fault.Denied if the
// provider does not allow it.
func (s *Service) Ask(ctx context.Context, of Subject, form url.Values) (Issued, error) {
	p, err := s.named(of.provider)
	if err != nil {
		return Issued{}, err
	}
	at, err := p.remote.Endpoints(ctx)
	if err != nil {
		return Issued{}, err
	}
	var got struct {
		tokens
		Kind string `json:"issued_token_type"`
	}
	if err := s.ask(ctx, p, at, form, &got); err != nil {
		return Issued{}, fault.Wrap(fault.CodeOf(err), err, "exchange a token at %s", p.Issuer)
	}
	if got.Access == "" {
		return Issued{}, fault.New(fault.Upstream, "the answer of %s has no token", p.Issuer)
	}
	return Issued{got.Access, got.Kind, s.endOf(got.tokens)}, nil
}

// Sealed is the column with the encrypted tokens of sign-ins.
func Sealed() sealed.Column {
	return sealed.Column{Table: "signin_tokens", Name: "sealed", Of: []string{"id", "person", "provider"}, About: func(of []string) []string {
		return append([]string{"signin tokens"}, of...)
	}}
}
