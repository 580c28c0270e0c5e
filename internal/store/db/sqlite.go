package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/luanette/luanette/internal/base/fault"
)

// sqliteFile is a database in one file with a write-ahead log beside it: readers see the
// last commit while a writer writes.
type sqliteFile struct {
	path    string // absolute
	writers *sql.DB
}

func newSQLite(path string) (*sqliteFile, error) {
	if path == "" || strings.HasPrefix(path, ":") {
		return nil, fault.New(fault.Config, "open database sqlite:%s: not the path of a file", path).
			WithHint("use sqlite:PATH, for example sqlite:luanette.db")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "open database sqlite:%s", path)
	}
	return &sqliteFile{path: abs}, nil
}

func (s *sqliteFile) connect(ctx context.Context, o Options) (_ writer, readers *sql.DB, err error) {
	var writers *sql.DB
	if err := s.touch(); err != nil {
		return nil, nil, s.cannotOpen(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(writers, readers))
		}
	}()
	// The first connection creates the file and enables the log.
	if writers, err = s.pool(ctx, 1, o, "_txlock=immediate"); err != nil {
		return nil, nil, s.cannotOpen(err)
	}
	if readers, err = s.pool(ctx, o.Readers, o, "_query_only=1"); err != nil {
		return nil, readers, s.cannotOpen(err)
	}
	if err := s.damaged(readSchema(ctx, readers), fault.Config); err != nil {
		return nil, readers, err
	}
	s.writers = writers
	return newGroupWriter(writers, s), readers, nil
}

// touch creates the file if it does not exist, readable only by its owner. SQLite gives
// the files beside it the same permissions.
func (s *sqliteFile) touch() error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// pool opens a pool of size connections and tries one.
func (s *sqliteFile) pool(ctx context.Context, size int, o Options, more string) (*sql.DB, error) {
	busy := o.OutageTimeout
	if busy <= 0 {
		busy = 5 * time.Second
	}
	// Data for rollbacks is kept in memory, as everything else of a transaction
	// that is not written yet. What is deleted is overwritten with zeros.
	const settings = "_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1&_pragma=temp_store(memory)&_pragma=secure_delete(fast)&"
	file := url.URL{Scheme: "file", Path: filepath.ToSlash(s.path), RawQuery: fmt.Sprintf("_busy_timeout=%d&%s%s", busy.Milliseconds(), settings, more)}
	connector, err := newCachingConnector(file.String())
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, pool.PingContext(ctx)
}

func (s *sqliteFile) cannotOpen(err error) error {
	if err := s.damaged(err, fault.Config); err != nil {
		return err
	}
	return fault.Wrap(fault.Config, err, "open database sqlite:%s", s.path).
		WithHint("give a writable path, to a new file or to one that Luanette created")
}

func (s *sqliteFile) explain(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) || explained(err) {
		return err
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return fmt.Errorf("%w: %w", ErrUnique, err)
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return fmt.Errorf("%w: %w", ErrForeignKey, err)
	}
	switch e.Code() & 0xff { // the primary code, without the extended one
	case sqlite3.SQLITE_CONSTRAINT:
		return fmt.Errorf("%w: %w", ErrConstraint, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fault.Wrap(fault.Unavailable, err, "the database is busy").
			WithHint("another program holds %s; try again when it is done", s.path)
	case sqlite3.SQLITE_FULL:
		return fault.Wrap(fault.Unavailable, unwritable{err}, "the disk is full").
			WithHint("free space on the disk of %s, then try again", s.path)
	case sqlite3.SQLITE_READONLY:
		return fault.Wrap(fault.Unavailable, unwritable{err}, "the database is read-only").
			WithHint("make %s and its folder writable for the user of the server", s.path)
	case sqlite3.SQLITE_IOERR:
		return fault.Wrap(fault.Unavailable, unwritable{err}, "the disk of the database fails").
			WithHint("check the disk of %s, and the quota of its user", s.path)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return s.damaged(err, fault.Internal)
	}
	return err
}

// explained reports whether err was returned by explain before.
func explained(err error) bool {
	var f *fault.Error
	return errors.As(err, &f)
}

func (s *sqliteFile) check(ctx context.Context, tx *Tx) error {
	text := func(row Scanner) (found string, err error) { return found, row.Scan(&found) }
	problems, err := All(ctx, tx, text, "SELECT integrity_check FROM pragma_integrity_check")
	if err != nil {
		return doing("check database", err)
	}
	orphans, err := All(ctx, tx, text,
		`SELECT 'row ' || coalesce(rowid, '?') || ' of ' || "table" || ' refers to nothing in ' || parent
		 FROM pragma_foreign_key_check`)
	if err != nil {
		return doing("check database", err)
	}
	if len(problems) == 1 && problems[0] == "ok" {
		problems = nil
	}
	if problems = append(problems, orphans...); len(problems) == 0 {
		return nil
	}
	return fault.New(fault.Internal, "the database is damaged: %s", strings.Join(problems, "; ")).
		WithHint("restore %s from a backup", s.path)
}

func (*sqliteFile) migrations() goose.Dialect { return goose.DialectSQLite3 }

func (*sqliteFile) translate(migrations fs.FS) fs.FS { return migrations }

func (*sqliteFile) kind() Kind { return SQLite }

// migrating relies on SQLite's own lock, one migration at a time.
func (s *sqliteFile) migrating(_ context.Context, f func(*sql.DB) error) error { return f(s.writers) }

// now is this machine's time: all processes that share a file run on it.
func (*sqliteFile) now(context.Context, *Tx) (time.Time, error) { return time.Now(), nil }

// carrier returns nil: only one process serves from a file.
func (*sqliteFile) carrier(*broker) carrier { return nil }

func (*sqliteFile) close() error { return nil }

func closeAll(pools ...*sql.DB) (err error) {
	for _, p := range pools {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return err
}
