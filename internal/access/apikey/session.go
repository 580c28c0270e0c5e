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
func (s *Store) BeginSession(ctx context.Context, token string) (cookie string, p principal.Principal, err error) {
	if p, err = s.Authenticate(ctx, token); err != nil {
		return "", p, err
	}
	now := s.options.Now()
	begun := session{HashOf(token), now.Add(sessionLength)}
	if p.ID == principal.LocalID {
		begun.expires = now.Add(ownerLength)
	}
	if !p.Expires.IsZero() && p.Expires.Before(begun.expires) {
		begun.expires = p.Expires
	}
	p.Expires = begun.expires
	cookie = rand.Text()
	hash := HashOf(cookie)
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM access_sessions WHERE expires < $1", db.UnixMicro(now)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO access_sessions (hash, token, created, expires) VALUES ($1, $2, $3, $4)",
			hash[:], begun.token[:], db.UnixMicro(now), db.UnixMicro(begun.expires))
		return err
	})
	return cookie, p, err
}

// Session returns the principal of a session cookie.
func (s *Store) Session(ctx context.Context, cookie string) (principal.Principal, error) {
	hash := HashOf(cookie)
	if err := s.renew(ctx); err != nil {
		return principal.Anonymous(), err
	}
	s.mu.Lock()
	begun, seen := s.sessions[hash]
	s.mu.Unlock()
	if !seen {
		var err error
		if begun, err = s.loadSession(ctx, hash); err != nil {
			return principal.Anonymous(), err
		}
		s.mu.Lock()
		s.sessions[hash] = begun
		s.mu.Unlock()
	}
	if !s.options.Now().Before(begun.expires) {
		return principal.Anonymous(), errSession
	}
	p, err := s.find(ctx, begun.token)
	if err == nil && (p.Expires.IsZero() || begun.expires.Before(p.Expires)) {
		p.Expires = begun.expires
	}
	return p, err
}

var errSession = fault.New(fault.NeedsAuth, "the session has ended").WithHint("log in again with your key")

func (s *Store) loadSession(ctx context.Context, hash Hash) (begun session, err error) {
	var token []byte
	err = s.db.QueryRow(ctx, "SELECT token, expires FROM access_sessions WHERE hash = $1", hash[:]).Scan(&token, db.Micros(&begun.expires))
	if errors.Is(err, sql.ErrNoRows) {
		return begun, errSession
	}
	copy(begun.token[:], token)
	return begun, err
}

// EndSession ends a session.
func (s *Store) EndSession(ctx context.Context, cookie string) error {
	hash := HashOf(cookie)
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM access_sessions WHERE hash = $1", hash[:]); err != nil {
			return err
		}
		return tx.Notify(Topic, "session")
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, hash)
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
