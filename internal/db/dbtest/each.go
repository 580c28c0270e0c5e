package dbtest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/luanette/luanette/internal/db"
)

// kinds are the databases there are.
var kinds = map[string]func(t testing.TB) string{"sqlite": SQLite, "postgres": Postgres}

// Each runs a store's test on an empty database of every kind. The functions of
// its Writes are run twice on Postgres, as they may be when several nodes write.
func Each(t *testing.T, test func(t *testing.T, d *db.DB)) {
	EachURL(t, func(t *testing.T, url string) { test(t, Open(t, url)) })
}

// EachURL is Each for tests that open the database themselves.
func EachURL(t *testing.T, test func(t *testing.T, url string)) {
	for kind, fresh := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

// SQLite is the address of an empty file that is removed when the test is over.
func SQLite(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") }

// Open opens a database and closes it when the test is over.
func Open(t testing.TB, url string) *db.DB {
	t.Helper()
	d, err := db.Open(context.WithoutCancel(t.Context()), url, db.Options{Twice: url[0] == 'p'})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return d
}
