package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/luanette/luanette/internal/db"
	"github.com/luanette/luanette/internal/fault"
)

// A backup whose tables are newer than those this program makes, or of a kind it
// does not know, is refused before anything is unpacked; one of its own is not.
func TestABackupOfALaterProgramIsRefused(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		"job":       `its tables "job" are at version 9999`,
		"yet_to_be": `its tables "yet_to_be" are at version 9999, known is 0`,
		"":          "",
	} {
		folder := t.TempDir()
		config := func(name string) *Loaded {
			data := filepath.Join(folder, name)
			return &Loaded{Config: Config{Data: data, Database: "sqlite:" + filepath.Join(data, databaseName)}}
		}
		d, err := db.Open(t.Context(), config("there").Database, db.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if set != "" {
			later := fstest.MapFS{"migrations/9999_later.sql": {Data: []byte("-- +goose Up\nCREATE TABLE later (x BIGINT);")}}
			if err := d.Migrate(t.Context(), set, later); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := Backup(t.Context(), config("there"), &file, "99.0", nil); err != nil {
			t.Fatal(err)
		}
		_, err = Restore(t.Context(), config("here"), &file, RestoreOptions{})
		left, _ := filepath.Glob(filepath.Join(folder, "here*"))
		if want == "" {
			if _, lost := os.Stat(filepath.Join(folder, "here", databaseName)); err != nil || lost != nil {
				t.Errorf("one of its own: %v, %v", err, lost)
			}
			continue
		}
		if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), want) || !strings.Contains(fault.HintOf(err), "luanette 99.0 or newer") || len(left) > 0 {
			t.Errorf("%s: %v (%s), left behind %v", set, err, fault.HintOf(err), left)
		}
	}
}
