package db

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
)

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
