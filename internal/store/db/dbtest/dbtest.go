// Package dbtest tests the behaviour that every database behind internal/store/db must
// have, and provides databases for the tests of other packages.
package dbtest

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/store/db"
)

// Run tests a kind of database. Each call of fresh returns the URL of an empty one, which
// is removed when its test ends. Run must be called from a test function of its own: the
// crash test runs that function again in a child process.
func Run(t *testing.T, fresh func(t testing.TB) string) {
	if beChild() {
		return
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

var tests = map[string]func(t *testing.T, url string){
	"migrations run once and in order":                      migrationsInOrder,
	"migration sets are independent":                        migrationSets,
	"a failing migration leaves nothing":                    migrationFails,
	"a newer database is refused":                           migrationNewer,
	"two programs may migrate at once":                      migrationRace,
	"constraints have their own errors":                     constraints,
	"an error rolls its write back":                         undoneByError,
	"a panic rolls its write back and continues":            undoneByPanic,
	"writers do not lose each other's work":                 manyWriters,
	"a failing writer does not affect others":               failingWriters,
	"a read sees one snapshot":                              oneMoment,
	"text is compared byte by byte":                         bytewise,
	"a read cannot write":                                   readOnly,
	"a cancelled write does not happen":                     cancelledWrite,
	"a cancelled wait leaves the queue":                     cancelledWait,
	"a cancelled read stops":                                cancelledRead,
	"a blob is read as it was written":                      bigBlob,
	"data is there after reopening":                         reopened,
	"a closed database returns an error":                    closed,
	"acknowledged writes survive a crash":                   crash,
	"two programs increment one counter":                    twoNodes,
	"concurrent decisions of two programs are serializable": skew,
	"a claim has one holder":                                claims,
	"notifications reach listeners":                         news,
	"a slow listener is notified that it missed some":       slowListener,
}

// open opens url without InjectFaults and closes it when the test ends.
func open(t *testing.T, url string) *db.DB {
	t.Helper()
	return OpenWith(t, url, db.Options{OutageTimeout: clocktest.Timeout})
}

// schema is the migration of most tests.
var schema = files{
	"00001_things": `CREATE TABLE things (name TEXT PRIMARY KEY, size BIGINT NOT NULL CHECK (size >= 0), body BYTEA);`,
	"00002_parts":  `CREATE TABLE parts (thing TEXT NOT NULL REFERENCES things (name), label TEXT NOT NULL);`,
}

// files are migrations by name, without goose's annotations.
type files map[string]string

func (f files) fs() fstest.MapFS {
	m := fstest.MapFS{}
	for name, up := range f {
		m["migrations/"+name+".sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + up)}
	}
	return m
}

// openMigrated opens url and creates the tables of schema.
func openMigrated(t *testing.T, url string) *db.DB {
	t.Helper()
	d := open(t, url)
	if err := d.Migrate(t.Context(), "dbtest", schema.fs()); err != nil {
		t.Fatalf("Migrate: %v", err)
	}
	return d
}

// addThing writes one row.
func addThing(ctx context.Context, d *db.DB, name string, size int) error {
	return d.Write(ctx, func(tx *db.Tx) error { return insertThing(ctx, tx, name, size) })
}

func insertThing(ctx context.Context, tx *db.Tx, name string, size int) error {
	_, err := tx.Exec(ctx, "INSERT INTO things (name, size) VALUES ($1, $2)", name, size)
	return err
}

// things reads the names in order.
func things(t *testing.T, d *db.DB) (names []string) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
		names, err = thingNames(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return names
}

func thingNames(ctx context.Context, tx *db.Tx) ([]string, error) {
	return db.All(ctx, tx, func(row db.Scanner) (name string, err error) {
		return name, row.Scan(&name)
	}, "SELECT name FROM things ORDER BY name")
}
