package db

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/luanette/luanette/internal/base/fault"
)

// readSchema reads the header, the list of tables and the versions of all sets of tables:
// what is damaged there makes everything else fail with errors that mislead.
func readSchema(ctx context.Context, pool *sql.DB) error {
	rows, err := pool.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'migrations_*'")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err has the error
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		tables = append(tables, name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, name := range tables {
		var problem string
		if err := pool.QueryRowContext(ctx, "SELECT quick_check FROM pragma_quick_check($1)", name).Scan(&problem); err != nil {
			return err
		}
		if problem != "ok" {
			return damage(problem)
		}
	}
	return nil
}

// damage is what a check found.
type damage string

func (d damage) Error() string { return string(d) }

// damaged returns an error that names the last backup if err means that the file is
// damaged, else nil.
func (s *sqliteFile) damaged(err error, code fault.Code) error {
	var e *sqlite.Error
	var found damage
	if !errors.As(err, &found) && (!errors.As(err, &e) || e.Code()&0xff != sqlite3.SQLITE_CORRUPT && e.Code()&0xff != sqlite3.SQLITE_NOTADB) {
		return nil
	}
	backups, _ := filepath.Glob(filepath.Join(filepath.Dir(s.path), "backups", "*.backup")) // only the pattern can be wrong
	if len(backups) == 0 {
		return fault.Wrap(code, err, "the database %s is damaged", s.path).
			WithHint("restore a backup: luanette restore FILE --replace keeps what is there; without a backup, sqlite3 %s .recover may save some of it", s.path)
	}
	return fault.Wrap(code, err, "the database %s is damaged", s.path).
		WithHint("restore the last backup: luanette restore %s --replace", slices.Max(backups))
}
