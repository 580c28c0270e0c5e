package db

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// beginDump begins a transaction that may take long, and may wait for the reader of the
// dump.
const beginDump = beginRead + `; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0`

// dump reads within one transaction, on a connection of its own. Tables cannot be
// changed meanwhile: a node that migrates waits.
func (p *postgres) dump(ctx context.Context, f func(*Dump) error) (err error) {
	conn, err := pgx.ConnectConfig(ctx, p.config.ConnConfig.Copy())
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
