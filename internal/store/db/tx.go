package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Tx is a transaction, valid only within the function that was given it.
type Tx struct {
	tx      *sql.Tx
	dialect dialect
	// shared means that others' writes are part of the same transaction. SQLite
	// undoes all of it when it interrupts a statement, so none is interrupted.
	shared  bool
	wrote   bool   // or may have
	notes   []note // to be said when all of it is on disk
	failure error  // the first error of a statement, whatever became of it

	statements, failing int // Options.Hardship: how many there were, and which is to fail
}

// Now is the time, the same for all nodes that share the database: leases and
// deadlines that others look at are made of it.
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

// statement prepares ctx for one statement, or tells why there is to be none.
func (t *Tx) statement(ctx context.Context) (context.Context, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if t.statements++; t.statements == t.failing {
		return nil, errTried
	}
	if t.shared {
		return context.WithoutCancel(ctx), nil
	}
	return ctx, nil
}

// explain tells what a statement's error means: an interrupted one ended because
// of its ctx.
func (t *Tx) explain(ctx context.Context, err error) error {
	if t.failure == nil && err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.failure = err
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return t.dialect.explain(err)
}

// Scanner is a row to be read: a *Row, or *sql.Rows standing at one.
type Scanner interface {
	Scan(dest ...any) error
}

// Row is the one row that QueryRow asked for.
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
