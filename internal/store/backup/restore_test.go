package backup

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// TestRestoreRemovesAbortedFolders checks that a restore removes the folders of killed
// restores, and no others. It does not start while another one into the same data folder
// runs.
func TestRestoreRemovesAbortedFolders(t *testing.T) {
	t.Parallel()
	at := func(data string) Location {
		return Location{Database: "sqlite:" + filepath.Join(data, databaseFile), Data: data, Contents: func(_ db.Kind, data string) (bool, string) {
			return false, filepath.Join(data, contentsFolder)
		}}
	}
	from := at(t.TempDir())
	store, err := db.Open(t.Context(), from.Database, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]fs.FS{"test": fstest.MapFS{"migrations/0001_test.sql": {Data: []byte("-- +goose Up\nCREATE TABLE test (x BIGINT);")}}}
	if err := store.Migrate(t.Context(), "test", known["test"]); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := Create(t.Context(), from, &file, CreateOptions{Version: "1.0"}); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	aborted, running, other := data+".restoring-1", data+".restoring-22", data+".restoring-old"
	for _, folder := range []string{aborted, running, other} {
		if err := os.MkdirAll(filepath.Join(folder, "cas"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := lockFolder(running)
	if err != nil {
		t.Fatal(err)
	}
	options := RestoreOptions{Schema: Schema{
		Known:        known,
		CreateTables: func(context.Context, *db.DB) error { return nil },
	}}
	restored, err := Restore(t.Context(), at(data), bytes.NewReader(file.Bytes()), options)
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "is being restored into") || !slices.Equal(restored.Removed, []string{aborted}) {
		t.Errorf("while another one runs: %v, removed %v", err, restored.Removed)
	}
	if err := unlock(); err != nil { // as if it was killed
		t.Fatal(err)
	}
	restored, err = Restore(t.Context(), at(data), bytes.NewReader(file.Bytes()), options)
	if err != nil || !slices.Equal(restored.Removed, []string{running}) {
		t.Errorf("afterwards: %v, removed %v", err, restored.Removed)
	}
	entries, err := os.ReadDir(filepath.Dir(data))
	if err != nil || len(entries) != 2 || entries[0].Name() != "data" || entries[1].Name() != filepath.Base(other) {
		t.Errorf("left are %v (%v)", entries, err)
	}
}

// TestFailureIsStored checks that a folder says why its latest backup was not made, until
// one is made.
func TestFailureIsStored(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	from := Location{Database: "sqlite:" + filepath.Join(data, databaseFile), Data: data, Contents: func(_ db.Kind, data string) (bool, string) {
		return false, filepath.Join(data, contentsFolder)
	}}
	store, err := db.Open(t.Context(), from.Database, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"migrations/0001_test.sql": {Data: []byte("-- +goose Up\nCREATE TABLE test (x BIGINT);")}}
	if err := errors.Join(store.Migrate(t.Context(), "test", files), store.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	folder := filepath.Join(data, Folder)
	var moved error
	s := Schedule{
		From: func() (Location, error) { return from, moved }, Folder: folder, Every: time.Hour, Keep: 1, Log: slog.New(slog.DiscardHandler), Report: func(error) { stop() },
		Schema: Schema{CreateTables: func(context.Context, *db.DB) error { return nil }}, // which does not know these tables
	}
	s.Run(ctx)
	if f, failed := FailureOf(folder); !failed || !strings.Contains(f.Error, `its tables "test"`) || f.At.IsZero() || Latest(folder) != "" {
		t.Errorf("after a failure: %+v, %v", f, failed)
	}
	s.Schema.Known = map[string]fs.FS{"test": files}
	if _, err := s.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	moved = errors.New("the password is away")
	if _, err := s.Make(t.Context()); !errors.Is(err, moved) {
		t.Errorf("without its address: %v", err)
	}
	if f, failed := FailureOf(folder); failed || Late(folder, time.Hour, time.Now()) != 0 || Late(folder, time.Hour, time.Now().Add(2*time.Hour)) == 0 {
		t.Errorf("after a backup: %+v, %v", f, failed)
	}
}
