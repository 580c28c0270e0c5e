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

	version int64
	at      description
	updated time.Time
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
	sealed, err := l.box.Seal(sealedLogin{*have, have.at}, "login", s.Name, have.Issuer, s.address())
	if err != nil {
		return err
	}
	now := l.options.Clock.Now().UnixMicro()
	err = l.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM oauth_logins WHERE upstream = $1 AND NOT (server = $2 AND issuer = $3)`, s.Name, s.address(), have.Issuer); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM oauth_challenges WHERE upstream = $1`, s.Name); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `INSERT INTO oauth_logins (upstream, server, issuer, scopes, expires, updated, version, claimed_until, sealed)
			VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8)
			ON CONFLICT (upstream, server, issuer) DO UPDATE SET scopes = excluded.scopes, expires = excluded.expires, updated = excluded.updated,
				version = oauth_logins.version + 1, claimed_until = 0, sealed = excluded.sealed
			RETURNING version`,
			s.Name, s.address(), have.Issuer, strings.Join(have.Scopes, " "), micros(have.Expires), now, now, sealed).Scan(&have.version); err != nil {
			return err
		}
		return tx.Notify(Topic, s.Name)
	})
	if err != nil {
		return err
	}
	l.remember(s, *have)
	return nil
}

// sealedLogin is a login as it is encrypted, with the address that renews it.
type sealedLogin struct {
	login
	At description `json:"at"`
}

func (l *Logins) remember(s Server, have login) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[s.key()] = have
}

// load reads the stored login, or the zero login if there is none.
func (l *Logins) load(ctx context.Context, s Server) (login, error) {
	var issuer string
	var version, updated int64
	var sealed []byte
	err := l.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT issuer, version, updated, sealed FROM oauth_logins WHERE upstream = $1 AND server = $2 ORDER BY updated DESC LIMIT 1`,
			s.Name, s.address()).Scan(&issuer, &version, &updated, &sealed)
	})
	if errors.Is(err, sql.ErrNoRows) {
		l.remember(s, login{})
		return login{}, nil
	}
	if err != nil {
		return login{}, err
	}
	var opened sealedLogin
	if err := l.box.Open(sealed, &opened, "login", s.Name, issuer, s.address()); err != nil {
		return login{}, err
	}
	if want := s.Settings.Issuer; want != "" && want != issuer {
		return login{}, nil // the configuration has changed since
	}
	have := opened.login
	have.at, have.version, have.updated = opened.At, version, time.UnixMicro(updated)
	l.remember(s, have)
	return have, nil
}

// forget deletes tokens that are no longer valid, unless newer ones are stored.
func (l *Logins) forget(ctx context.Context, s Server, have login) error {
	err := l.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM oauth_logins WHERE upstream = $1 AND server = $2 AND issuer = $3 AND version = $4`,
			s.Name, s.address(), have.Issuer, have.version)
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, s.key())
	return err
}

// storeChallenge stores the challenge of a refused request for the next login, on
// whichever node.
func (l *Logins) storeChallenge(ctx context.Context, s Server, c Challenge) error {
	return l.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO oauth_challenges (upstream, server, metadata, scopes, error) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (upstream, server) DO UPDATE SET metadata = excluded.metadata, scopes = excluded.scopes, error = excluded.error`,
			s.Name, s.address(), c.Metadata, strings.Join(c.Scopes, " "), c.Error)
		return err
	})
}

// lastChallenge returns the last challenge of the server.
func (l *Logins) lastChallenge(ctx context.Context, s Server) (c Challenge, ok bool, err error) {
	var scopes string
	err = l.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT metadata, scopes, error FROM oauth_challenges WHERE upstream = $1 AND server = $2`, s.Name, s.address()).
			Scan(&c.Metadata, &scopes, &c.Error)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return Challenge{}, false, nil
	}
	c.Scopes = strings.Fields(scopes)
	return c, err == nil, err
}
