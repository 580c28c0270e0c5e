package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/luanette/luanette/internal/base/fault"
)

// Dump is the content of a database at one moment; others may use the database
// meanwhile. Its form does not depend on the kind of database. Indexes and the tables
// that this package needs for itself are not part of it.
type Dump struct {
	Versions map[string]int64 // version of each set of migrations: see Migrate
	Tables   []Table          // including those of External; a table comes after those it refers to
	Size     int64            // approximate number of bytes to read

	rows func(ctx context.Context, t Table, take func(row []any) error) error
}

// Table is a table of a Dump.
type Table struct {
	Name    string
	Columns []string
}

// Rows reads a table, ordered by its key. Values are nil, bool, int64, float64,
// string and []byte; a row is valid until take returns.
func (d *Dump) Rows(ctx context.Context, t Table, take func(row []any) error) error {
	return doing("read table "+t.Name, d.rows(ctx, t, take))
}

// ReadDump calls f with the content of the database at address. It neither creates nor
// migrates anything.
func ReadDump(ctx context.Context, address string, f func(*Dump) error) error {
	d, err := dialectOf(address)
	if err != nil {
		return err
	}
	return d.explain(d.dump(ctx, f))
}

// errNothing is the error of a database that has no tables of ours.
func errNothing(where string) error {
	return fault.New(fault.NotFound, "there is nothing to back up in %s", where).
		WithHint("name the data folder with --data, or the database with --database")
}

// migrationsPrefix begins the names of the tables that record which migrations have run.
const migrationsPrefix = "migrations_"

// isOwn reports whether a table is one of this package's own, or records which
// migrations have run.
func isOwn(table string) bool {
	return strings.HasPrefix(table, migrationsPrefix) || strings.HasPrefix(table, "db_") || table == externalPrefix+"_migrations"
}

// setOf returns the set of migrations that a table records.
func setOf(table string) (set string, ok bool) {
	set, ok = strings.CutPrefix(table, migrationsPrefix)
	return set, ok && setName().MatchString(set)
}

// found is a table and the tables it refers to.
type found struct {
	Table
	refers []string // names of the tables it refers to
}

// inOrder sorts tables behind those they refer to.
func inOrder(tables []found) []Table {
	slices.SortFunc(tables, func(a, b found) int { return cmp.Compare(a.Name, b.Name) })
	placed := map[string]bool{}
	var ordered []Table
	for len(tables) > 0 {
		waits := func(t found) bool {
			return slices.ContainsFunc(t.refers, func(name string) bool { return name != t.Name && !placed[name] })
		}
		next := max(0, slices.IndexFunc(tables, func(t found) bool { return !waits(t) })) // in a cycle, any will do
		placed[tables[next].Name] = true
		ordered = append(ordered, tables[next].Table)
		tables = slices.Delete(tables, next, next+1)
	}
	return ordered
}

// quoted returns names as quoted identifiers.
func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return out
}

func list(names ...string) string { return strings.Join(quoted(names), ", ") }

