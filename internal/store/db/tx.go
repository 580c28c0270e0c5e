package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Tx is a transaction. It is valid only until the function it was passed to returns.
type Tx struct {
	tx      *sql.Tx
	dialect dialect
	// shared means that other Writes are part of the same transaction. SQLite rolls
	// all of it back when a statement is interrupted, so none is.
	shared  bool
	wrote   bool   // or may have
	notes   []note // sent after the commit
	failure error  // the first error of a statement, even if the function ignored it

	statements, failing int // Options.InjectFaults: how many there were, and which one fails
}

// Now is the time of the database server, the same for all nodes. Use it for leases
// and deadlines that other nodes compare.
func (t *Tx) Now(ctx context.Context) (time.Time, error) { return t.dialect.now(ctx, t) }

// Exec runs a statement that returns no rows.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	ctx, err := t.statement(ctx)
	if err != nil {
		return nil, err
	}
	t.wrote = true
	res, err := t.tx.ExecContext(ctx, query, args...)
	return res, t.explain(ctx, err)
}

// Query runs a statement that returns rows, which the caller closes; All is
// often shorter.
func (t *Tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	ctx, err := t.statement(ctx)
	if err != nil {
		return nil, err
	}
	t.wrote = t.wrote || !onlyReads(query)
	rows, err := t.tx.QueryContext(ctx, query, args...)
	return rows, t.explain(ctx, err)
}

// QueryRow runs a statement that returns at most one row. Its errors, and
// sql.ErrNoRows when there is none, come from Scan.
func (t *Tx) QueryRow(ctx context.Context, query string, args ...any) *Row {
	ctx, err := t.statement(ctx)
	if err != nil {
		return &Row{err: err}
	}
	t.wrote = t.wrote || !onlyReads(query)
	row := t.tx.QueryRowContext(ctx, query, args...)
	return &Row{row: row, explain: func(err error) error { return t.explain(ctx, err) }}
}

// statement prepares ctx for one statement, or returns why it must not run.
func (t *Tx) statement(ctx context.Context) (context.Context, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if t.statements++; t.statements == t.failing {
		return nil, errInjected
	}
	if t.shared {
		return context.WithoutCancel(ctx), nil
	}
	return ctx, nil
}

// explain makes an error of the database one of this package. If ctx has ended, its
// cause comes first.
func (t *Tx) explain(ctx context.Context, err error) error {
	if t.failure == nil && err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.failure = err
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return t.dialect.explain(err)
}

// Scanner is a row: a *Row, or the current one of *sql.Rows.
type Scanner interface {
	Scan(dest ...any) error
}

// Row is the result of QueryRow.
type Row struct {
	row     *sql.Row
	explain func(error) error
	err     error
}

// Scan reads the row's columns into dest.
func (r *Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	return r.explain(r.row.Scan(dest...))
}

// All runs a query and reads all its rows, each by scan.
func All[T any](ctx context.Context, tx *Tx, scan func(Scanner) (T, error), query string, args ...any) (_ []T, err error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, tx.explain(ctx, rows.Err())
}

func doing(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
