package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

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

// fillingTable is the table that exists while a database is being filled.
const fillingTable = "db_filling"

// refuseFilling returns an error for a database that is being filled, or whose filling was
// interrupted.
func (p *postgres) refuseFilling(ctx context.Context, conn *pgx.Conn) error {
	is, err := p.isFilling(ctx, conn)
	if err != nil || !is {
		return err
	}
	return fault.New(fault.Conflict, "a restore into %s is running or was interrupted", p.where).
		WithHint("wait until it ends; if it was interrupted, run `luanette restore` again, which starts over")
}

func (p *postgres) isFilling(ctx context.Context, conn *pgx.Conn) (is bool, err error) {
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = $2)", p.schema, fillingTable).Scan(&is)
	return is, err
}

// fill holds a lock while it fills. A table marks the database as incomplete, so that a
// crash is noticed.
func (p *postgres) fill(ctx context.Context, f func(*Filling) error) (err error) {
	conn, err := p.dial(ctx)
	if err != nil {
		return p.cannotOpen(err)
	}
	lasting := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, conn.Close(lasting)) }()
	if err := p.beginFill(ctx, conn); err != nil {
		return err
	}
	defer func() { // closing the connection releases the lock too, but only when the server notices it
		_, _ = conn.Exec(lasting, "SELECT pg_advisory_unlock($1)", p.key("fill"))
	}()
	if err := p.fillTables(ctx, f); err != nil {
		return errors.Join(err, doing("empty the database again", p.empty(lasting, conn)))
	}
	_, err = conn.Exec(lasting, "DROP TABLE "+pgx.Identifier{p.schema, fillingTable}.Sanitize())
	return err
}

// beginFill checks that no other process fills the database and that it is empty, and marks it
// as incomplete.
func (p *postgres) beginFill(ctx context.Context, conn *pgx.Conn) error {
	there, err := p.findSchema(ctx, conn)
	if err != nil {
		return err
	}
	var ours bool
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", p.key("fill")).Scan(&ours); err != nil {
		return err
	}
	if !ours {
		return fault.New(fault.Conflict, "a backup is being restored into %s", p.where).WithHint("wait until it ends")
	}
	if !there {
		if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{p.schema}.Sanitize()); err != nil {
			return p.cannotOpen(err)
		}
	}
	is, err := p.isFilling(ctx, conn)
	if err == nil && is { // the process that began it has died
		err = p.empty(ctx, conn)
	}
	if err != nil {
		return err
	}
	tables, err := p.tables(ctx, conn)
	if err != nil {
		return err
	}
	for name := range tables {
		if !strings.HasPrefix(name, "db_") {
			return errNotEmpty(p.where)
		}
	}
	if _, err = conn.Exec(ctx, "CREATE TABLE "+pgx.Identifier{p.schema, fillingTable}.Sanitize()+" (one BIGINT)"); err != nil {
		return p.cannotOpen(err)
	}
	return nil
}

// empty removes all tables; the one that marks the database as incomplete comes last.
func (p *postgres) empty(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "SET client_min_messages = error; DROP SCHEMA IF EXISTS "+pgx.Identifier{p.externalSchema()}.Sanitize()+" CASCADE"); err != nil {
		return err
	}
	tables, err := p.tables(ctx, conn)
	if err != nil {
		return err
	}
	for name, t := range tables {
		if name == fillingTable {
			continue
		}
		if _, err := conn.Exec(ctx, "DROP TABLE IF EXISTS "+t.id.Sanitize()+" CASCADE"); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, "DROP TABLE IF EXISTS "+pgx.Identifier{p.schema, fillingTable}.Sanitize())
	return err
}

func (p *postgres) fillTables(ctx context.Context, f func(*Filling) error) (err error) {
	inner := &postgres{config: p.config, plain: p.plain, where: p.where, most: p.most, filling: true}
	d, err := open(ctx, inner, Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return f(&Filling{DB: d, load: &pgLoad{p: p, conn: conn, begun: map[string]bool{}}})
}

// pgLoad loads within one transaction.
type pgLoad struct {
	p      *postgres
	conn   *pgx.Conn
	tables map[string]*pgTable // set when the transaction has begun
	begun  map[string]bool
}

func (l *pgLoad) columns(ctx context.Context, table string) (_ []string, err error) {
	if l.tables == nil {
		if l.tables, err = l.p.tables(ctx, l.conn); err == nil {
			_, err = l.conn.Exec(ctx, "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0")
		}
	}
	if err != nil || l.tables[table] == nil {
		return nil, err
	}
	return l.tables[table].columns, nil
}

func (l *pgLoad) rows(ctx context.Context, t Table, next func() ([]any, error)) error {
	table := l.tables[t.Name]
	if !l.begun[t.Name] {
		l.begun[t.Name] = true
		if _, err := l.conn.Exec(ctx, "DELETE FROM "+table.id.Sanitize()); err != nil {
			return err
		}
	}
	_, err := l.conn.CopyFrom(ctx, table.id, t.Columns, pgx.CopyFromFunc(func() ([]any, error) {
		row, err := next()
		if err != nil || row == nil {
			return nil, err
		}
		for i, column := range t.Columns {
			row[i] = asType(row[i], table.types[column])
		}
		return row, nil
	}))
	return err
}

// asType converts a value to the type of a column, for types that SQLite does not have.
func asType(v any, kind string) any {
	switch v := v.(type) {
	case int64:
		switch kind {
		case "bool":
			return v != 0
		case "float8":
			return float64(v)
		case "text", "varchar", "numeric":
			return fmt.Sprint(v)
		}
	case float64:
		if kind == "numeric" {
			return fmt.Sprint(v)
		}
	case string:
		if kind == "bytea" {
			return []byte(v)
		}
	case []byte:
		if kind == "text" || kind == "varchar" {
			return string(v)
		}
	}
	return v
}

// commit commits, and updates the planner's statistics.
func (l *pgLoad) commit(ctx context.Context) error {
	if l.tables == nil {
		return nil
	}
	if _, err := l.conn.Exec(ctx, "COMMIT"); err != nil {
		return err
	}
	for name := range l.begun {
		if _, err := l.conn.Exec(ctx, "ANALYZE "+l.tables[name].id.Sanitize()); err != nil {
			return err
		}
	}
	return nil
}