// dump reads within one transaction, while others write.
func (s *sqliteFile) dump(ctx context.Context, f func(*Dump) error) (err error) {
	if info, err := os.Stat(s.path); err != nil || info.Size() == 0 {
		return errNothing(s.path)
	}
	file := url.URL{Scheme: "file", Path: filepath.ToSlash(s.path), RawQuery: "mode=ro&_busy_timeout=5000"}
	pool, err := sql.Open("sqlite", file.String())
	if err != nil {
		return doing("open database "+s.path, err)
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	pool.SetMaxOpenConns(1)
	tx, err := pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return doing("read database "+s.path, err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	d := &Dump{Versions: map[string]int64{}}
	if err := sqliteTables(ctx, tx, d); err != nil {
		return doing("read database "+s.path, err)
	}
	if len(d.Tables) == 0 {
		return errNothing(s.path)
	}
	d.rows = func(ctx context.Context, t Table, take func([]any) error) error { return sqliteRows(ctx, tx, t, take) }
	return f(d)
}

// sqliteTables returns the tables and the versions of their migrations, without the
// internal tables of virtual ones.
func sqliteTables(ctx context.Context, tx *sql.Tx, d *Dump) error {
	names, err := namesIn(ctx, tx, `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`)
	if err != nil {
		return err
	}
	var tables []found
	for _, name := range names {
		if set, ok := setOf(name); ok {
			var version int64
			if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM "+name+" WHERE is_applied").Scan(&version); err != nil {
				return err
			}
			d.Versions[set] = version
		}
		if isOwn(name) {
			continue
		}
		t := found{Table: Table{Name: name}}
		if t.Columns, err = namesIn(ctx, tx, "SELECT name FROM pragma_table_info($1) ORDER BY cid", name); err != nil {
			return err
		}
		if t.refers, err = namesIn(ctx, tx, `SELECT "table" FROM pragma_foreign_key_list($1)`, name); err != nil {
			return err
		}
		tables = append(tables, t)
	}
	d.Tables = inOrder(tables)
	return tx.QueryRowContext(ctx, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").Scan(&d.Size)
}

func sqliteRows(ctx context.Context, tx *sql.Tx, t Table, take func([]any) error) (err error) {
	truths, err := namesIn(ctx, tx, "SELECT name FROM pragma_table_info($1) WHERE upper(type) = 'BOOLEAN'", t.Name)
	if err != nil {
		return err
	}
	key, err := namesIn(ctx, tx, "SELECT name FROM pragma_table_info($1) WHERE pk > 0 ORDER BY pk", t.Name)
	if err != nil {
		return err
	}
	statement := "SELECT " + list(t.Columns...) + " FROM " + list(t.Name)
	if len(key) > 0 {
		statement += " ORDER BY " + list(key...)
	}
	rows, err := tx.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
	for i := range row {
		into[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, column := range t.Columns {
			switch v := row[i].(type) {
			case int64:
				if slices.Contains(truths, column) {
					row[i] = v != 0
				}
			case []byte:
				if v == nil { // the driver returns nil for an empty value
					row[i] = []byte{}
				}
			}
		}
		if err := take(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// namesIn returns the names that a query finds.
func namesIn(ctx context.Context, tx *sql.Tx, query string, args ...any) (names []string, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// beginDump begins a transaction that may take long, and may wait for the reader of the
// dump.
const beginDump = beginRead + `; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0`

// dump reads within one transaction, on a connection of its own. Tables cannot be
// changed meanwhile: a node that migrates waits.
func (p *postgres) dump(ctx context.Context, f func(*Dump) error) (err error) {
	conn, err := p.dial(ctx)
	if err != nil {
		return p.cannotOpen(err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := p.findSchema(ctx, conn); err != nil {
		return err
	}
	if err := p.refuseFilling(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, beginDump); err != nil {
		return err
	}
	d := &Dump{Versions: map[string]int64{}}
	tables, err := p.tables(ctx, conn)
	if err != nil {
		return doing("read database "+p.where, err)
	}
	if len(tables) == 0 {
		return errNothing(p.where)
	}
	if err := p.describe(ctx, conn, tables, d); err != nil {
		return doing("read database "+p.where, err)
	}
	d.rows = func(ctx context.Context, t Table, take func([]any) error) error {
		return pgRows(ctx, conn, tables[t.Name], t, take)
	}
	return f(d)
}

// pgTable is a table of ours, or of the library.
type pgTable struct {
	id      pgx.Identifier
	columns []string
	types   map[string]string // by column
	key     []string
	refers  []string
	size    int64
}

// tables returns the tables of both schemas, by name. No name is in both: on SQLite
// they share one schema.
func (p *postgres) tables(ctx context.Context, conn *pgx.Conn) (map[string]*pgTable, error) {
	rows, err := conn.Query(ctx, `SELECT n.nspname, c.relname,
			(SELECT array_agg(a.attname::TEXT ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
			(SELECT array_agg(t.typname::TEXT ORDER BY a.attnum) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
			coalesce((SELECT array_agg(a.attname::TEXT ORDER BY k.place) FROM pg_index i, unnest(i.indkey) WITH ORDINALITY AS k (attnum, place) JOIN pg_attribute a ON a.attnum = k.attnum
				WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid), '{}'),
			coalesce((SELECT array_agg(r.relname::TEXT) FROM pg_constraint f JOIN pg_class r ON r.oid = f.confrelid WHERE f.conrelid = c.oid AND f.contype = 'f'), '{}'),
			pg_table_size(c.oid)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND n.nspname = ANY ($1)`, []string{p.schema, p.externalSchema()})
	if err != nil {
		return nil, err
	}
	found := map[string]*pgTable{}
	var schema, name string
	var columns, types, key, refers []string
	var size int64
	_, err = pgx.ForEachRow(rows, []any{&schema, &name, &columns, &types, &key, &refers, &size}, func() error {
		t := &pgTable{id: pgx.Identifier{schema, name}, columns: slices.Clone(columns), types: map[string]string{}, key: slices.Clone(key), refers: slices.Clone(refers), size: size}
		for i, column := range columns {
			t.types[column] = types[i]
		}
		found[name] = t
		return nil
	})
	return found, err
}

func (p *postgres) describe(ctx context.Context, conn *pgx.Conn, tables map[string]*pgTable, d *Dump) error {
	var all []found
	for name, t := range tables {
		if _, err := conn.Exec(ctx, "LOCK TABLE "+t.id.Sanitize()+" IN ACCESS SHARE MODE"); err != nil {
			return err
		}
		if set, ok := setOf(name); ok {
			var version int64
			if err := conn.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+t.id.Sanitize()+" WHERE is_applied").Scan(&version); err != nil {
				return err
			}
			d.Versions[set] = version
		}
		if !isOwn(name) {
			all = append(all, found{Table{name, t.columns}, t.refers})
			d.Size += t.size
		}
	}
	d.Tables = inOrder(all)
	return nil
}

// pgRows streams a table. Values of types that SQLite does not have are read as text.
func pgRows(ctx context.Context, conn *pgx.Conn, t *pgTable, want Table, take func([]any) error) error {
	columns := quoted(want.Columns)
	for i, column := range want.Columns {
		switch t.types[column] {
		case "bool", "int2", "int4", "int8", "float8", "bytea":
		default:
			columns[i] += "::TEXT"
		}
	}
	rows, err := conn.Query(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM "+t.id.Sanitize()+" t"+pgOrder(t.key))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := rows.Values()
		if err != nil {
			return err
		}
		for i := range row {
			row[i] = plainValue(row[i])
		}
		if err := take(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// pgOrder orders by the key, with the table's own columns instead of the converted ones.
func pgOrder(key []string) string {
	if len(key) == 0 {
		return ""
	}
	columns := quoted(key)
	for i := range columns {
		columns[i] = "t." + columns[i]
	}
	return " ORDER BY " + strings.Join(columns, ", ")
}

// plainValue converts a value to one of a Dump's types.
func plainValue(v any) any {
	switch v := v.(type) {
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	}
	return v
}
