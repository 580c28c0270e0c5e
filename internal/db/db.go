// Package db is the database: the only package that knows which one it is.
// Rooms keep their own SQL and their own migrations, written so that SQLite and
// Postgres both understand them, hand the migrations to Migrate at start, and
// then Write and Read.
//
// What both understand: the types TEXT, BIGINT, DOUBLE PRECISION, BOOLEAN and
// BYTEA; $1 placeholders, ON CONFLICT, RETURNING, WITH. Times are stored as
// integers, so that every database orders them alike. Constraints are not
// deferred: they must fail with their statement, not with the commit that
// several writers share.
package db

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"github.com/luanette/luanette/internal/fault"
)

// Options are a database's choices. The zero value is ready to use.
type Options struct {
	// Readers is how many Reads may run at once; zero or less means 8. More wait.
	Readers int
}

// DB is an open database. It is safe for concurrent use; whoever opened it
// closes it.
type DB struct {
	dialect dialect
	writer  *writer
	readers *sql.DB
	closed  atomic.Bool
}

// Open opens the database that url names, and makes it if it does not exist:
// "sqlite:PATH", a file whose folder is made too.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	if o.Readers <= 0 {
		o.Readers = 8
	}
	d, err := dialectOf(url)
	if err != nil {
		return nil, err
	}
	writers, readers, err := d.connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return &DB{dialect: d, writer: newWriter(writers, d), readers: readers}, nil
}

// Write runs f in a transaction that is on disk when Write returns nil. If f
// returns an error, panics, or the commit fails, nothing of it has happened.
//
// Writes run one after the other, each seeing those before it. Writers that wait
// share a commit, so f must be short and do nothing but talk to tx: others wait
// for it, and a Write within f would wait for itself. ctx ends the wait for
// the turn and is looked at before each statement; once f has returned, Write
// waits for the outcome whatever ctx says.
func (d *DB) Write(ctx context.Context, f func(tx *Tx) error) error {
	if d.closed.Load() {
		return errClosed()
	}
	return d.dialect.explain(d.writer.write(ctx, f))
}

// Read runs f on an unchanging view of the database: what was committed when it
// began, including every Write that has returned. Reads do not wait for writers.
// Statements end with their ctx; writing is an error.
func (d *DB) Read(ctx context.Context, f func(tx *Tx) error) error {
	if d.closed.Load() {
		return errClosed()
	}
	tx, err := d.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return d.dialect.explain(doing("begin read", err))
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to keep
	return d.dialect.explain(f(&Tx{tx: tx, explain: d.dialect.explain}))
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
	return errors.Join(d.writer.close(), d.readers.Close())
}

func errClosed() error {
	return fault.New(fault.Unavailable, "the database is closed").
		WithHint("the program is shutting down; try again once it runs")
}
