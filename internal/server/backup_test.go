package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/backup"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestRestoreRefusesNewerBackups checks that a backup with newer or unknown tables is
// refused before any file is written, and that one of this version is restored.
func TestRestoreRefusesNewerBackups(t *testing.T) {
	t.Parallel()
	known := knownMigrations()
	for set, want := range map[string]string{
		"job":    `its tables "job" are at version 9999`,
		"future": `its tables "future" are at version 9999, known is 0`,
		"":       "",
	} {
		folder := t.TempDir()
		loaded := func(name string) *config.Loaded {
			data := filepath.Join(folder, name)
			return &config.Loaded{Config: config.Config{Data: data, Database: "sqlite:" + filepath.Join(data, config.DatabaseFile)}}
		}
		d, err := db.Open(t.Context(), loaded("source").Database, db.Options{})
		if err != nil {
			t.Fatal(err)
		}
		files, name := fs.FS(fstest.MapFS{"migrations/9999_later.sql": {Data: []byte("-- +goose Up\nCREATE TABLE later (x BIGINT);")}}), set
		if set == "" {
			files, name = known["job"], "job"
		}
		if err := d.Migrate(t.Context(), name, files); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := createBackup(t, loaded("source"), &file, "99.0"); err != nil {
			t.Fatal(err)
		}
		_, err = restoreBackup(t, loaded("target"), &file)
		left, _ := filepath.Glob(filepath.Join(folder, "target*"))
		if want == "" {
			if _, missing := os.Stat(filepath.Join(folder, "target", config.DatabaseFile)); err != nil || missing != nil {
				t.Errorf("backup of this version: %v, %v", err, missing)
			}
			continue
		}
		if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), want) || !strings.Contains(fault.HintOf(err), "luanette 99.0 or newer") || len(left) > 0 {
			t.Errorf("newer tables of %s: error %v, hint %q, files %v", set, err, fault.HintOf(err), left)
		}
	}
}

// everything switches on all parts that have tables of their own.
const everything = withPeople + `
[music]
enabled = true
`

// TestRestoreKnowsAllTables checks that a restore knows the tables of every package, whether
// it is on or not, and that no table has a sequence, which a restore would have to set.
func TestRestoreKnowsAllTables(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for set, files := range knownMigrations() {
		entries, err := fs.ReadDir(files, "migrations")
		if err != nil {
			t.Fatalf("%s: %v", set, err)
		}
		for _, entry := range entries {
			text, err := fs.ReadFile(files, "migrations/"+entry.Name())
			if err != nil {
				t.Fatal(err)
			}
			known[string(text)] = true
		}
	}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (entry.Name() == "fts5" || entry.Name() == "tsvector" || entry.Name() == "testdata") {
			return fs.SkipDir // the index of words is made anew
		}
		if err != nil || !strings.HasSuffix(path, ".sql") {
			return err
		}
		text, err := os.ReadFile(path)
		if !known[string(text)] {
			t.Errorf("the migrations of %s are not in knownMigrations", filepath.Dir(path))
		}
		return err
	})
	if err != nil || len(known) < 30 {
		t.Fatalf("%d files of migrations: %v", len(known), err)
	}
	srv := startNode(t, tables.Postgres(t), "a", everything).srv
	used := srv.store.Migrations()
	maps.DeleteFunc(used, func(set string, _ fs.FS) bool { return slices.Contains(artifact.Derived.Sets, set) })
	if got, want := slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(knownMigrations())); !slices.Equal(got, want) {
		t.Errorf("a server with everything uses the tables\n%q\nknown are\n%q", got, want)
	}
	var sequences []string
	sequences, err = db.Find(t.Context(), srv.store, db.Column[string],
		`SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind = 'S' AND n.nspname IN (current_schema(), current_schema() || '_dbos') AND c.relname NOT LIKE 'migrations%'`)
	if err != nil || len(sequences) > 0 {
		t.Errorf("sequences %v (%v)", sequences, err)
	}
}

