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

// dialect is what differs between databases. To add a database, write a file like
// sqlite.go and add a case to dialectOf.
type dialect interface {
	kind() Kind
	// connect opens the writer, and a pool of o.Readers connections for reading.
	connect(ctx context.Context, o Options) (writer, *sql.DB, error)
	// close releases what connect opened in addition.
	close() error
	// whileUnreachable retries a function while the database is unreachable.
	whileUnreachable(ctx context.Context, do func() error) error
	// explain wraps err with what it means: one of the errors of constraint.go, or a
	// fault with a hint. It returns unknown errors and nil unchanged.
	explain(err error) error
	// check looks for damage.
	check(ctx context.Context, tx *Tx) error
	// scrub is Scrub.
	scrub(ctx context.Context, d *DB) error
	// claim is Claim.
	claim(ctx context.Context, name string) (release func() error, err error)
	// now is the time on which all nodes agree.
	now(ctx context.Context, tx *Tx) (time.Time, error)
	// migrations is the name that goose has for the dialect.
	migrations() goose.Dialect
	// translate adapts migrations to the dialect.
	translate(migrations fs.FS) fs.FS
	// migrating runs f with a pool for changing tables, while no other process does
	// the same if the database can ensure that.
	migrating(ctx context.Context, f func(*sql.DB) error) error
	// carrier sends notifications to other processes; nil means that there are none.
	carrier(*broker) carrier
	// external is DB.External.
	external(ctx context.Context, d *DB) (External, error)
	// dump and fill are ReadDump and FillEmpty.
	dump(ctx context.Context, f func(*Dump) error) error
	fill(ctx context.Context, f func(*Filling) error) error
}

// writer runs transactions that write.
type writer interface {
	write(ctx context.Context, f func(*Tx) error) error
	// close waits for the running transaction, and refuses all others.
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

// redacted returns address without its password.
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
