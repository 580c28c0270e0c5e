package db

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
)

// Filling is an empty database that is made what a Dump holds: first its tables,
// by MigrateTo and by those who make their own, then rows by Load, then Keep. Until
// FillEmpty returns nobody else opens it, and when it fails it is empty again.
type Filling struct {
	DB *DB

	load loader
}

// loader puts rows into tables.
type loader interface {
	columns(ctx context.Context, table string) ([]string, error)
	// rows are those that next returns until it returns none. The first time
	// what whoever made the table put there goes.
	rows(ctx context.Context, t Table, next func() ([]any, error)) error
	keep(ctx context.Context) error
}

// FillEmpty has f fill the database at address, which must be empty.
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

// Load puts rows into a table. The tables it refers to are loaded before.
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
	var broken error // that of next tells more than what became of it
	err = f.load.rows(ctx, t, func() (row []any, err error) {
		row, broken = next()
		return row, broken
	})
	if broken != nil {
		return broken
	}
	return doing("load table "+t.Name, f.DB.dialect.explain(err))
}

// ErrUnknownColumn means that a table to load is not there, or lacks a column.
var ErrUnknownColumn = errors.New("the table is not there, or lacks a column")

// Finish ends the loading: what was loaded can be read.
func (f *Filling) Finish(ctx context.Context) error {
	return doing("keep what was loaded", f.load.keep(ctx))
}

// ErrNotEmpty is of a database that was to be empty.
var ErrNotEmpty = errors.New("the database is not empty")

func errNotEmpty(where string) error {
	return fault.Wrap(fault.Conflict, ErrNotEmpty, "%s holds tables already", where).
		WithHint("restore into a new database, or a new schema of it (?search_path=NAME)")
}
