package backup

import (
	"context"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/db"
)

// Location is where a server stores its data.
type Location struct {
	Database string // URL
	Data     string // the data folder
	// Contents returns whether contents are in the database and the folder of their
	// files otherwise, for a data folder.
	Contents func(kind db.Kind, data string) (inDatabase bool, folder string)
}

// CreateOptions are the choices of a backup.
type CreateOptions struct {
	Version  string // of the program
	Progress Progress
}

// Create writes everything that is stored at a location to w while servers use it: a
// consistent snapshot of the database, the contents, which never change, and the
// other files of the data folder.
func Create(ctx context.Context, from Location, w io.Writer, o CreateOptions) error {
	kind, err := db.KindOf(from.Database)
	if err != nil {
		return err
	}
	return db.ReadDump(ctx, from.Database, func(d *db.Dump) error {
		files, err := from.files(kind, db.PathOf(from.Database)) // after the snapshot, so that no content is missing
		if err != nil {
			return fault.Wrap(fault.Internal, err, "list the data folder")
		}
		total := d.Size
		for _, f := range files {
			total += f.Size
		}
		h := NewHeader(d, o.Version)
		h.Database = string(kind)
		out, err := NewWriter(ctx, w, h, total, o.Progress)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := out.File(f); err != nil {
				return err
			}
		}
		for _, t := range h.Tables {
			if err := out.Table(t, func(take func([]any) error) error { return d.Rows(ctx, db.Table(t), take) }); err != nil {
				return err
			}
		}
		return out.Close()
	})
}

// NewHeader describes the tables of a database that a backup holds: all except those
// that can be derived from the others.
func NewHeader(d *db.Dump, version string) Header {
	h := Header{Program: version, Created: time.Now().UTC(), Schema: map[string]int64{}}
	for set, version := range d.Versions {
		if !slices.Contains(artifact.Derived.Sets, set) {
			h.Schema[set] = version
		}
	}
	for _, t := range d.Tables {
		if !slices.Contains(artifact.Derived.Tables, t.Name) {
			h.Tables = append(h.Tables, Table(t))
		}
	}
	return h
}

// files lists the contents that are files, and the other files of the data folder
// except those of the database.
func (l Location) files(kind db.Kind, database string) ([]Source, error) {
	data, err := filepath.Abs(l.Data)
	if err != nil {
		return nil, err
	}
	inDatabase, folder := l.Contents(kind, data)
	near := filepath.Join(data, contentsFolder)
	files, err := Files(data, func(name string, isFolder bool) bool {
		at := filepath.Join(data, filepath.FromSlash(name))
		return isTemporary(name, isFolder) || database != "" && isDatabase(at, database) || at == near && (inDatabase || folder != near)
	})
	if err != nil || inDatabase || folder == near {
		return files, err
	}
	shared, err := Files(folder, func(name string, isFolder bool) bool { return isFolder && name == "unfinished" })
	for _, f := range shared {
		f.Name = path.Join(contentsFolder, f.Name)
		files = append(files, f)
	}
	return files, err
}

// isDatabase reports whether path is the database file or one that belongs to it.
func isDatabase(path, database string) bool {
	return path == database || strings.HasPrefix(path, database+"-") || strings.HasPrefix(path, database+".")
}

// Names in a data folder.
const (
	databaseFile   = "luanette.db"
	contentsFolder = "cas"
)

// isTemporary reports whether a file or folder of a data folder is not backed up:
// temporary files, compiled scripts, and cached tool lists of upstreams.
func isTemporary(name string, isFolder bool) bool {
	if isFolder {
		return slices.Contains([]string{"temp", "tmp", "upstreams", "cache", "cas/unfinished", Folder}, name)
	}
	return strings.HasSuffix(name, ".lock")
}
