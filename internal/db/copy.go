package db

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/fault"
)

// File is the path of the file that the database at address is, or an error that
// says how such a database is copied.
func File(address string) (string, error) {
	d, err := dialectOf(address)
	if err != nil {
		return "", err
	}
	file, ok := d.(*sqliteFile)
	if !ok {
		return "", fault.New(fault.Config, "the database %s is not a file", redacted(address)).
			WithHint("copy it with pg_dump and put it back with pg_restore, which copy all of it in one consistent state; docs/operate.md shows how")
	}
	return file.path, nil
}

// CopyFile writes the state that the database file at path has now to a new file,
// while others go on reading and writing it.
func CopyFile(ctx context.Context, path, to string) (err error) {
	source, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if _, err := source.ExecContext(ctx, "VACUUM INTO $1", to); err != nil {
		return fault.Wrap(fault.Internal, err, "copy database %s", path).
			WithHint("see whether there is room for a second copy beside it")
	}
	return nil
}

// Versions are how far the tables in the database file at path were brought, by
// set: see Migrate.
func Versions(ctx context.Context, path string) (versions map[string]int64, err error) {
	file, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	tables, err := tablesOf(ctx, file)
	if err != nil {
		return nil, doing("read database "+path, err)
	}
	versions = map[string]int64{}
	for _, table := range tables {
		set, ok := strings.CutPrefix(table, migrationsPrefix)
		if !ok || !setName.MatchString(set) {
			continue
		}
		var version int64
		if err := file.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM "+table+" WHERE is_applied").Scan(&version); err != nil {
			return nil, doing("read database "+path, err)
		}
		versions[set] = version
	}
	return versions, nil
}

// migrationsPrefix begins the names of the tables that say what has run.
const migrationsPrefix = "migrations_"

func tablesOf(ctx context.Context, file *sql.DB) (names []string, err error) {
	rows, err := file.QueryContext(ctx, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
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

func openFile(path string) (*sql.DB, error) {
	file := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "mode=ro&_busy_timeout=5000"}
	pool, err := sql.Open("sqlite", file.String())
	if err != nil {
		return nil, doing("open database "+path, err)
	}
	pool.SetMaxOpenConns(1)
	return pool, nil
}
