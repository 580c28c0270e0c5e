package db

import (
	"cmp"
	"context"
	"slices"
	"strings"

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
