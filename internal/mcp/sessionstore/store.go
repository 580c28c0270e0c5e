// Package sessionstore stores the sessions of MCP clients, so that a node can continue
// a session that another node started. Only the older protocol versions have sessions.
package sessionstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Store stores sessions in the database. It is safe for concurrent use.
type Store struct {
	db   *db.DB
	idle time.Duration
}

// Open migrates the tables and returns the store. A session expires after it was idle
// for that long.
func Open(ctx context.Context, database *db.DB, idle time.Duration) (*Store, error) {
	return &Store{database, idle}, database.Migrate(ctx, "visit", Migrations) // the name from before the package was called sessionstore
}

// key hashes the id, so that a reader of the table cannot use the session.
func key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Save stores a session, or updates its log level.
func (s *Store) Save(ctx context.Context, id string, v hub.SessionState) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO visits (id, place, who, version, caps, level, seen, menu, agent) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (id) DO UPDATE SET level = excluded.level, seen = excluded.seen`,
			key(id), v.Namespace, v.Owner, v.Version, string(v.Caps), v.Level, now.UnixMicro(), v.Menu, v.Agent)
		return err
	})
}

// Find returns a session that has not expired, and restarts its idle time. ok is false
// if there is none.
func (s *Store) Find(ctx context.Context, id string) (v hub.SessionState, ok bool, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		var caps string
		err = tx.QueryRow(ctx, `UPDATE visits SET seen = $2 WHERE id = $1 AND seen > $3 RETURNING place, who, version, caps, level, menu, agent`,
			key(id), now.UnixMicro(), now.Add(-s.idle).UnixMicro()).Scan(&v.Namespace, &v.Owner, &v.Version, &caps, &v.Level, &v.Menu, &v.Agent)
		v.Caps = []byte(caps)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return hub.SessionState{}, false, nil
	}
	return v, err == nil, err
}

// Delete removes a session.
func (s *Store) Delete(ctx context.Context, id string) error {
	return s.db.Exec(ctx, `DELETE FROM visits WHERE id = $1`, key(id))
}

// RunCleanup removes expired sessions periodically until ctx ends.
func (s *Store) RunCleanup(ctx context.Context) {
	tick := time.NewTicker(max(s.idle/4, time.Minute))
	defer tick.Stop()
	for {
		_ = s.db.Write(ctx, func(tx *db.Tx) error { // after an error: Find ignores expired sessions anyway
			now, err := tx.Now(ctx)
			if err == nil {
				_, err = tx.Exec(ctx, `DELETE FROM visits WHERE seen <= $1`, now.Add(-s.idle).UnixMicro())
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

// Personal lists the tables with sessions of MCP clients.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "visits", Where: "OWNER(who)", Hidden: []string{"id"}},
	}
}
