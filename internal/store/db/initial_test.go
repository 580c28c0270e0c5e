package db_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/luanette/luanette/internal/store/db"
)

// TestInitialContent checks that a new file gets its first content, for its owner alone, and
// that one that exists, or whose log does, does not.
func TestInitialContent(t *testing.T) {
	t.Parallel()
	migration := fstest.MapFS{"migrations/00001_a.sql": {Data: []byte("-- +goose Up\nCREATE TABLE a (x BIGINT);")}}
	first := filepath.Join(t.TempDir(), "first.db")
	if tables := openAndClose(t, first, nil, func(d *db.DB) error { return d.Migrate(t.Context(), "job", migration) }); tables == 0 {
		t.Fatal("the migration made no tables")
	}
	content := func() ([]byte, error) { return os.ReadFile(first) }

	path := filepath.Join(t.TempDir(), "below", "copy.db")
	if openAndClose(t, path, content, nil) == 0 {
		t.Error("a new file has no tables")
	}
	if about, err := os.Stat(path); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v (%v), want 0600", about.Mode(), err)
	}
	if left, _ := filepath.Glob(path + ".new-*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	openAndClose(t, path, func() ([]byte, error) { return nil, errors.New("asked for again") }, nil)

	removed := filepath.Join(t.TempDir(), "removed.db")
	if err := os.WriteFile(removed+"-wal", []byte("of a file that is gone"), 0o600); err != nil {
		t.Fatal(err)
	}
	if tables := openAndClose(t, removed, content, nil); tables != 0 {
		t.Errorf("a file whose log was there before has %d tables", tables)
	}
}

// openAndClose opens a file, calls do and returns how many tables there are.
func openAndClose(t *testing.T, path string, initial func() ([]byte, error), do func(*db.DB) error) int {
	t.Helper()
	d, err := db.Open(t.Context(), "sqlite:"+path, db.Options{Initial: initial})
	if err != nil {
		t.Fatal(err)
	}
	if do != nil {
		err = do(d)
	}
	var tables []string
	err = errors.Join(err, d.Read(t.Context(), func(tx *db.Tx) (err error) {
		tables, err = tx.Tables(t.Context())
		return err
	}))
	if err = errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	return len(tables)
}
