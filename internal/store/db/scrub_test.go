package db_test

import (
	"os"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestScrub checks that nothing of deleted rows is left in the files of a database, and that
// the others are there. Postgres does the like by itself.
func TestScrub(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if err := d.Scrub(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	url := dbtest.SQLite(t)
	d := dbtest.OpenWith(t, url, db.Options{})
	write := func(text string, args ...any) {
		t.Helper()
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			_, err := tx.Exec(t.Context(), text, args...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	write("CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
	for i := range 40 { // short ones, and such that need several pages
		write("INSERT INTO texts (id, text) VALUES ($1, $2)", i, strings.Repeat([]string{"secret ", "public "}[i%2], 1+i%4/2*9_000))
	}
	has := func(text string) (places int) {
		for _, suffix := range []string{"", "-wal"} {
			content, err := os.ReadFile(db.PathOf(url) + suffix)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(content), text) {
				places++
			}
		}
		return places
	}
	if has("secret") == 0 {
		t.Error("nothing is stored")
	}
	write("DELETE FROM texts WHERE id % 2 = 0")
	if err := d.Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	if has("secret") > 0 || has("public") == 0 {
		t.Errorf("deleted rows are in %d files, the others in %d", has("secret"), has("public"))
	}
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
