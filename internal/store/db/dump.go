package db

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Dump is what a database holds, as of one moment, while others go on using it. It
// is of the same form whichever database it is of. What a database keeps about
// itself, and indexes, are not part of it.
type Dump struct {
	Versions map[string]int64 // how far tables were brought, by set: see Migrate
	Tables   []Table          // those of Guests too; one that refers to another comes after it
	Size     int64            // about how many bytes there are to read

	rows func(ctx context.Context, t Table, take func(row []any) error) error
}

// Table is one that a Dump holds.
type Table struct {
	Name    string
	Columns []string
}

// Rows reads a table, in the order of its key. Values are nil, bool, int64, float64,
// string and []byte; a row is valid until take returns.
func (d *Dump) Rows(ctx context.Context, t Table, take func(row []any) error) error {
	return doing("read table "+t.Name, d.rows(ctx, t, take))
}

// ReadDump gives f all that the database at address holds. Nothing is made or
// brought up to date there.
func ReadDump(ctx context.Context, address string, f func(*Dump) error) error {
	d, err := dialectOf(address)
	if err != nil {
		return err
	}
	return d.explain(d.dump(ctx, f))
}

// errNothing is of a database that has no tables of ours.
func errNothing(where string) error {
	return fault.New(fault.NotFound, "there is nothing to back up in %s", where).
		WithHint("name the data folder with --data, or the database with --database")
}

// migrationsPrefix begins the names of the tables that say what has run.
const migrationsPrefix = "migrations_"

// isOwn tells the tables that a database has for itself: those of this package, and
// what says which migrations have run.
func isOwn(table string) bool {
	return strings.HasPrefix(table, migrationsPrefix) || strings.HasPrefix(table, "db_") || table == externalPrefix+"_migrations"
}

// setOf is the set of migrations whose table it is.
func setOf(table string) (set string, ok bool) {
	set, ok = strings.CutPrefix(table, migrationsPrefix)
	return set, ok && setName().MatchString(set)
}

// found is a table while they are put in order.
type found struct {
	Table
	refers []string // to these
}

// inOrder puts tables behind those they refer to.
func inOrder(tables []found) []Table {
	slices.SortFunc(tables, func(a, b found) int { return cmp.Compare(a.Name, b.Name) })
	placed := map[string]bool{}
	var ordered []Table
	for len(tables) > 0 {
		waits := func(t found) bool {
			return slices.ContainsFunc(t.refers, func(name string) bool { return name != t.Name && !placed[name] })
		}
		next := max(0, slices.IndexFunc(tables, func(t found) bool { return !waits(t) })) // in a circle there is no better one
		placed[tables[next].Name] = true
		ordered = append(ordered, tables[next].Table)
		tables = slices.Delete(tables, next, next+1)
	}
	return ordered
}

// quoted are names as SQL has them.
func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return out
}

func list(names ...string) string { return strings.Join(quoted(names), ", ") }
