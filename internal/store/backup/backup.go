// Package backup is one file that holds all that is kept. It is a tar archive,
// compressed with gzip: first a header that says what made it and of which tables
// it holds rows, then files and rows, last a list of all of them with their sizes
// and SHA-256 sums. Without that list, or with any sum that differs, it is not
// taken for a backup. It is written and read as a stream, with little memory.
package backup

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Format is the number of the layout described above.
const Format = 2

// Header says what a backup is of.
type Header struct {
	Format   int              `json:"format"`
	Program  string           `json:"program"` // version
	Created  time.Time        `json:"created"`
	Database string           `json:"database"` // which kind it was made of; it may be restored to any
	Schema   map[string]int64 `json:"schema"`   // versions of tables, by set
	Tables   []Table          `json:"tables"`   // in the order of their rows
}

// Table is a table of which a backup holds rows.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
}

// entry is one file, or some rows, in the list at the end.
type entry struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  string `json:"sha256"`
}

const (
	headerName = "luanette-backup.json"
	listName   = "luanette-files.json"
	filesName  = "files/"  // begins the names of files
	tablesName = "tables/" // and of rows: tables/jobs/0, tables/jobs/1 …
	mostHeader = 16 << 20
	mostList   = 1 << 30 // bytes of the list: some eight million files
)

// Progress hears how far it is, in bytes; total is zero where nobody knows.
type Progress func(done, total int64)

// Source is a file to pack: From on disk, Name in the backup, with slashes.
type Source struct {
	Name string
	From string
	Size int64 // when it was listed
}

// Files lists what is below a folder, except what skip says of its path there.
func Files(folder string, skip func(name string, isFolder bool) bool) (files []Source, err error) {
	err = filepath.WalkDir(folder, func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // gone since it was listed
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
	return fault.New(fault.InvalidParams, "%s", text).WithHint("`luanette backup FILE` makes one")
}
