package apikey

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// session is a browser session. It ends with its key at the latest.
type session struct {
	token   Hash
	expires time.Time
}

// The longest durations of sessions.
const (
	sessionLength = 12 * time.Hour
	ownerLength   = 30 * 24 * time.Hour // of the owner, on their own machine
)

// BeginSession starts a session for a token. Only the hash of the cookie is stored.
func (r *Store) BeginSession(ctx context.Context, token string) (cookie string, p principal.Principal, err error) {
	if p, err = r.Authenticate(ctx, token); err != nil {
		return "", p, err
	}
	now := r.options.Now()
	s := session{HashOf(token), now.Add(sessionLength)}
	if p.ID == principal.LocalID {
		s.expires = now.Add(ownerLength)
	}
	if !p.Expires.IsZero() && p.Expires.Before(s.expires) {
		s.expires = p.Expires
	}
	p.Expires = s.expires
	cookie = rand.Text()
	hash := HashOf(cookie)
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM access_sessions WHERE expires < $1", db.UnixMicro(now)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO access_sessions (hash, token, created, expires) VALUES ($1, $2, $3, $4)",
			hash[:], s.token[:], db.UnixMicro(now), db.UnixMicro(s.expires))
		return err
	})
	return cookie, p, err
}

// Session returns the principal of a session cookie.
func (r *Store) Session(ctx context.Context, cookie string) (principal.Principal, error) {
	hash := HashOf(cookie)
	if err := r.renew(ctx); err != nil {
		return principal.Anonymous(), err
	}
	r.mu.Lock()
	s, seen := r.sessions[hash]
	r.mu.Unlock()
	if !seen {
		var err error
		if s, err = r.loadSession(ctx, hash); err != nil {
			return principal.Anonymous(), err
		}
		r.mu.Lock()
		r.sessions[hash] = s
		r.mu.Unlock()
	}
	if !r.options.Now().Before(s.expires) {
		return principal.Anonymous(), errSession
	}
	p, err := r.find(ctx, s.token)
	if err == nil && (p.Expires.IsZero() || s.expires.Before(p.Expires)) {
		p.Expires = s.expires
	}
	return p, err
}

var errSession = fault.New(fault.NeedsAuth, "the session has ended").WithHint("log in again with your key")

func (r *Store) loadSession(ctx context.Context, hash Hash) (s session, err error) {
	var token []byte
	err = r.db.QueryRow(ctx, "SELECT token, expires FROM access_sessions WHERE hash = $1", hash[:]).Scan(&token, db.Micros(&s.expires))
	if errors.Is(err, sql.ErrNoRows) {
		return s, errSession
	}
	copy(s.token[:], token)
	return s, err
}

// EndSession ends a session.
func (r *Store) EndSession(ctx context.Context, cookie string) error {
	hash := HashOf(cookie)
	err := r.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM access_sessions WHERE hash = $1", hash[:]); err != nil {
			return err
		}
		return tx.Notify(Topic, "session")
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, hash)
	return err
}

// CSRF returns the token that a page must send in a header with every request that
// changes something. Only our own page can read it.
func CSRF(cookie string) string {
	sum := sha256.Sum256([]byte("csrf\x00" + cookie))
	return hex.EncodeToString(sum[:16])
}

// SameCSRF reports whether the token that a page sent is the right one.
func SameCSRF(cookie, sent string) bool {
	return subtle.ConstantTimeCompare([]byte(CSRF(cookie)), []byte(sent)) == 1
}
