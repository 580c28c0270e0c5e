package backup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Folder is the name of the folder of scheduled backups in a data folder. It is not
// backed up itself.
const Folder = "backups"

// Schedule makes backups at intervals, verifies each, and deletes old ones.
type Schedule struct {
	From    func() (Location, error) // asked for each backup: the password of the database may change
	Folder  string                   // where the backups are written
	Every   time.Duration            // between two backups
	Keep    int                      // how many backups are kept
	Version string                   // of the program
	Schema  Schema
	Clock   clock.Clock // nil: the machine's
	Log     *slog.Logger
	// Report is told how each attempt ended; may be nil.
	Report func(err error)
}

// Run makes backups until ctx ends. The first follows when the newest existing one is old
// enough, so that restarts neither skip a backup nor make too many.
func (s Schedule) Run(ctx context.Context) {
	if s.Clock == nil {
		s.Clock = clock.Real()
	}
	for {
		if s.Clock.Sleep(ctx, s.wait()) != nil {
			return
		}
		if file, err := s.Make(ctx); err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "backup not made", "folder", s.Folder, "error", err)
			s.record(err)
			s.report(err)
			if s.Clock.Sleep(ctx, min(s.Every, 5*time.Minute)) != nil {
				return
			}
		} else if err == nil {
			s.Log.InfoContext(ctx, "backup made and verified", "file", file)
			s.report(nil)
		}
	}
}

func (s Schedule) report(err error) {
	if s.Report != nil {
		s.Report(err)
	}
}

// wait is the time until the next backup.
func (s Schedule) wait() time.Duration {
	info, err := os.Stat(Latest(s.Folder))
	if err != nil {
		return 0
	}
	return min(s.Every, info.ModTime().Add(s.Every).Sub(s.Clock.Now()))
}

// stamp is the time in the name of a backup, such that names sort by age.
const stamp = "20060102T150405.000Z"

// Latest returns the newest backup of a folder, or "" if it has none.
func Latest(folder string) string {
	list, _ := filepath.Glob(filepath.Join(folder, "*.backup")) // only the pattern can be wrong
	if len(list) == 0 {
		return ""
	}
	return slices.Max(list)
}

// Failure is why the latest backup of a folder was not made.
type Failure struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"`
}

// failureFile is in a folder whose latest backup was not made: the next attempt, other
// processes and a restarted server see it there.
const failureFile = "not-made.json"

// record stores why a backup was not made; nil says that it was made.
func (s Schedule) record(err error) {
	file := filepath.Join(s.Folder, failureFile)
	if err == nil {
		_ = os.Remove(file) // usually there is none
		return
	}
	text, _ := json.Marshal(Failure{s.Clock.Now().UTC(), err.Error()}) // it always encodes
	if os.MkdirAll(s.Folder, 0o700) != nil || os.WriteFile(file, text, 0o600) != nil {
		s.Log.Warn("the failure of a backup cannot be stored", "folder", s.Folder)
	}
}

// FailureOf returns why the latest backup of a folder was not made; false if it was, or
// none was tried.
func FailureOf(folder string) (f Failure, failed bool) {
	text, err := os.ReadFile(filepath.Join(folder, failureFile))
	return f, err == nil && json.Unmarshal(text, &f) == nil
}

// Late returns by how much the newest backup of a folder is older than the interval says
// that it may be; zero if it is not, or there is none.
func Late(folder string, every time.Duration, now time.Time) time.Duration {
	info, err := os.Stat(Latest(folder))
	if err != nil {
		return 0
	}
	return max(now.Sub(info.ModTime())-every, 0)
}

// Make makes one backup, verifies it by restoring it, and deletes the oldest ones. A backup
// that cannot be restored is not kept.
func (s Schedule) Make(ctx context.Context) (file string, err error) {
	if s.Clock == nil {
		s.Clock = clock.Real()
	}
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return "", fault.Wrap(fault.Config, err, "make the folder of backups")
	}
	file = filepath.Join(s.Folder, s.Clock.Now().UTC().Format(stamp)+".backup")
	partial := file + ".partial"
	from, err := s.From()
	if err != nil {
		return "", err
	}
	if err := WriteFile(ctx, from, partial, CreateOptions{Version: s.Version}); err != nil {
		return "", err
	}
	if err := Verify(ctx, partial, s.Schema); err != nil {
		return "", errors.Join(fault.Wrap(fault.Internal, err, "verify the new backup"), os.Remove(partial))
	}
	if err := os.Rename(partial, file); err != nil {
		return "", err
	}
	s.record(nil)
	return file, s.deleteOld()
}

// deleteOld deletes all but the newest backups.
func (s Schedule) deleteOld() (err error) {
	list, _ := filepath.Glob(filepath.Join(s.Folder, "*.backup"))
	slices.Sort(list)
	for len(list) > max(s.Keep, 1) {
		err, list = errors.Join(err, os.Remove(list[0])), list[1:]
	}
	return err
}

// WriteFile makes a backup as a file that only its owner can read. It leaves no file after
// an error.
func WriteFile(ctx context.Context, from Location, path string, o CreateOptions) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fault.Wrap(fault.Config, err, "write backup")
	}
	out := bufio.NewWriterSize(file, 1<<20)
	err = Create(ctx, from, out, o)
	if err = errors.Join(err, out.Flush(), file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// Verify restores a backup into a temporary folder, as a restore would, and deletes that
// again.
func Verify(ctx context.Context, path string, schema Schema) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return fault.Wrap(fault.Config, err, "read backup")
	}
	defer func() { _ = file.Close() }()
	folder, err := os.MkdirTemp(filepath.Dir(path), "verify-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	to := Location{
		Data: filepath.Join(folder, "data"), Database: "sqlite:" + filepath.Join(folder, "data", databaseFile),
		Contents: func(_ db.Kind, data string) (bool, string) { return false, filepath.Join(data, contentsFolder) },
	}
	restored, err := Restore(ctx, to, bufio.NewReaderSize(file, 1<<16), RestoreOptions{Schema: schema})
	if err == nil && len(restored.Damaged) > 0 {
		err = fault.New(fault.Internal, "%d stored contents are damaged, such as %s", len(restored.Damaged), restored.Damaged[0])
	}
	return err
}
