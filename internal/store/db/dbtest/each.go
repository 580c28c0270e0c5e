// Package dbtest provides databases for tests.
package dbtest

import (
	"context"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/store/db"
)

// Each runs a store's test on an empty database of every kind.
func Each(t *testing.T, test func(t *testing.T, d *db.DB)) {
	each(t, kinds, func(t *testing.T, address string) { test(t, Open(t, address)) })
}

// kinds return addresses of empty databases.
var kinds = map[string]func(testing.TB) string{"sqlite": SQLite, "postgres": Postgres}

func each(t *testing.T, kinds map[string]func(testing.TB) string, test func(t *testing.T, address string)) {
	for kind, fresh := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

// onPostgres is the name of the test in which Fresh returns a Postgres database.
const onPostgres = "TestOnPostgres"

// OnPostgres runs tests, which run on SQLite by themselves, on Postgres too. It must be
// called by a test called TestOnPostgres, and the tests must get their database from
// Fresh.
func OnPostgres(t *testing.T, tests ...func(*testing.T)) {
	t.Helper()
	if t.Name() != onPostgres {
		t.Fatalf("the test must be called %s", onPostgres)
	}
	for _, test := range tests {
		name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
		t.Run(name[strings.LastIndex(name, ".")+1:], test)
	}
}

// Fresh returns the address of an empty database: Postgres under OnPostgres, otherwise
// SQLite.
func Fresh(t testing.TB) string {
	t.Helper()
	if isOnPostgres(t) {
		return Postgres(t)
	}
	return SQLite(t)
}

func isOnPostgres(t testing.TB) bool { return strings.HasPrefix(t.Name(), onPostgres+"/") }

// SQLite returns the address of an empty file that is removed when the test ends.
func SQLite(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") }

// Open opens a database and closes it when the test ends. On Postgres it sets
// InjectFaults.
func Open(t testing.TB, url string) *db.DB {
	t.Helper()
	return OpenWith(t, url, Options(url))
}

// OpenWith opens a database with options and closes it when the test ends.
func OpenWith(t testing.TB, url string, o db.Options) *db.DB {
	t.Helper()
	d, err := db.Open(context.WithoutCancel(t.Context()), url, o)
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

// In returns the address of a database that is empty the first time it is called with
// folder, and the same one after that. Its kind is as with Fresh.
func In(t testing.TB, folder string) string {
	t.Helper()
	if !isOnPostgres(t) {
		return "sqlite:" + filepath.Join(folder, "test.db")
	}
	places.Lock()
	defer places.Unlock()
	if places.urls[folder] == "" {
		places.urls[folder] = Postgres(t)
	}
	return places.urls[folder]
}

// places are the Postgres databases that stand for folders.
var places = struct {
	sync.Mutex
	urls map[string]string
}{urls: map[string]string{}}

// Options returns the options with which Open opens a database.
func Options(url string) db.Options {
	return db.Options{InjectFaults: strings.HasPrefix(url, "postgres:"), OutageTimeout: clocktest.Timeout}
}
