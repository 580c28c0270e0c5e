package db

import (
	"context"
	"database/sql"
	"net/url"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/luanette/luanette/internal/fault"
)

// dialect is what differs between databases. Another one is a file like
// sqlite.go and a line in dialectOf.
type dialect interface {
	// connect opens one pool for writing, used by one transaction at a time, and
	// one for reading, of o.Readers connections.
	connect(ctx context.Context, o Options) (writers, readers *sql.DB, err error)
	// explain adds to err what it means: one of the errors of constraint.go, or a
	// fault with a hint. It leaves alone what it does not know, nil included.
	explain(err error) error
	// check looks for damage.
	check(ctx context.Context, tx *Tx) error
	// claim is Claim.
	claim(ctx context.Context, name string) (release func() error, err error)
	// migrations is goose's word for it.
	migrations() goose.Dialect
}

func dialectOf(address string) (dialect, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch scheme {
	case "sqlite":
		return newSQLite(rest)
	case "postgres", "postgresql":
		return nil, fault.New(fault.Config, "open database %s: Postgres is not supported yet", redacted(address)).
			WithHint("use sqlite:PATH; support for Postgres comes in a later release")
	default:
		return nil, fault.New(fault.Config, "open database %s: unknown kind of database", redacted(address)).
			WithHint("use sqlite:PATH, for example sqlite:luanette.db")
	}
}

// redacted is address without its password.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(unreadable address)"
	}
	return u.Redacted()
}