// TestBackupAndRestore restores the backup of a running node that has everything into both
// kinds of database, compares all rows and contents, and starts servers with the default
// settings on them.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	tables.Each(t, func(t *testing.T, database string) {
		node := startNode(t, database, "a", everything)
		ref := storeArtifact(t, node.srv)
		var file bytes.Buffer
		var want map[string][][]any
		clocktest.Await(t, func() bool { // until the node writes nothing during the backup
			file.Reset()
			before := rowsOf(t, node.srv.config.Database)
			if err := createBackup(t, node.srv.config, &file, "test"); err != nil {
				t.Fatal(err)
			}
			want = rowsOf(t, node.srv.config.Database)
			return reflect.DeepEqual(before, want)
		})
		for _, to := range []string{"sqlite", "postgres"} {
			data := filepath.Join(t.TempDir(), "data")
			loaded := &config.Loaded{Config: config.Config{Data: data, Database: "sqlite:" + filepath.Join(data, config.DatabaseFile)}}
			if to == "postgres" {
				loaded.Database = dbtest.Postgres(t)
			}
			if _, err := restoreBackup(t, loaded, bytes.NewReader(file.Bytes())); err != nil {
				t.Fatalf("to %s: %v", to, err)
			}
			got := rowsOf(t, loaded.Database)
			for table := range want {
				if !reflect.DeepEqual(got[table], want[table]) {
					t.Errorf("to %s: the rows of %s differ: got %d, want %d", to, table, len(got[table]), len(want[table]))
				}
			}
			restored := startNode(t, loaded.Database, "b", fmt.Sprintf("blobs = %q", map[string]string{"sqlite": filepath.Join(data, "cas")}[to]))
			checkArtifact(t, restored.srv, ref)
		}
	})
}

// storeArtifact stores an artifact with a large content.
func storeArtifact(t *testing.T, srv *Server) artifact.Artifact {
	t.Helper()
	content := bytes.Repeat([]byte("content "), 500_000)
	a, _, err := srv.contents.Store.Put(t.Context(), bytes.NewReader(content), artifact.Details{MIME: "text/plain", Name: "Épopée", Tags: []string{"kind:song"}, Description: "a nocturne"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// checkArtifact searches for the artifact and reads its content.
func checkArtifact(t *testing.T, srv *Server, want artifact.Artifact) {
	t.Helper()
	for _, words := range []string{"nocturne", "épopée"} {
		page, err := srv.contents.Store.Search(t.Context(), artifact.Query{Vibe: words})
		if err != nil || len(page.Artifacts) != 1 || page.Artifacts[0].Hash != want.Hash {
			t.Errorf("%q finds %+v (%v)", words, page, err)
		}
	}
	content, err := srv.contents.Store.Read(t.Context(), want.Hash, 1<<30)
	if err != nil || int64(len(content)) != want.Size {
		t.Errorf("read %d bytes (%v), want %d", len(content), err, want.Size)
	}
}

// rowsOf returns the rows of all tables, except tables that change all the time and those
// of contents, which only some databases have.
func rowsOf(t *testing.T, address string) map[string][][]any {
	t.Helper()
	all := map[string][][]any{}
	err := db.ReadDump(context.WithoutCancel(t.Context()), address, func(d *db.Dump) error {
		for _, table := range backup.NewHeader(d, "").Tables {
			if slices.Contains([]string{"nodes", "blobs", "blob_parts", "queues"}, table.Name) {
				continue
			}
			all[table.Name] = nil
			err := d.Rows(t.Context(), db.Table(table), func(row []any) error {
				all[table.Name] = append(all[table.Name], slices.Clone(row))
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRestoreRefusesADatabaseInUse checks that the error names the running nodes.
func TestRestoreRefusesADatabaseInUse(t *testing.T) {
	t.Parallel()
	database := tables.Postgres(t)
	node := startNode(t, database, "busy", "")
	var file bytes.Buffer
	if err := createBackup(t, node.srv.config, &file, ""); err != nil {
		t.Fatal(err)
	}
	loaded := &config.Loaded{Config: config.Config{Data: filepath.Join(t.TempDir(), "data"), Database: database}}
	_, err := restoreBackup(t, loaded, &file)
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "servers are using the database: busy") {
		t.Errorf("Restore = %v", err)
	}
	if _, err := os.Stat(loaded.Data); err == nil {
		t.Error("the data folder was created")
	}
}

func createBackup(t *testing.T, loaded *config.Loaded, w io.Writer, version string) error {
	from, err := BackupLocation(loaded, config.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	return backup.Create(t.Context(), from, w, backup.CreateOptions{Version: version})
}

func restoreBackup(t *testing.T, loaded *config.Loaded, r io.Reader) (backup.Restored, error) {
	to, err := BackupLocation(loaded, config.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	return backup.Restore(t.Context(), to, r, backup.RestoreOptions{Schema: BackupSchema()})
}
