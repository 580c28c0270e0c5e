// Package backup writes all stored data to one file and restores it. The file is a tar
// archive, compressed with gzip. It begins with a header that names the program and the
// tables, continues with files and rows, and ends with a list of all of them with their
// sizes and SHA-256 sums. A backup without that list, or with a sum that differs, is
// refused. Backups are written and read as a stream, with little memory.
package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Format is the number of the layout described above.
const Format = 2

// Header describes a backup.
type Header struct {
	Format   int              `json:"format"`
	Program  string           `json:"program"` // version
	Created  time.Time        `json:"created"`
	Database string           `json:"database"` // its kind; the backup may be restored to any kind
	Schema   map[string]int64 `json:"schema"`   // versions of the sets of tables
	Tables   []Table          `json:"tables"`   // in the order of their rows
}

// Table is a table whose rows a backup holds.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
}

// entry is one file, or one portion of rows, in the list at the end.
type entry struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  string `json:"sha256"`
}

const (
	headerName = "luanette-backup.json"
	listName   = "luanette-files.json"
	filesName  = "files/"  // prefix of the names of files
	tablesName = "tables/" // prefix of the names of rows: tables/jobs/0, tables/jobs/1 …
	maxHeader  = 16 << 20
	maxList    = 1 << 30 // maximum bytes of the list, for about eight million files
)

// Progress receives the number of bytes done; total is zero if it is unknown.
type Progress func(done, total int64)

// Source is a file to back up: From is its path on disk, Name its name in the backup,
// with slashes.
type Source struct {
	Name string
	From string
	Size int64 // when it was listed
}

// Files lists the files below a folder, except those whose relative path skip accepts.
func Files(folder string, skip func(name string, isFolder bool) bool) (files []Source, err error) {
	err = filepath.WalkDir(folder, func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // removed since it was listed
			return nil
		}
		if err != nil || at == folder {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(at, folder+string(filepath.Separator)))
		switch {
		case skip(name, d.IsDir()) && d.IsDir():
			return fs.SkipDir
		case skip(name, d.IsDir()), !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			files = append(files, Source{Name: name, From: at, Size: info.Size()})
		}
		return err
	})
	return files, err
}

func damaged(format string, args ...any) error {
	return fault.New(fault.InvalidParams, "the backup is damaged: "+format, args...).
		WithHint("use another copy of it; nothing was restored")
}

func notABackup(err error) error {
	text := "the file is not a backup of luanette"
	if err != nil && !errors.Is(err, io.EOF) {
		text += ": " + err.Error()
	}
	return fault.New(fault.InvalidParams, "%s", text).WithHint("`luanette backup FILE` creates one")
}

// Schema is what the packages that own the tables provide.
type Schema struct {
	// Known is the migrations of all sets of tables.
	Known map[string]fs.FS
	// CreateTables creates the tables that have no migrations.
	CreateTables func(context.Context, *db.DB) error
	// Release changes a set of tables for a database that only one process uses.
	Release map[string]func(context.Context, *db.DB) error
	// RunningNodes returns the names of the nodes that use a database.
	RunningNodes func(context.Context, *db.DB) ([]string, error)
}
