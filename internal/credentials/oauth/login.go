package oauth

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// login has the tokens for one server.
type login struct {
	tokens
	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`
	Old      bool   `json:"old,omitempty"`
	Client   client `json:"client"`

	version  int64
	at       description
	updated  time.Time
	failures int64     // renewals that failed since the last that did not
	retryAt  time.Time // no renewal before
}

// ended reports whether the token has expired and no other can be obtained with it.
func (have login) ended(now time.Time) bool {
	return have.Refresh == "" && !have.Expires.IsZero() && !now.Before(have.Expires)
}

// saveTokens stores the tokens of a confirmed login. Tokens of other issuers, which the
// server no longer accepts, are deleted.
func (l *Logins) saveTokens(ctx context.Context, p flow, got tokens) error {
	have := login{tokens: got, Issuer: p.At.Issuer, Resource: p.Resource, Old: p.Old, Client: p.Client, at: p.At}
	if len(have.Scopes) == 0 {
		have.Scopes = p.Scopes
	}
	return l.save(ctx, p.Server, &have)
}

func (l *Logins) save(ctx context.Context, s Server, have *login) error {
	sealed, err := l.box.Seal(sealedLogin{*have, have.at, s}, s.subject("login", have.Issuer, s.address())...)
	if err != nil {
		return err
	}
	now := l.options.Clock.Now().UnixMicro()
	err = l.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM oauth_logins WHERE upstream = $1 AND owner = $2 AND NOT (server = $3 AND issuer = $4)`,
			s.Name, s.Owner, s.address(), have.Issuer); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM oauth_challenges WHERE upstream = $1 AND owner = $2`, s.Name, s.Owner); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `INSERT INTO oauth_logins (upstream, owner, server, issuer, org, state, scopes, expires, updated, version, claimed_until, failures, retry_at, sealed)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, 0, 0, 0, $10)
			ON CONFLICT (upstream, owner, server, issuer) DO UPDATE SET org = excluded.org, state = excluded.state, scopes = excluded.scopes,
				expires = excluded.expires, updated = excluded.updated, version = oauth_logins.version + 1, claimed_until = 0, failures = 0,
				retry_at = 0, sealed = excluded.sealed
			RETURNING version`,
			s.Name, s.Owner, s.address(), have.Issuer, s.Org, StateActive, strings.Join(have.Scopes, " "), db.UnixMicro(have.Expires), now, sealed).
			Scan(&have.version); err != nil {
			return err
		}
		return tx.Notify(Topic, s.Name)
	})
	if err != nil {
		return err
	}
	have.failures, have.retryAt = 0, time.Time{}
	l.remember(s, *have)
	return nil
}

// sealedLogin is a login as it is encrypted, with the address that renews it.
type sealedLogin struct {
	login
	At     description `json:"at"`
	Server Server      `json:"server"`
}

func (l *Logins) remember(s Server, have login) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[s.key()] = have
}

// load reads the stored login, or the zero login if there is none. One that has ended is
// without its tokens.
func (l *Logins) load(ctx context.Context, s Server) (login, error) {
	var issuer, state string
	var version, updated, failures, retryAt int64
	var sealed []byte
	err := l.db.QueryRow(ctx, `SELECT issuer, state, version, updated, failures, retry_at, sealed FROM oauth_logins
			WHERE upstream = $1 AND owner = $2 AND server = $3 ORDER BY updated DESC LIMIT 1`,
		s.Name, s.Owner, s.address()).Scan(&issuer, &state, &version, &updated, &failures, &retryAt, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		l.remember(s, login{})
		return login{}, nil
	}
	if err != nil {
		return login{}, err
	}
	var opened sealedLogin
	if err := l.box.Open(sealed, &opened, s.subject("login", issuer, s.address())...); err != nil {
		return login{}, err
	}
	if want := s.Settings.Issuer; want != "" && want != issuer {
		return login{}, nil // the configuration has changed since
	}
	have := opened.login
	have.at, have.version, have.updated = opened.At, version, time.UnixMicro(updated)
	have.failures, have.retryAt = failures, time.UnixMicro(retryAt)
	if state != StateActive {
		have.Access, have.Refresh = "", ""
	}
	l.remember(s, have)
	return have, nil
}

// end marks a login that its issuer has ended, unless a newer one is stored. The row stays,
// so that the person can be told.
func (l *Logins) end(ctx context.Context, s Server, have login) error {
	err := l.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE oauth_logins SET state = $6, claimed_until = 0, version = version + 1, updated = $7
			WHERE upstream = $1 AND owner = $2 AND server = $3 AND issuer = $4 AND version = $5`,
			s.Name, s.Owner, s.address(), have.Issuer, have.version, StateNeedsLogin, l.options.Clock.Now().UnixMicro())
		if err != nil {
			return err
		}
		return tx.Notify(Topic, s.Name)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, s.key())
	return err
}

// storeChallenge stores the challenge of a refused request for the next login, on
// whichever node.
func (l *Logins) storeChallenge(ctx context.Context, s Server, c Challenge) error {
	return l.db.Exec(ctx, `INSERT INTO oauth_challenges (upstream, owner, server, metadata, scopes, error) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (upstream, owner, server) DO UPDATE SET metadata = excluded.metadata, scopes = excluded.scopes, error = excluded.error`,
		s.Name, s.Owner, s.address(), c.Metadata, strings.Join(c.Scopes, " "), c.Error)
}

// lastChallenge returns the last challenge of the server.
func (l *Logins) lastChallenge(ctx context.Context, s Server) (c Challenge, ok bool, err error) {
	var scopes string
	err = l.db.QueryRow(ctx, `SELECT metadata, scopes, error FROM oauth_challenges WHERE upstream = $1 AND owner = $2 AND server = $3`,
		s.Name, s.Owner, s.address()).Scan(&c.Metadata, &scopes, &c.Error)
	if errors.Is(err, sql.ErrNoRows) {
		return Challenge{}, false, nil
	}
	c.Scopes = strings.Fields(scopes)
	return c, err == nil, err
}
