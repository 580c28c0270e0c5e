package db

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/luanette/luanette/internal/base/fault"
)

// Claim makes this process the only holder of the claim called name on this database,
// until release is called or the process ends, even by a crash. While another process
// holds it, Claim returns a fault.Conflict at once. On Postgres the claim also ends with
// the connection that holds it, when the server restarts.
func (d *DB) Claim(ctx context.Context, name string) (release func() error, err error) {
	if d.closed.Load() {
		return nil, errClosed()
	}
	return d.dialect.claim(ctx, name)
}

// claim opens an empty database beside the file in an exclusive transaction. It is a
// lock of the operating system, which needs no cleanup after a crash.
func (s *sqliteFile) claim(ctx context.Context, name string) (func() error, error) {
	path := s.path + "." + name + ".lock"
	file := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "_busy_timeout=0&_txlock=exclusive"}
	pool, err := sql.Open("sqlite", file.String())
	if err != nil {
		return nil, doing("claim "+name, err)
	}
	tx, err := pool.BeginTx(context.WithoutCancel(ctx), nil)
	if err == nil {
		return func() error { return errors.Join(tx.Rollback(), pool.Close()) }, nil
	}
	if e := (*sqlite.Error)(nil); errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY {
		err = fault.New(fault.Conflict, "another process has claimed %s of %s", name, s.path).
			WithHint("stop the other process, or give this one a data folder of its own")
	}
	return nil, errors.Join(err, pool.Close())
}

// claim takes an advisory lock on a connection of its own.
func (p *postgres) claim(ctx context.Context, name string) (func() error, error) {
	conn, err := pgx.ConnectConfig(ctx, p.config.ConnConfig.Copy())
	if err != nil {
		return nil, doing("claim "+name, p.explain(err))
	}
	var ours bool
	if err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", p.key("claim "+name)).Scan(&ours); err == nil && ours {
		return func() error { return giveBack(context.WithoutCancel(ctx), conn) }, nil
	}
	if err == nil {
		err = fault.New(fault.Conflict, "another process has claimed %s of %s", name, p.where).
			WithHint("stop the other process, or give this one a database of its own")
	}
	return nil, errors.Join(p.explain(err), conn.Close(context.WithoutCancel(ctx)))
}

// unclaimTime is how long the server may take to release a claim.
const unclaimTime = 10 * time.Second

// giveBack unlocks and closes the connection. The server releases a lock some time after
// its connection has closed, but the next claim should succeed at once. A lock that
// cannot be released ends with the connection.
func giveBack(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, unclaimTime)
	defer cancel()
	_, _ = conn.Exec(ctx, "SELECT pg_advisory_unlock_all()")
	return conn.Close(ctx)
}
