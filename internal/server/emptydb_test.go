package server

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/emptydb"
)

// TestEmptyDatabase checks that a new file is what all migrations make; UPDATE=1 rewrites it.
func TestEmptyDatabase(t *testing.T) {
	t.Parallel()
	made := strings.TrimPrefix(tables.SQLite(t), "sqlite:")
	if os.Getenv("UPDATE") != "" {
		writeEmptyDatabase(t, made)
	}
	content, err := emptydb.Content()
	if err != nil {
		t.Fatal(err)
	}
	stored := filepath.Join(t.TempDir(), "stored.db")
	if err := os.WriteFile(stored, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contentOf(t, made), contentOf(t, stored)); diff != "" {
		t.Errorf("the file lacks what is marked -, and has what is marked +; run it twice with UPDATE=1 go test ./internal/server -run %s\n%s", t.Name(), diff)
	}
}

// writeEmptyDatabase compresses the tables of a database, as a file with a write-ahead log.
func writeEmptyDatabase(t *testing.T, made string) {
	t.Helper()
	small := filepath.Join(t.TempDir(), "small.db")
	statements := []string{"VACUUM INTO '" + small + "'"}
	for name := range contentOf(t, made) {
		if strings.HasPrefix(name, "migrations_") {
			statements = append([]string{"UPDATE " + name + " SET tstamp = '2026-01-01 00:00:00'"}, statements...)
		}
	}
	pool := openFile(t, made)
	for _, statement := range statements {
		if _, err := pool.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	d, err := db.Open(t.Context(), "sqlite:"+small, db.Options{})
	if err == nil {
		err = d.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	var compressed bytes.Buffer
	out, _ := gzip.NewWriterLevel(&compressed, gzip.BestCompression) // the level is valid
	_, _ = out.Write(content)                                        // to memory
	_ = out.Close()
	if err := os.WriteFile("../store/emptydb/empty.db.gz", compressed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// contentOf returns the definition of everything in a SQLite file, and the rows of tables.
// When migrations ran does not matter.
func contentOf(t *testing.T, path string) map[string][]string {
	t.Helper()
	pool := openFile(t, path)
	content := map[string][]string{}
	for _, row := range fileRows(t, pool, "SELECT name, type, coalesce(sql, '') FROM sqlite_schema") {
		name := row[0].(string)
		content[name] = []string{fmt.Sprint(row[1:]...)}
		if row[1] != "table" {
			continue
		}
		for _, values := range fileRows(t, pool, `SELECT * FROM "`+name+`"`) {
			if strings.HasPrefix(name, "migrations_") {
				values = values[:len(values)-1] // tstamp
			}
			content[name] = append(content[name], fmt.Sprint(values...))
		}
		slices.Sort(content[name])
	}
	return content
}

func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() }) // the file goes with its folder
	return pool
}

func fileRows(t *testing.T, pool *sql.DB, query string) (all [][]any) {
	t.Helper()
	rows, err := pool.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // Err has the error
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		err = rows.Scan(into...)
		all = append(all, values)
	}
	if err == nil {
		err = rows.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}
