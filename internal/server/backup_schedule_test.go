package server

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/store/backup"
	"github.com/luanette/luanette/internal/store/db"
)

// TestServerBacksItselfUp checks that a server makes a backup of itself that can be
// restored, that old ones are deleted, and that a damaged one is noticed.
func TestServerBacksItselfUp(t *testing.T) {
	t.Parallel()
	_, srv := start(t, config.Sources{Flags: map[string]string{"backup.every": "1h", "backup.keep": "2"}})
	folder := filepath.Join(srv.config.Data, backup.Folder)
	clocktest.Poll(t.Context(), func() bool { return backup.Latest(folder) != "" }) // minutes with the race detector: it creates every table
	first := backup.Latest(folder)
	from, err := BackupLocation(srv.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	schedule := backup.Schedule{From: func() (backup.Location, error) { return from, nil }, Folder: folder, Every: time.Hour, Keep: 2, Version: "test", Schema: BackupSchema(), Log: slog.New(slog.DiscardHandler)}
	var last string
	for range 2 {
		if last, err = schedule.Make(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 2 || backup.Latest(folder) != last {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("the oldest backup is left: %v", err)
	}
	file, err := os.Open(last)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data := filepath.Join(t.TempDir(), "restored")
	to := backup.Location{Data: data, Database: "sqlite:" + filepath.Join(data, config.DatabaseFile), Contents: func(_ db.Kind, data string) (bool, string) { return false, filepath.Join(data, "cas") }}
	if _, err := backup.Restore(t.Context(), to, file, backup.RestoreOptions{Schema: BackupSchema()}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(data, backup.Folder)); !os.IsNotExist(err) {
		t.Errorf("backups are in the backup: %v", err)
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(last, size/2); err != nil {
		t.Fatal(err)
	}
	if err := backup.Verify(t.Context(), last, BackupSchema()); err == nil {
		t.Error("half a backup is accepted")
	}
	if rest, err := filepath.Glob(filepath.Join(folder, "verify-*")); err != nil || len(rest) > 0 {
		t.Errorf("left: %s, %v", strings.Join(rest, " "), err)
	}
}

// TestBackupThatIsNotMadeIsShown checks that /health and the metrics say that a backup was
// not made.
func TestBackupThatIsNotMadeIsShown(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, "")
	url, srv := start(t, config.Sources{Flags: map[string]string{"backup.every": "1h", "backup.folder": filepath.Join(file, "backups")}})
	clocktest.Await(t, func() bool { return srv.backupFailed() != "" })
	if _, text := httpjsontest.Read(t, http.MethodGet, url+"/health", ""); !strings.Contains(text, `"backup_failed":"make the folder of backups`) {
		t.Errorf("health: %s", text)
	}
	if _, text := httpjsontest.Read(t, http.MethodGet, url+"/metrics", ""); !regexp.MustCompile(`(?m)^luanette_backup_failed(\{.*\})? 1$`).MatchString(text) {
		t.Errorf("metrics: %s", text)
	}
	srv.backupEnded(nil)
	if _, text := httpjsontest.Read(t, http.MethodGet, url+"/health", ""); strings.Contains(text, "backup_failed") {
		t.Errorf("health after a backup: %s", text)
	}
}
