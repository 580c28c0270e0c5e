package dbtest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/store/db"
)

// Template is a database with tables, of which tests get copies: creating the tables of a
// whole server takes longer than most tests, in particular on Postgres.
type Template struct {
	sqlite   func() (file []byte, err error)
	postgres func() (database string, err error)
}

// templateSchema is the schema of the tables in the Postgres database of a Template.
const templateSchema = "luanette"

// NewTemplate returns a template of databases. Its prepare function creates the tables. It
// is called once in a process for each kind of database, when a test first needs one.
func NewTemplate(prepare func(ctx context.Context, d *db.DB) error) *Template {
	return &Template{
		sqlite: sync.OnceValues(func() (file []byte, err error) {
			folder, err := os.MkdirTemp("", "luanette-database-")
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
			path := filepath.Join(folder, "template.db")
			if err := fill("sqlite:"+path, prepare); err != nil {
				return nil, err
			}
			return os.ReadFile(path)
		}),
		postgres: sync.OnceValues(func() (database string, err error) {
			c, err := shared()
			if err != nil {
				return "", err
			}
			database = newName() // it is gone when the server is
			err = c.exec(context.Background(), "CREATE DATABASE "+database+" STRATEGY FILE_COPY")
			if err == nil {
				err = fill(c.url(database, templateSchema), prepare)
			}
			return database, err
		}),
	}
}

// AllTables returns a prepare function for NewTemplate that creates the tables of known
// migrations, by the names of their sets, and then those of a library.
func AllTables(known map[string]fs.FS, library func(context.Context, *db.DB) error) func(context.Context, *db.DB) error {
	return func(ctx context.Context, d *db.DB) error {
		for set, files := range known {
			if err := d.Migrate(ctx, set, files); err != nil {
				return err
			}
		}
		return library(ctx, d)
	}
}

func fill(address string, prepare func(context.Context, *db.DB) error) error {
	ctx := context.Background()
	d, err := db.Open(ctx, address, db.Options{OutageTimeout: clocktest.Timeout})
	if err != nil {
		return err
	}
	return errors.Join(prepare(ctx, d), d.Close())
}

// SQLite returns the address of a copy in a file that is removed when the test ends.
func (m *Template) SQLite(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	m.WriteFile(t, path)
	return "sqlite:" + path
}

// WriteFile writes a copy to a SQLite file.
func (m *Template) WriteFile(t testing.TB, path string) {
	t.Helper()
	file, err := m.sqlite()
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Postgres returns the address of a copy that is removed when the test ends. If Postgres is
// not installed, the test is skipped.
func (m *Template) Postgres(t testing.TB) string {
	t.Helper()
	c := needShared(t)
	template, err := m.postgres()
	if err != nil {
		t.Fatal(err)
	}
	database := newName()
	// With 150 tables, copying the files took two fifths of the processor time of WAL_LOG.
	if err := c.exec(t.Context(), "CREATE DATABASE "+database+" TEMPLATE "+template+" STRATEGY FILE_COPY"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.remove(t, "DROP DATABASE IF EXISTS "+database+" WITH (FORCE)") })
	return c.url(database, templateSchema)
}

// Fresh returns the address of a copy of the kind that the function Fresh returns.
func (m *Template) Fresh(t testing.TB) string {
	t.Helper()
	if isOnPostgres(t) {
		return m.Postgres(t)
	}
	return m.SQLite(t)
}

// Each runs a test with the address of a copy of every kind.
func (m *Template) Each(t *testing.T, test func(t *testing.T, address string)) {
	each(t, map[string]func(testing.TB) string{"sqlite": m.SQLite, "postgres": m.Postgres}, test)
}
