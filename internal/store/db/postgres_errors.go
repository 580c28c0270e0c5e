package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/luanette/luanette/internal/base/fault"
)

// lost means that the connection was lost: what was not committed is rolled back.
type lost struct{ error }

func (l lost) Unwrap() error { return l.error }

// isLost reports whether err is that of a lost connection, or of a server that is
// unreachable or refuses connections at the moment.
func isLost(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch e.Code {
		case "57P01", "57P02", "57P03", "53300": // shut down, crashed, starting up; too many connections
			return true
		}
		return strings.HasPrefix(e.Code, "08")
	}
	var l lost
	var refused *pgconn.ConnectError
	var wire *net.OpError
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &refused):
		return true // including a timeout: it is that of the attempt
	case errors.Is(err, context.DeadlineExceeded):
		return false
	}
	return errors.As(err, &l) || errors.As(err, &wire) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// isConflict reports whether another transaction conflicted with ours, which must then
// be run again.
func isConflict(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, a lock that took too long
		return true
	case "0A000": // a migration changed the tables of a prepared statement
		return strings.Contains(e.Message, "cached plan")
	}
	return false
}

func (p *postgres) explain(err error) error {
	if err == nil || explained(err) {
		return err
	}
	switch {
	case isConflict(err):
		return fault.Wrap(fault.Unavailable, err, "the write kept conflicting with other writes").WithHint("try again in a moment")
	case isLost(err):
		return fault.Wrap(fault.Unavailable, err, "the database is unreachable").
			WithHint("make sure that Postgres runs at %s; this program then continues by itself", p.where)
	}
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case "23505":
		return fmt.Errorf("%w: %w", ErrUnique, err)
	case "23503":
		return fmt.Errorf("%w: %w", ErrForeignKey, err)
	case "22021", "22P05":
		return fault.Wrap(fault.InvalidParams, err, "text that Postgres cannot store").
			WithHint("remove zero bytes and invalid UTF-8")
	case "53100":
		return fault.Wrap(fault.Unavailable, unwritable{err}, "the disk of the database is full").
			WithHint("free disk space at %s, then try again", p.where)
	case "XX001", "XX002":
		return fault.Wrap(fault.Internal, err, "the database is damaged").
			WithHint("restore %s from a backup", p.where)
	}
	if strings.HasPrefix(e.Code, "23") {
		return fmt.Errorf("%w: %w", ErrConstraint, err)
	}
	return err
}

func (p *postgres) cannotOpen(err error) error {
	if explained(err) {
		return err
	}
	hint := fmt.Sprintf("make sure that Postgres runs at %s and accepts connections from here", p.where)
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch {
		case strings.HasPrefix(e.Code, "28"):
			hint = "give the right user and password, postgres://USER:PASSWORD@HOST/DATABASE, or let Postgres trust them (pg_hba.conf)"
		case e.Code == "3D000":
			hint = "make the database first: createdb " + p.config.ConnConfig.Database
		case e.Code == "42501":
			hint = "let the user make tables: GRANT CREATE ON SCHEMA public TO " + p.config.ConnConfig.User
		}
	}
	// The library's message names user, host and database, and never the password.
	return fault.Wrap(fault.Config, err, "open database %s", p.where).WithHint("%s", hint)
}
