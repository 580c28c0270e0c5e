package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// fill fills the file, which must be empty. The caller removes the file if that fails.
func (s *sqliteFile) fill(ctx context.Context, f func(*Filling) error) (err error) {
	if info, err := os.Stat(s.path); err == nil && info.Size() > 0 {
		return errNotEmpty(s.path)
	}
	d, err := Open(ctx, "sqlite:"+s.path, Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	own := d.dialect.(*sqliteFile)
	l := &sqliteLoad{pool: own.writers, begun: map[string]bool{}}
	defer func() { err = errors.Join(err, l.end()) }()
	if err := f(&Filling{DB: d, load: l}); err != nil {
		return err
	}
	return d.Check(ctx)
}

// sqliteLoad loads within one transaction.
type sqliteLoad struct {
	pool  *sql.DB
	tx    *sql.Tx
	begun map[string]bool // tables that have been cleared
}

func (l *sqliteLoad) columns(ctx context.Context, table string) ([]string, error) {
	if err := l.begin(ctx); err != nil {
		return nil, err
	}
	return namesIn(ctx, l.tx, "SELECT name FROM pragma_table_info($1)", table)
}

func (l *sqliteLoad) begin(ctx context.Context) (err error) {
	if l.tx == nil {
		l.tx, err = l.pool.BeginTx(context.WithoutCancel(ctx), nil)
	}
	return err
}

func (l *sqliteLoad) rows(ctx context.Context, t Table, next func() ([]any, error)) (err error) {
	table := list(t.Name)
	if !l.begun[t.Name] {
		l.begun[t.Name] = true
		if _, err := l.tx.ExecContext(ctx, "DELETE FROM "+table); err != nil {
			return err
		}
	}
	places := ""
	for i := range t.Columns {
		places += fmt.Sprintf(", $%d", i+1)
	}
	insert, err := l.tx.PrepareContext(ctx, "INSERT INTO "+table+" ("+list(t.Columns...)+") VALUES ("+places[2:]+")")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	for {
		row, err := next()
		if err != nil || row == nil {
			return err
		}
		if _, err := insert.ExecContext(ctx, row...); err != nil {
			return err
		}
	}
}

func (l *sqliteLoad) commit(context.Context) error {
	if l.tx == nil {
		return nil
	}
	defer func() { l.tx = nil }()
	return l.tx.Commit()
}

func (l *sqliteLoad) end() error {
	if l.tx == nil {
		return nil
	}
	return l.tx.Rollback()
}
