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
	for kind, fresh := range map[string]func(testing.TB) string{"sqlite": SQLite, "postgres": Postgres} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, Open(t, fresh(t)))
		})
	}
}

// onPostgres is the test under which Fresh means Postgres.
const onPostgres = "TestOnPostgres"

// OnPostgres runs tests, which run on SQLite by themselves, on Postgres too. It
// is called by a test of the name TestOnPostgres, and they ask Fresh for their
// database.
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

// Fresh is the address of an empty database: Postgres under OnPostgres, else
// SQLite.
func Fresh(t testing.TB) string {
	t.Helper()
	if strings.HasPrefix(t.Name(), onPostgres+"/") {
		return Postgres(t)
	}
	return SQLite(t)
}

// SQLite is the address of an empty file that is removed when the test is over.
func SQLite(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") }

// Open opens a database and closes it when the test is over. On Postgres it gives
// the functions of Writes a hard time, as several nodes that write may.
func Open(t testing.TB, url string) *db.DB {
	t.Helper()
	d, err := db.Open(context.WithoutCancel(t.Context()), url, Options(url))
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

// In is the address of a database that is empty the first time it is asked for
// folder, and the same one after that. Kinds are as with Fresh.
func In(t testing.TB, folder string) string {
	t.Helper()
	if !strings.HasPrefix(t.Name(), onPostgres+"/") {
		return "sqlite:" + filepath.Join(folder, "test.db")
	}
	places.Lock()
	defer places.Unlock()
	if places.urls[folder] == "" {
		places.urls[folder] = Postgres(t)
	}
	return places.urls[folder]
}

// places are the databases on Postgres that stand for folders.
var places = struct {
	sync.Mutex
	urls map[string]string
}{urls: map[string]string{}}

// Options are how a test opens a database: those of Open.
func Options(url string) db.Options {
	return db.Options{InjectFaults: strings.HasPrefix(url, "postgres:"), OutageTimeout: clocktest.Timeout}
}
