package dbtest

import (
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

func migrationsInOrder(t *testing.T, url string) {
	d := open(t, url)
	steps := files{
		"00001_make":   `CREATE TABLE log (step BIGINT NOT NULL);`,
		"00002_second": `INSERT INTO log (step) SELECT count(*) + 2 FROM log;`,
		"00010_tenth":  `INSERT INTO log (step) SELECT count(*) + 2 FROM log;`,
	}
	for range 2 { // the second time there is nothing to do
		if err := d.Migrate(t.Context(), "steps", steps.fs()); err != nil {
			t.Fatalf("Migrate: %v", err)
		}
	}
	steps["00011_later"] = `INSERT INTO log (step) VALUES (11);`
	if err := d.Migrate(t.Context(), "steps", steps.fs()); err != nil {
		t.Fatalf("Migrate with one more: %v", err)
	}
	if got, want := logged(t, d), "2 3 11"; got != want {
		t.Errorf("steps %q, want %q", got, want)
	}
}

// logged returns the content of the table log.
func logged(t *testing.T, d *db.DB) string {
	t.Helper()
	var steps []string
	err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
		steps, err = db.All(t.Context(), tx, func(row db.Scanner) (s string, err error) {
			return s, row.Scan(&s)
		}, "SELECT CAST(step AS TEXT) FROM log ORDER BY log.step")
		return err
	})
	if err != nil {
		t.Fatalf("read log: %v", err)
	}
	return strings.Join(steps, " ")
}

func migrationSets(t *testing.T, url string) {
	d := open(t, url)
	for _, set := range []string{"jobs", "scripts"} {
		step := files{"00001_make": "CREATE TABLE " + set + " (id BIGINT);"}
		if err := d.Migrate(t.Context(), set, step.fs()); err != nil {
			t.Errorf("Migrate %s: %v", set, err)
		}
	}
	if err := d.Migrate(t.Context(), "Not a name; DROP TABLE jobs", schema.fs()); err == nil {
		t.Error("an invalid set name was accepted")
	}
}

func migrationFails(t *testing.T, url string) {
	d := open(t, url)
	steps := files{
		"00001_make": `CREATE TABLE log (step BIGINT NOT NULL);`,
		"00002_half": `INSERT INTO log (step) VALUES (2); INSERT INTO nowhere VALUES (1);`,
	}
	err := d.Migrate(t.Context(), "steps", steps.fs())
	if fault.CodeOf(err) != fault.Internal || !strings.Contains(err.Error(), "00002_half") || fault.HintOf(err) == "" {
		t.Errorf("Migrate = %v, want a fault with a hint that names the file", err)
	}
	if got := logged(t, d); got != "" {
		t.Errorf("a part of the migration is left: %q", got)
	}
	steps["00002_half"] = `INSERT INTO log (step) VALUES (2);`
	if err := d.Migrate(t.Context(), "steps", steps.fs()); err != nil {
		t.Errorf("Migrate after the repair: %v", err)
	}
	if got := logged(t, d); got != "2" {
		t.Errorf("steps %q, want 2", got)
	}
}

func migrationNewer(t *testing.T, url string) {
	d := openMigrated(t, url)
	older := maps.Clone(schema)
	delete(older, "00002_parts")
	if err := d.Migrate(t.Context(), "dbtest", older.fs()); fault.HintOf(err) == "" {
		t.Errorf("Migrate of an older program = %v, want a fault with a hint", err)
	}
}

func migrationRace(t *testing.T, url string) {
	programs := []*db.DB{open(t, url), open(t, url), open(t, url)}
	var all sync.WaitGroup
	for _, d := range programs {
		all.Go(func() {
			if err := d.Migrate(t.Context(), "dbtest", schema.fs()); err != nil {
				t.Errorf("Migrate: %v", err)
			}
		})
	}
	all.Wait()
	if err := addThing(t.Context(), programs[0], "after", 1); err != nil {
		t.Errorf("write after migrating: %v", err)
	}
}
