package server

import (
	"context"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/backup"
	"github.com/luanette/luanette/internal/store/db"
)

// BackupOptions are the choices of a backup.
type BackupOptions struct {
	Version  string
	Env      config.Environment
	Progress backup.Progress
}

// Backup writes all that is kept to w, while servers go on: the database in the
// state of one moment, the contents it speaks of, none of which is ever changed,
// and what else is in the data folder.
func Backup(ctx context.Context, config *config.Loaded, w io.Writer, o BackupOptions) error {
	address, err := config.DatabaseURL(config.SecretFinder(o.Env))
	if err != nil {
		return err
	}
	kind, err := db.KindOf(address)
	if err != nil {
		return err
	}
	return db.ReadDump(ctx, address, func(d *db.Dump) error {
		files, err := filesOf(config, kind, db.PathOf(address)) // after the moment of the database
		if err != nil {
			return fault.Wrap(fault.Internal, err, "list the data folder")
		}
		total := d.Size
		for _, f := range files {
			total += f.Size
		}
		h := headerOf(d, o.Version)
		h.Database = string(kind)
		out, err := backup.NewWriter(ctx, w, h, total, o.Progress)
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

// headerOf describes what is packed: all but what can be made anew from it.
func headerOf(d *db.Dump, version string) backup.Header {
	h := backup.Header{Program: version, Created: time.Now().UTC(), Schema: map[string]int64{}}
	for set, version := range d.Versions {
		if !slices.Contains(artifact.Derived.Sets, set) {
			h.Schema[set] = version
		}
	}
	for _, t := range d.Tables {
		if !slices.Contains(artifact.Derived.Tables, t.Name) {
			h.Tables = append(h.Tables, backup.Table(t))
		}
	}
	return h
}

// files lists the contents, where they are files, and what else the data folder
// holds beside the database.
func filesOf(l *config.Loaded, kind db.Kind, database string) ([]backup.Source, error) {
	data, err := filepath.Abs(l.Data)
	if err != nil {
		return nil, err
	}
	inDatabase, folder := l.ContentLocation(kind, data)
	near := filepath.Join(data, config.ContentsFolder)
	files, err := backup.Files(data, func(name string, isFolder bool) bool {
		at := filepath.Join(data, filepath.FromSlash(name))
		return isPassing(name, isFolder) || database != "" && isDatabase(at, database) || at == near && (inDatabase || folder != near)
	})
	if err != nil || inDatabase || folder == near {
		return files, err
	}
	shared, err := backup.Files(folder, func(name string, isFolder bool) bool { return isFolder && name == "unfinished" })
	for _, f := range shared {
		f.Name = path.Join(config.ContentsFolder, f.Name)
		files = append(files, f)
	}
	return files, err
}

// isDatabase tells the database's files, and those beside it.
func isDatabase(path, database string) bool {
	return path == database || strings.HasPrefix(path, database+"-") || strings.HasPrefix(path, database+".")
}

// isPassing tells what in a data folder is of the moment, or can be made anew:
// temporary files, compiled scripts, and what upstreams said of themselves when
// they were last reached.
func isPassing(name string, isFolder bool) bool {
	if isFolder {
		return slices.Contains([]string{"temp", "tmp", "upstreams", "cache", "cas/unfinished"}, name)
	}
	return strings.HasSuffix(name, ".lock")
}
