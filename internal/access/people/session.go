package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/sealed"
)

// sessionPrefix tells the cookies of people from those of keys.
const sessionPrefix = "p_"

// IsSession reports whether a cookie is that of a person's session.
func IsSession(cookie string) bool { return strings.HasPrefix(cookie, sessionPrefix) }

// sessionLength is the longest duration of a session.
const sessionLength = 12 * time.Hour

// Begun is a session that a provider began.
type Begun struct {
	Person   string
	Org      string
	Provider string
	Remote   string // the provider's name of the session; may be empty
	Tokens   Tokens
}

// Tokens are those that a provider gave with a session. They are stored encrypted.
type Tokens struct {
	ID   string `json:"id,omitempty"`   // names the session when the person signs out at the provider
	Kept string `json:"kept,omitempty"` // names the tokens that ask the provider whether the person may still sign in
}

func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// BeginSession starts a session and returns its cookie, of which only the hash is stored.
func (s *Store) BeginSession(ctx context.Context, b Begun) (cookie string, expires time.Time, err error) {
	now := s.options.Now()
	cookie, expires = sessionPrefix+rand.Text(), now.Add(sessionLength)
	hash := hashOf(cookie)
	sealed, err := s.box.Seal(b.Tokens, "session", hex.EncodeToString(hash))
	if err != nil {
		return "", expires, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM people_sessions WHERE expires < $1", now.UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO people_sessions (hash, person, org, provider, remote, created, expires, checked, sealed) VALUES ($1, $2, $3, $4, $5, $6, $7, $6, $8)",
			hash, b.Person, b.Org, b.Provider, b.Remote, now.UnixMicro(), expires.UnixMicro(), sealed)
		return err
	})
	return cookie, expires, err
}

var errSession = fault.New(fault.NeedsAuth, "the session has ended").WithHint("sign in again")

// Session returns who uses a browser. The error is fault.NeedsAuth if the session has
// ended, and fault.Denied if the person may not do anything any more.
func (s *Store) Session(ctx context.Context, cookie string) (principal.Principal, error) {
	var person, org string
	var expires time.Time
	err := s.db.QueryRow(ctx, "SELECT person, org, expires FROM people_sessions WHERE hash = $1", hashOf(cookie)).
		Scan(&person, &org, db.Micros(&expires))
	if errors.Is(err, sql.ErrNoRows) || err == nil && !expires.After(s.options.Now()) {
		return principal.Anonymous(), errSession
	}
	if err != nil {
		return principal.Anonymous(), err
	}
	who, err := s.Principal(ctx, person, org)
	if err == nil {
		who.Expires = expires
	}
	return who, err
}

// EndSession ends the session of a cookie.
func (s *Store) EndSession(ctx context.Context, cookie string) error {
	_, err := s.endSessions(ctx, "hash = $1", hashOf(cookie))
	return err
}

// EndRemote ends the sessions that a provider ended: one of its sessions, or all of a
// person if it names none. It returns how many.
func (s *Store) EndRemote(ctx context.Context, provider, remote string, of Identity) (int, error) {
	if remote != "" {
		return s.endSessions(ctx, "provider = $1 AND remote = $2", provider, remote)
	}
	return s.endSessions(ctx, "provider = $1 AND person IN (SELECT person FROM people_identities WHERE issuer = $2 AND tenant = $3 AND subject = $4)",
		provider, of.Issuer, of.Tenant, of.Subject)
}

// endSessions deletes sessions and lets all nodes check what runs for them.
func (s *Store) endSessions(ctx context.Context, where string, args ...any) (n int, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		ended, err := db.All(ctx, tx, db.Column[string],
			"DELETE FROM people_sessions WHERE "+where+" RETURNING person", args...)
		n = len(ended)
		for _, person := range ended {
			if err == nil {
				_, err = tx.Exec(ctx, "UPDATE people SET version = version + 1 WHERE id = $1", person)
			}
		}
		if err != nil || n == 0 {
			return err
		}
		return tx.Notify(Topic, "session")
	})
	if err != nil || n == 0 {
		return n, err
	}
	return n, s.Refresh(context.WithoutCancel(ctx))
}

// Stored is a session as it is stored.
type Stored struct {
	Begun
	hash    []byte
	checked int64
}

// TokensOf returns the session of a cookie, with its tokens.
func (s *Store) TokensOf(ctx context.Context, cookie string) (Stored, error) {
	list, err := s.sessions(ctx, "hash = $1", hashOf(cookie))
	if err != nil || len(list) == 0 {
		return Stored{}, errors.Join(err, errSession)
	}
	return list[0], nil
}

// Due returns sessions that their provider last confirmed before a time.
func (s *Store) Due(ctx context.Context, before time.Time) ([]Stored, error) {
	return s.sessions(ctx, "checked < $1 AND expires > $2", before.UnixMicro(), s.options.Now().UnixMicro())
}

func (s *Store) sessions(ctx context.Context, where string, args ...any) (list []Stored, err error) {
	return db.Find(ctx, s.db, func(row db.Scanner) (f Stored, err error) {
		var sealed []byte
		if err := row.Scan(&f.hash, &f.Person, &f.Org, &f.Provider, &f.Remote, &f.checked, &sealed); err != nil {
			return f, err
		}
		return f, s.box.Open(sealed, &f.Tokens, "session", hex.EncodeToString(f.hash))
	}, "SELECT hash, person, org, provider, remote, checked, sealed FROM people_sessions WHERE "+where, args...)
}

// Claim reports whether this process is the one that asks the provider about a session
// now.
func (s *Store) Claim(ctx context.Context, f Stored) (mine bool, err error) {
	n, err := s.db.Change(ctx, "UPDATE people_sessions SET checked = $3 WHERE hash = $1 AND checked = $2", f.hash, f.checked, s.options.Now().UnixMicro())
	return n == 1, err
}

// End ends a stored session.
func (s *Store) End(ctx context.Context, f Stored) error {
	_, err := s.endSessions(ctx, "hash = $1", f.hash)
	return err
}

// Sealed is the column with the encrypted tokens of providers.
func Sealed() sealed.Column {
	return sealed.Column{Table: "people_sessions", Name: "sealed", Of: []string{"hash"}, About: func(of []string) []string {
		return []string{"session", hex.EncodeToString([]byte(of[0]))}
	}}
}
