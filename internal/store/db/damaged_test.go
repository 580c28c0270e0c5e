package db_test

import (
	binary "bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// TestDamagedDatabaseIsNamedAtStart checks that a damaged header, schema or table of
// migrations is noticed when the database is opened, and that the error names the last
// backup.
func TestDamagedDatabaseIsNamedAtStart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "luanette.db")
	d, err := db.Open(t.Context(), "sqlite:"+path, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Migrate(t.Context(), "job", fstest.MapFS{"migrations/00001_a.sql": {Data: []byte("-- +goose Up\nCREATE TABLE a (x BIGINT);")}}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for name, damage := range map[string]func([]byte) []byte{
		"the header":               func(b []byte) []byte { copy(b, "NOT A DATABASE!!"); return b },
		"something else":           func([]byte) []byte { return binary.Repeat([]byte("hello "), 2000) },
		"the schema":               func(b []byte) []byte { copy(b[100:], binary.Repeat([]byte{0xff}, 200)); return b },
		"all pages but the schema": func(b []byte) []byte { clearBytes(b[page:]); return b },
		"cut off":                  func(b []byte) []byte { return b[:page+100] },
	} {
		if err := os.WriteFile(path, damage(binary.Clone(sound)), 0o600); err != nil {
			t.Fatal(err)
		}
		for backup, hint := range map[string]string{"": "restore a backup", "20261101T000000.000Z.backup": "luanette restore " + filepath.Join(folder, "backups", "20261101T000000.000Z.backup") + " --replace"} {
			if err := os.RemoveAll(filepath.Join(folder, "backups")); err != nil {
				t.Fatal(err)
			}
			if backup != "" {
				writeBackups(t, filepath.Join(folder, "backups"), backup, "20251101T000000.000Z.backup")
			}
			d, err := db.Open(t.Context(), "sqlite:"+path, db.Options{})
			if err == nil {
				_ = d.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "luanette.db is damaged") || !strings.Contains(fault.HintOf(err), hint) {
				t.Errorf("%s: %v; %s", name, err, fault.HintOf(err))
			}
		}
	}
	if err := os.WriteFile(path, sound, 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err = db.Open(t.Context(), "sqlite:"+path, db.Options{}); err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
}

func clearBytes(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}

func writeBackups(t *testing.T, folder string, names ...string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
