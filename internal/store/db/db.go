// Package db is the database: the only package that knows which one it is.
// Rooms keep their own SQL and their own migrations, written so that SQLite and
// Postgres both understand them, hand the migrations to Migrate at start, and
// then Write and Read.
//
// What both understand: the types TEXT, BIGINT, DOUBLE PRECISION, BOOLEAN and
// BYTEA; $1 placeholders, ON CONFLICT, RETURNING, WITH. Times are stored as
// integers, so that every database orders them alike. Constraints are not
// deferred: they must fail with their statement, not with the commit that
// several writers share. After an error of a statement a Write can only end.
// TEXT is text, compared byte by byte: Postgres takes neither zero bytes nor
// broken UTF-8. A column of a migration stands as "name TEXT" at the beginning
// of a line, or after a bracket or comma.
//
// Several nodes may share a Postgres. Writes are serializable there, across all
// nodes: each behaves as if it ran alone, after all that had returned before it
// began. One that got in another's way is undone and run again by itself, so
// what reads, decides and writes within one Write needs no lock, and whatever it
// is given by its function must be set anew each time. What was read in another
// Read or Write may be old by the time it is used: compare it again where it
// matters (UPDATE … WHERE version = $1).
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

// Options are a database's choices. The zero value is ready to use.
type Options struct {
	// Readers is how many Reads may run at once; zero or less means 8. More wait.
	Readers int
	// OutageTimeout is how long Reads and Writes wait for a server that is away, or for
	// another program that holds the file; zero or less means 20 s and 5 s. See
	// Patiently.
	OutageTimeout time.Duration
	// InjectFaults runs the function of every Write again and again, with an error of
	// its first statement, of its second and so on, and keeps only what it does
	// when none fails: as may happen to a Write that gets in others' way. That of a
	// Read is run twice, as when the connection is lost. For tests.
	InjectFaults bool
}

// DB is an open database. It is safe for concurrent use; whoever opened it
// closes it.
type DB struct {
	dialect  dialect
	writer   writer
	readers  *sql.DB
	air      *air
	hardship bool
	closed   atomic.Bool
	sets     sync.Map // by name: the files of those that were brought up to date
}

// Open opens the database that url names: "sqlite:PATH", a file that is made
// with its folder if it does not exist, or "postgres://USER@HOST/DATABASE",
// where everything is kept in the first schema of the search path, which is made
// if need be.
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
	return &DB{dialect: d, writer: w, readers: readers, air: newAir(d), hardship: o.InjectFaults}, nil
}

// Kind is which database it is, for the few who have a better way with one.
type Kind string

// The kinds there are. Postgres may be shared with other nodes.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
)

// Kind tells which database it is.
func (d *DB) Kind() Kind { return d.dialect.kind() }

// KindOf tells which database an address is of, whether it is there or not.
func KindOf(url string) (Kind, error) {
	d, err := dialectOf(url)
	if err != nil {
		return "", err
	}
	return d.kind(), nil
}

// RedactURL is an address for people, without its password.
func RedactURL(url string) string { return redacted(url) }

// PathOf is the file that the database at address is; "" when it is none.
func PathOf(url string) string {
	d, err := dialectOf(url)
	if file, ok := d.(*sqliteFile); err == nil && ok {
		return file.path
	}
	return ""
}

// Write runs f in a transaction that is on disk when Write returns nil. If f
// returns an error, panics, or the commit fails, nothing of it has happened;
// only ErrUnknown leaves it open.
//
// Writes are as if they ran one after the other, each seeing those before it. To
// that end f may be run again after it was undone, so it must be short, do
// nothing but talk to tx, and set what it leaves behind anew each time. On
// SQLite they do run one after the other: others wait for f, and a Write within
// f would wait for itself. ctx ends the wait for the turn and is looked at
// before each statement; once f has returned, Write waits for the outcome
// whatever ctx says.
func (d *DB) Write(ctx context.Context, f func(tx *Tx) error) error {
	if d.closed.Load() {
		return errClosed()
	}
	if d.hardship {
		if err := d.undergo(ctx, f); err != nil {
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
		return d.dialect.explain(err)
	}
	d.air.say(notes...)
	return nil
}

// errTried undoes what was only tried, and is what statements fail with.
var errTried = errors.New("only tried")

// undergo runs f with one statement failing after the other, and once with none.
// What f itself answers does not count yet.
func (d *DB) undergo(ctx context.Context, f func(tx *Tx) error) error {
	const most = 10 // statements of one f
	for failing := 1; failing <= most; failing++ {
		count := 0
		err := d.writer.write(ctx, func(tx *Tx) error {
			tx.failing = failing
			_ = f(tx)
			count = tx.statements
			return errTried
		})
		if !errors.Is(err, errTried) {
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
// Statements end with their ctx; writing is an error. Where the connection is lost
// f is run again, so it must set what it leaves behind anew each time.
func (d *DB) Read(ctx context.Context, f func(tx *Tx) error) error {
	if d.closed.Load() {
		return errClosed()
	}
	if d.hardship {
		_ = d.readOnce(ctx, f)
	}
	return d.dialect.explain(d.dialect.whileUnreachable(ctx, func() error { return d.readOnce(ctx, f) }))
}

// readOnce runs f in one transaction. What the database said counts more than what
// f made of it.
func (d *DB) readOnce(ctx context.Context, f func(tx *Tx) error) error {
	inner, err := d.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return doing("begin read", err)
	}
	defer func() { _ = inner.Rollback() }() // there is nothing to keep
	tx := &Tx{tx: inner, dialect: d.dialect}
	err = f(tx)
	if err != nil && ctx.Err() == nil && isLost(tx.failure) {
		return tx.failure
	}
	return err
}

// Check looks through the whole database for damage, which takes as long as
// reading it, and tells what it found.
func (d *DB) Check(ctx context.Context) error {
	return d.Read(ctx, func(tx *Tx) error { return d.dialect.check(ctx, tx) })
}

// Close waits for the Write that is running and closes the database. Writes that
// still wait for their turn are refused; Reads that are running go on to their
// end.
func (d *DB) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	err := d.writer.close()
	d.air.close()
	return errors.Join(err, d.readers.Close(), d.dialect.close())
}

func errClosed() error {
	return fault.New(fault.Unavailable, "the database is closed").
		WithHint("the program is shutting down; try again once it runs")
}
