// Package db is the database: the only package that knows which one it is. Other
// packages have their own SQL and migrations, written so that SQLite and Postgres
// both understand them. They pass the migrations to Migrate at start, and then use
// Write and Read.
//
// Both databases understand the types TEXT, BIGINT, DOUBLE PRECISION, BOOLEAN and
// BYTEA; $1 placeholders, ON CONFLICT, RETURNING, WITH. Times are stored as
// integers, so that every database orders them alike. Constraints are not
// deferred: they must fail with their statement, not with the commit that
// several writers share. After an error of a statement a Write can only end.
// TEXT is compared byte by byte; Postgres accepts neither zero bytes nor invalid
// UTF-8. A text column of a migration must be written as "name TEXT" at the beginning
// of a line, or after a bracket or comma.
//
// Several nodes may share a Postgres database. Writes are serializable there, across
// all nodes: each behaves as if it ran alone, after all Writes that had returned before
// it began. A Write that conflicts with another is rolled back and run again, so a
// function that reads, decides and writes within one Write needs no lock, but must
// reset its results each time it runs. Data from another Read or Write may be outdated:
// compare it again where it matters (UPDATE … WHERE version = $1).
package db

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Options configure a database. The zero value is ready to use.
type Options struct {
	// Readers is the maximum number of concurrent Reads; zero or less means 8.
	Readers int
	// OutageTimeout is how long Reads and Writes wait for an unreachable server, or
	// for another program that has locked the file; zero or less means 20 s and 5 s.
	// See WaitForDatabase.
	OutageTimeout time.Duration
	// InjectFaults runs the function of every Write several times, with an error of
	// its first statement, of its second and so on, and commits only the run without
	// an error, as if the Write had conflicted with others. It runs the function of
	// every Read twice, as if the connection had been lost. For tests.
	InjectFaults bool
}

// DB is an open database. It is safe for concurrent use. The caller that opened it
// closes it.
type DB struct {
	dialect dialect
	writer  writer
	readers *sql.DB
	broker  *broker
	faults  bool
	closed  atomic.Bool
	sets    sync.Map // files of the migrated sets, by name

	unwritable atomic.Bool // a write failed because of the disk, and CheckWritable found no space since
}

// Open opens the database that url names: "sqlite:PATH", a file that is created with
// its folder if it does not exist, or "postgres://USER@HOST/DATABASE", where everything
// is stored in the first schema of the search path, which is created if necessary.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	d, err := dialectOf(url)
	if err != nil {
		return nil, err
	}
	return open(ctx, d, o)
}

func open(ctx context.Context, d dialect, o Options) (*DB, error) {
	if o.Readers <= 0 {
		o.Readers = 8
	}
	w, readers, err := d.connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return &DB{dialect: d, writer: w, readers: readers, broker: newBroker(d), faults: o.InjectFaults}, nil
}

// Kind is the kind of a database, for packages that use features of one of them.
type Kind string

// The kinds of databases. Other nodes may share Postgres.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
)

// Kind returns the kind of the database.
func (d *DB) Kind() Kind { return d.dialect.kind() }

// KindOf returns the kind of database of an address, which need not exist.
func KindOf(url string) (Kind, error) {
	d, err := dialectOf(url)
	if err != nil {
		return "", err
	}
	return d.kind(), nil
}

// RedactURL returns an address without its password, for display.
func RedactURL(url string) string { return redacted(url) }

// PathOf returns the file of the database at address, or "" if it is not a file.
func PathOf(url string) string {
	d, err := dialectOf(url)
	if file, ok := d.(*sqliteFile); err == nil && ok {
		return file.path
	}
	return ""
}

// Write runs f in a transaction that is on disk when Write returns nil. If f
// returns an error, panics, or the commit fails, the transaction is rolled back;
// only ErrCommitUnknown leaves the outcome open.
//
// Writes behave as if they ran one after the other, each seeing those before it. For
// this f may be run again after a rollback, so it must be short, use nothing but tx,
// and reset its results each time. On SQLite, Writes do run one after the other: others
// wait for f, and a Write within f deadlocks. ctx ends the wait for the turn and is
// checked before each statement; once f has returned, Write waits for the outcome
// regardless of ctx.
func (d *DB) Write(ctx context.Context, f func(tx *Tx) error) error {
	if d.closed.Load() {
		return errClosed()
	}
	if d.faults {
		if err := d.injectFaults(ctx, f); err != nil {
			return err
		}
	}
	var notes []note
	err := d.writer.write(ctx, func(tx *Tx) error {
		err := f(tx)
		notes = tx.notes
		return err
	})
	if err != nil {
		err = d.dialect.explain(err)
		d.noteWrite(err)
		return err
	}
	d.noteWrite(nil)
	d.broker.publish(notes...)
	return nil
}

// errInjected rolls back a run with an injected fault, and is that fault.
var errInjected = errors.New("injected fault")

// injectFaults runs f with one statement failing after the other, and once with none. It
// ignores what f returns.
func (d *DB) injectFaults(ctx context.Context, f func(tx *Tx) error) error {
	const most = 10 // statements of one f
	for failing := 1; failing <= most; failing++ {
		count := 0
		err := d.writer.write(ctx, func(tx *Tx) error {
			tx.failing = failing
			_ = f(tx)
			count = tx.statements
			return errInjected
		})
		if !errors.Is(err, errInjected) {
			return d.dialect.explain(err)
		}
		if count < failing {
			break
		}
	}
	return nil
}

// Read runs f on an unchanging view of the database: what was committed when it
// began, including every Write that has returned. Reads do not wait for writers.
// Statements end with their ctx; writing is an error. If the connection is lost,
// f is run again, so it must reset its results each time.
func (d *DB) Read(ctx context.Context, f func(tx *Tx) error) error {
	if d.closed.Load() {
		return errClosed()
	}
	if d.faults {
		_ = d.readOnce(ctx, f)
	}
	return d.dialect.explain(d.dialect.whileUnreachable(ctx, func() error { return d.readOnce(ctx, f) }))
}

// readOnce runs f in one transaction. An error of the database takes precedence over
// what f returns.
func (d *DB) readOnce(ctx context.Context, f func(tx *Tx) error) error {
	inner, err := d.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return doing("begin read", err)
	}
	defer func() { _ = inner.Rollback() }() // nothing was written
	tx := &Tx{tx: inner, dialect: d.dialect}
	err = f(tx)
	if err != nil && ctx.Err() == nil && isLost(tx.failure) {
		return tx.failure
	}
	return err
}

// Check reads the whole database and returns an error that describes any damage.
func (d *DB) Check(ctx context.Context) error {
	return d.Read(ctx, func(tx *Tx) error { return d.dialect.check(ctx, tx) })
}

// Close waits for the running Write and closes the database. Writes that are queued
// are refused; running Reads continue to their end.
func (d *DB) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	err := d.writer.close()
	d.broker.close()
	return errors.Join(err, d.readers.Close(), d.dialect.close())
}

func errClosed() error {
	return fault.New(fault.Unavailable, "the database is closed").
		WithHint("the program is shutting down; try again once it runs")
}
