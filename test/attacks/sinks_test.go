package attacks

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/server"
	"github.com/luanette/luanette/internal/store/backup"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// tables returns every value of every table of a database as text, including the tables
// of durable runs.
func tables(t *testing.T, url string) string {
	t.Helper()
	d := dbtest.Open(t, url)
	list := `SELECT name FROM sqlite_master WHERE type = 'table'`
	if d.Kind() == db.Postgres {
		list = `SELECT table_schema || '.' || table_name FROM information_schema.tables
			WHERE table_schema IN (current_schema(), current_schema() || '_dbos')`
	}
	names := column(t, d, list)
	if len(names) < 20 {
		t.Fatalf("only %d tables: %v", len(names), names)
	}
	var all bytes.Buffer
	for _, name := range names {
		for _, value := range column(t, d, "SELECT * FROM "+name) {
			all.WriteString(opened(value) + "\n")
		}
	}
	return all.String()
}

// column returns all values of a query's rows.
func column(t *testing.T, d *db.DB, query string) (values []string) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		values = nil
		rows, err := tx.Query(t.Context(), query)
		if err != nil {
			return err
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		row, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				return err
			}
			for _, value := range row {
				if raw, ok := value.([]byte); ok {
					value = string(raw)
				}
				values = append(values, fmt.Sprint(value))
			}
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return values
}

// opened returns a value and its decoded forms: records of durable runs are in base64,
// and sessions of JavaScript are deflated after a header.
func opened(value string) string {
	all := value
	if raw, err := base64.RawStdEncoding.DecodeString(strings.TrimPrefix(value, ".")); err == nil {
		all += string(raw)
	}
	for at := range min(len(value), 64) {
		if inflated, _ := io.ReadAll(flate.NewReader(strings.NewReader(value[at:]))); len(inflated) > len(value) {
			all += string(inflated)
		}
	}
	return all
}

// files returns the contents of all files of a folder.
func files(t *testing.T, folder string) string {
	t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// unpackedBackup makes a backup and returns its contents: the unpacked archive, and the
// files and tables restored from it.
func unpackedBackup(t *testing.T, h *program, database string) string {
	t.Helper()
	loaded, err := config.Load(config.Sources{Flags: map[string]string{"data": h.data, "database": database}})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	from, err := server.BackupLocation(loaded, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := backup.Create(t.Context(), from, &packed, backup.CreateOptions{Version: "test"}); err != nil {
		t.Fatal(err)
	}
	raw, err := gzip.NewReader(bytes.NewReader(packed.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(raw)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "restored")
	place, err := config.Load(config.Sources{Flags: map[string]string{"data": folder}})
	if err != nil {
		t.Fatal(err)
	}
	to, err := server.BackupLocation(place, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), to, &packed, backup.RestoreOptions{Schema: server.BackupSchema()}); err != nil {
		t.Fatal(err)
	}
	return string(text) + files(t, folder) + tables(t, "sqlite:"+filepath.Join(folder, "luanette.db"))
}
