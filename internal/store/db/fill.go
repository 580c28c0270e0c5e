package db

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
)

// Filling is an empty database that is filled from a Dump: first its tables, by
// MigrateTo or by the libraries that create their own, then rows by Load, then Finish.
// No other process can open the database until FillEmpty returns. If FillEmpty fails,
// the database is empty again.
type Filling struct {
	DB *DB

	load loader
}

// loader inserts rows into tables.
type loader interface {
	columns(ctx context.Context, table string) ([]string, error)
	// rows inserts the rows that next returns, until it returns none. The first call
	// for a table removes the rows that its creation inserted.
	rows(ctx context.Context, t Table, next func() ([]any, error)) error
	commit(ctx context.Context) error
}

// FillEmpty calls f to fill the database at address, which must be empty.
func FillEmpty(ctx context.Context, address string, f func(*Filling) error) error {
	d, err := dialectOf(address)
	if err != nil {
		return err
	}
	return d.explain(d.fill(ctx, f))
}

// MigrateTo is DB.Migrate up to a version.
func (f *Filling) MigrateTo(ctx context.Context, set string, files fs.FS, version int64) error {
	return f.DB.migrateTo(ctx, set, files, version)
}

// Load inserts rows into a table. The tables it refers to must be loaded before.
func (f *Filling) Load(ctx context.Context, t Table, next func() ([]any, error)) error {
	known, err := f.load.columns(ctx, t.Name)
	if err != nil {
		return doing("load table "+t.Name, err)
	}
	for _, column := range t.Columns {
		if !slices.Contains(known, column) {
			return ErrUnknownColumn
		}
	}
	var broken error // the error of next is the cause, so it is the one to report
	err = f.load.rows(ctx, t, func() (row []any, err error) {
		row, broken = next()
		return row, broken
	})
	if broken != nil {
		return broken
	}
	return doing("load table "+t.Name, f.DB.dialect.explain(err))
}

// ErrUnknownColumn means that a table to load does not exist, or lacks a column.
var ErrUnknownColumn = errors.New("the table does not exist, or lacks a column")

// Finish commits what was loaded.
func (f *Filling) Finish(ctx context.Context) error {
	return doing("commit the loaded rows", f.load.commit(ctx))
}

// ErrNotEmpty means that a database that must be empty is not.
var ErrNotEmpty = errors.New("the database is not empty")

func errNotEmpty(where string) error {
	return fault.Wrap(fault.Conflict, ErrNotEmpty, "%s holds tables already", where).
		WithHint("restore into a new database, or a new schema of it (?search_path=NAME)")
}
