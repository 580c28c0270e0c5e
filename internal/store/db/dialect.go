package db

import (
	"context"
	"database/sql"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/luanette/luanette/internal/base/fault"
)

// dialect is what differs between databases. Another one is a file like
// sqlite.go and a line in dialectOf.
type dialect interface {
	kind() Kind
	// connect opens what runs Writes, and a pool for reading of o.Readers
	// connections.
	connect(ctx context.Context, o Options) (writer, *sql.DB, error)
	// close gives back what connect took beside the two it returned.
	close() error
	// whileUnreachable does something again while the database is away.
	whileUnreachable(ctx context.Context, do func() error) error
	// explain adds to err what it means: one of the errors of constraint.go, or a
	// fault with a hint. It leaves alone what it does not know, nil included.
	explain(err error) error
	// check looks for damage.
	check(ctx context.Context, tx *Tx) error
	// claim is Claim.
	claim(ctx context.Context, name string) (release func() error, err error)
	// now is the time that all nodes agree on.
	now(ctx context.Context, tx *Tx) (time.Time, error)
	// migrations is goose's word for it.
	migrations() goose.Dialect
	// translate is what migrations that both understand need beside.
	translate(migrations fs.FS) fs.FS
	// migrating runs f on a pool for changing tables, while no other process does
	// the same if that can be had.
	migrating(ctx context.Context, f func(*sql.DB) error) error
	// carrier takes notifications to other processes; nil means there are none.
	carrier(heard *air) carrier
	// external is Guests.
	external(ctx context.Context, d *DB) (External, error)
	// dump and fill are ReadDump and FillEmpty.
	dump(ctx context.Context, f func(*Dump) error) error
	fill(ctx context.Context, f func(*Filling) error) error
}

// writer runs transactions that write.
type writer interface {
	write(ctx context.Context, f func(*Tx) error) error
	// close waits for the one that is running, and refuses all others.
	close() error
}

func dialectOf(address string) (dialect, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch scheme {
	case "sqlite":
		return newSQLite(rest)
	case "postgres", "postgresql":
		return newPostgres(address)
	default:
		return nil, fault.New(fault.Config, "open database %s: unknown kind of database", redacted(address)).
			WithHint("use sqlite:PATH, for example sqlite:luanette.db, or postgres://USER@HOST/DATABASE")
	}
}

// redacted is address without its password.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(unreadable address)"
	}
	if query := u.Query(); query.Has("password") {
		query.Set("password", "xxxxx")
		u.RawQuery = query.Encode()
	}
	return u.Redacted()
}
