package db_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func TestMain(m *testing.M) {
	clocktest.SetParallel()
	db.SetCancelTimeout(clocktest.Timeout)
	goleak.VerifyTestMain(clocktest.Settled(m))
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	runSuite(t, dbtest.SQLite)
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	runSuite(t, dbtest.Postgres)
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{ // URL → part of the message
		"":                                     "unknown kind",
		"luanette.db":                          "unknown kind",
		"mysql://root:sesame@host/x":           "unknown kind",
		"postgres://me:sesame@127.0.0.1:1/lua": "open database 127.0.0.1:1/lua",
		"postgresql://127.0.0.1:1/lua?password=sesame":       "open database 127.0.0.1:1/lua",
		"postgres://me:sesame@127.0.0.1:port/lua":            "unreadable",
		"postgres://127.0.0.1/x?password=sesame&sslmode=odd": "not an address",
		"sqlite:":                   "not the path of a file",
		"sqlite::memory:":           "not the path of a file",
		"sqlite:" + dir:             "open database",
		"sqlite:" + text:            "not a database",
		"sqlite:" + text + "/below": "open database",
	}
	for url, want := range tests {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			_, err := db.Open(t.Context(), url, db.Options{})
			if fault.CodeOf(err) != fault.Config || fault.HintOf(err) == "" || !strings.Contains(err.Error(), want) {
				t.Errorf("Open = %v, want invalid_config with a hint and %q", err, want)
			}
			if strings.Contains(fmt.Sprint(err), "sesame") {
				t.Errorf("the message shows the password: %v", err)
			}
		})
	}
}

func TestOpenCreatesTheFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "odd ?#% name", "luanette.db")
	d, err := db.Open(t.Context(), "sqlite:"+path, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the file's permissions are %o, want 600", mode)
	}
}

func TestSQLiteSettings(t *testing.T) {
	t.Parallel()
	for busy, timeout := range map[string]time.Duration{"5000": 0, "60000": time.Minute} {
		settings(t, db.Options{OutageTimeout: timeout}, map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": busy})
	}
}

// settings compares the settings of a new database with want.
func settings(t *testing.T, o db.Options, want map[string]string) {
	t.Helper()
	d, err := db.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x.db"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for name, value := range want {
		for how, run := range map[string]func(context.Context, func(*db.Tx) error) error{"Read": d.Read, "Write": d.Write} {
			var got string
			err := run(t.Context(), func(tx *db.Tx) error {
				return tx.QueryRow(t.Context(), "PRAGMA "+name).Scan(&got)
			})
			if err != nil || got != value {
				t.Errorf("%s: %s = %q (%v), want %q", how, name, got, err, value)
			}
		}
	}
}

func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	careless, err := sql.Open("sqlite", path) // foreign keys are off by default
	if err != nil {
		t.Fatal(err)
	}
	_, err = careless.ExecContext(t.Context(), `CREATE TABLE p (id INTEGER PRIMARY KEY);
		CREATE TABLE c (p BIGINT REFERENCES p (id)); INSERT INTO c VALUES (7)`)
	if err != nil {
		t.Fatal(err)
	}
	if err := careless.Close(); err != nil {
		t.Fatal(err)
	}
	d := dbtest.OpenWith(t, "sqlite:"+path, db.Options{})
	err = d.Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "row 1 of c refers to nothing in p") || fault.HintOf(err) == "" {
		t.Errorf("Check = %v, want the orphan named, with a hint", err)
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			d, err := db.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "x.db"), db.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			table := fstest.MapFS{"migrations/00001_rows.sql": {Data: []byte("-- +goose Up\nCREATE TABLE r (v TEXT);")}}
			if err := d.Migrate(b.Context(), "bench", table); err != nil {
				b.Fatal(err)
			}
			b.SetParallelism(max(1, writers/2)) // times two processors
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					err := d.Write(b.Context(), func(tx *db.Tx) error {
						_, err := tx.Exec(b.Context(), "INSERT INTO r (v) VALUES ($1)", "some text of a row")
						return err
					})
					if err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
