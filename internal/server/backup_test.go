package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
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

// A backup whose tables are newer than those this program makes, or of a kind it
// does not know, is refused before anything is unpacked; one of its own is not.
func TestABackupOfALaterProgramIsRefused(t *testing.T) {
	t.Parallel()
	known, err := knownMigrations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{
		"job":       `its tables "job" are at version 9999`,
		"yet_to_be": `its tables "yet_to_be" are at version 9999, known is 0`,
		"":          "",
	} {
		folder := t.TempDir()
		loaded := func(name string) *config.Loaded {
			data := filepath.Join(folder, name)
			return &config.Loaded{Config: config.Config{Data: data, Database: "sqlite:" + filepath.Join(data, config.DatabaseFile)}}
		}
		d, err := db.Open(t.Context(), loaded("there").Database, db.Options{})
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
		if err := createBackup(t, loaded("there"), &file, "99.0"); err != nil {
			t.Fatal(err)
		}
		_, err = restoreBackup(t, loaded("here"), &file)
		left, _ := filepath.Glob(filepath.Join(folder, "here*"))
		if want == "" {
			if _, lost := os.Stat(filepath.Join(folder, "here", config.DatabaseFile)); err != nil || lost != nil {
				t.Errorf("one of its own: %v, %v", err, lost)
			}
			continue
		}
		if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), want) || !strings.Contains(fault.HintOf(err), "luanette 99.0 or newer") || len(left) > 0 {
			t.Errorf("%s: %v (%s), left behind %v", set, err, fault.HintOf(err), left)
		}
	}
}

// A restore knows all tables that a node makes, and has no counters to set: what a
// node keeps is in rows alone.
func TestARestoreKnowsWhatANodeMakes(t *testing.T) {
	t.Parallel()
	known, err := knownMigrations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	database := dbtest.Postgres(t)
	srv := startNode(t, database, "a", "").srv
	err = db.ReadDump(t.Context(), database, func(d *db.Dump) error {
		for set, version := range backup.NewHeader(d, "").Schema {
			if known[set] == nil {
				t.Errorf("the tables %q, at version %d, are not known", set, version)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var counters []string
	err = srv.store.Read(t.Context(), func(tx *db.Tx) error {
		counters, err = db.All(t.Context(), tx, func(row db.Scanner) (name string, err error) { return name, row.Scan(&name) },
			`SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind = 'S' AND n.nspname IN (current_schema(), current_schema() || '_dbos') AND c.relname NOT LIKE 'migrations%'`)
		return err
	})
	if err != nil || len(counters) > 0 {
		t.Errorf("counters %v (%v)", counters, err)
	}
}

// What a serving node keeps is the same row for row after it was restored to a
// database of either kind, and contents are where that has them.
func TestWhatIsRestoredIsWhatWasKept(t *testing.T) {
	t.Parallel()
	for from, makeFrom := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			node := startNode(t, makeFrom(t), "a", "")
			ref := storeArtifact(t, node.srv)
			var file bytes.Buffer
			var want map[string][][]any
			clocktest.Await(t, func() bool { // until the node writes nothing of its own meanwhile
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
						t.Errorf("to %s: %s has %d rows, want %d, or they are not the same", to, table, len(got[table]), len(want[table]))
					}
				}
				restored := startNode(t, loaded.Database, "b", fmt.Sprintf("blobs = %q", map[string]string{"sqlite": filepath.Join(data, "cas")}[to]))
				checkArtifact(t, restored.srv, ref)
			}
		})
	}
}

// storeArtifact puts an artifact with a large content there.
func storeArtifact(t *testing.T, h *Server) artifact.Artifact {
	t.Helper()
	content := bytes.Repeat([]byte("all of it and more "), 200_000)
	a, _, err := h.contents.Store.Put(t.Context(), bytes.NewReader(content), artifact.Details{MIME: "text/plain", Name: "Épopée", Tags: []string{"kind:song"}, Description: "a nocturne"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// checkArtifact finds it by its words, and reads it.
func checkArtifact(t *testing.T, h *Server, want artifact.Artifact) {
	t.Helper()
	for _, words := range []string{"nocturne", "épopée"} {
		page, err := h.contents.Store.Search(t.Context(), artifact.Query{Vibe: words})
		if err != nil || len(page.Artifacts) != 1 || page.Artifacts[0].Hash != want.Hash {
			t.Errorf("%q finds %+v (%v)", words, page, err)
		}
	}
	content, err := h.contents.Store.Read(t.Context(), want.Hash, 1<<30)
	if err != nil || int64(len(content)) != want.Size {
		t.Errorf("read %d bytes (%v), want %d", len(content), err, want.Size)
	}
}

// rowsOf returns the rows of a database, without those that change by themselves and
// those that hold contents, which differ between databases.
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

// A restore says which nodes use the database that it would have filled.
func TestARestoreNamesRunningNodes(t *testing.T) {
	t.Parallel()
	database := dbtest.Postgres(t)
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
		t.Error("the data folder was made")
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
