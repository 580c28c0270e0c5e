// Package sessionstore keeps what nodes must know of clients' sessions, of the protocol's
// older era, to go on with a session that another node began.
package sessionstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// SessionState is what a client said of itself, and what it asked for.
type Session struct {
	Namespace string // the upstream's namespace, or ""
	Owner     string // whose the session is
	Version   string // of the protocol
	Caps      []byte // the client's capabilities, JSON
	Level     string // of the log messages it wants
}

// Store keeps visits. It is safe for concurrent use.
type Store struct {
	db   *db.DB
	idle time.Duration
}

// Open finds the visits in the database, whose tables it brings up to date. One is
// forgotten when nobody came back to it for so long.
func Open(ctx context.Context, database *db.DB, idle time.Duration) (*Store, error) {
	return &Store{database, idle}, database.Migrate(ctx, "visit", migrations)
}

// key hides the id: whoever reads the table cannot use the session.
func key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Save writes a visit down, and forgets those of which nobody was heard for long.
func (b *Store) Save(ctx context.Context, id string, v Session) error {
	return b.db.Write(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO visits (id, place, who, version, caps, level, seen) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (id) DO UPDATE SET level = excluded.level, seen = excluded.seen`,
			key(id), v.Namespace, v.Owner, v.Version, string(v.Caps), v.Level, now.UnixMicro())
		return err
	})
}

// Find reads a visit that was not forgotten; ok is false when there is none.
func (b *Store) Find(ctx context.Context, id string) (v Session, ok bool, err error) {
	err = b.db.Write(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		var caps string
		err = tx.QueryRow(ctx, `UPDATE visits SET seen = $2 WHERE id = $1 AND seen > $3 RETURNING place, who, version, caps, level`,
			key(id), now.UnixMicro(), now.Add(-b.idle).UnixMicro()).Scan(&v.Namespace, &v.Owner, &v.Version, &caps, &v.Level)
		v.Caps = []byte(caps)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return Session{}, false, nil
	}
	return v, err == nil, err
}

// Delete ends a visit.
func (b *Store) Delete(ctx context.Context, id string) error {
	return b.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM visits WHERE id = $1`, key(id))
		return err
	})
}

// RunCleanup forgets visits of which nobody was heard for long, now and then until ctx
// ends.
func (b *Store) RunCleanup(ctx context.Context) {
	tick := time.NewTicker(max(b.idle/4, time.Minute))
	defer tick.Stop()
	for {
		_ = b.db.Write(ctx, func(tx *db.Tx) error { // what stays counts as forgotten all the same
			now, err := tx.Now(ctx)
			if err == nil {
				_, err = tx.Exec(ctx, `DELETE FROM visits WHERE seen <= $1`, now.Add(-b.idle).UnixMicro())
			}
			return err
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
