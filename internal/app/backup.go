package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/backup"
	"github.com/luanette/luanette/internal/db"
	"github.com/luanette/luanette/internal/fault"
)

// databaseName is what the database is called in a backup.
const databaseName = "luanette.db"

// Backup writes all that the data folder holds to w, while servers go on using
// it: the database in the state of one moment, then the contents it speaks of,
// none of which is ever changed.
func Backup(ctx context.Context, config *Loaded, w io.Writer, version string, progress backup.Progress) (err error) {
	file, err := db.File(config.Database)
	if err != nil {
		return err
	}
	if _, err := os.Stat(file); err != nil {
		return fault.Wrap(fault.NotFound, err, "there is nothing to back up in %s", config.Data).
			WithHint("name the data folder with --data")
	}
	temp, err := os.MkdirTemp(filepath.Dir(file), ".backup-*")
	if err != nil {
		return fault.Wrap(fault.Config, err, "make a folder for the copy of the database")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	copied := filepath.Join(temp, databaseName)
	if err := db.CopyFile(ctx, file, copied); err != nil {
		return err
	}
	schema, err := db.Versions(ctx, copied)
	if err != nil {
		return err
	}
	files, err := backup.Files(config.Data, func(name string, isFolder bool) bool {
		return isPassing(name, isFolder) || isDatabase(filepath.Join(config.Data, filepath.FromSlash(name)), file)
	})
	if err != nil {
		return fault.Wrap(fault.Internal, err, "list the data folder")
	}
	files = append([]backup.Source{{Name: databaseName, From: copied}}, files...)
	return backup.Pack(ctx, w, backup.Header{Program: version, Created: time.Now().UTC(), Schema: schema}, files, progress)
}

// isDatabase tells the database's files, and those beside it.
func isDatabase(path, database string) bool {
	return path == database || strings.HasPrefix(path, database+"-") || strings.HasPrefix(path, database+".")
}

// isPassing tells what in a data folder is of the moment: temporary files, and
// what upstreams said of themselves when they were last reached.
func isPassing(name string, isFolder bool) bool {
	if isFolder {
		return slices.Contains([]string{"temp", "tmp", "upstreams", "cas/unfinished"}, name) || strings.HasPrefix(name, ".backup-")
	}
	return strings.HasSuffix(name, ".lock")
}

// RestoreOptions are the choices of a restore.
type RestoreOptions struct {
	Version  string
	Replace  bool // what is in the data folder already is put aside
	Progress backup.Progress
}

// Restored tells what was restored.
type Restored struct {
	backup.Header
	Aside string // where the data folder was put that was there before; "" when there was none
}

// Restore makes the data folder what a backup holds. The folder changes in one
// step, when all of the backup has been read and found sound.
func Restore(ctx context.Context, config *Loaded, r io.Reader, o RestoreOptions) (restored Restored, err error) {
	data, err := filepath.Abs(config.Data)
	if err != nil {
		return restored, err
	}
	file, err := db.File(config.Database)
	if err != nil {
		return restored, err
	}
	if file != filepath.Join(data, databaseName) {
		return restored, fault.New(fault.Config, "the database %s is not %s in the data folder", file, databaseName).
			WithHint("restore into a data folder without --database, then move the file")
	}
	release, err := unused(ctx, data, file, o.Replace)
	if err != nil {
		return restored, err
	}
	defer func() { err = errors.Join(err, release()) }()
	fresh := fmt.Sprintf("%s.restoring-%d", data, os.Getpid())
	if err := os.MkdirAll(filepath.Dir(data), 0o700); err != nil {
		return restored, fault.Wrap(fault.Config, err, "make data folder")
	}
	known, err := knownSchema(ctx)
	if err != nil {
		return restored, err
	}
	restored.Header, err = backup.Unpack(ctx, r, fresh, func(h backup.Header) error { return notNewer(h, known) }, o.Progress)
	if err != nil {
		return restored, err
	}
	if err := sound(ctx, filepath.Join(fresh, databaseName)); err != nil {
		return restored, errors.Join(err, os.RemoveAll(fresh))
	}
	restored.Aside, err = swap(data, fresh)
	return restored, err
}

// unused refuses a data folder that is in use, or that has something in it which
// nobody said may go. While release was not called nobody else runs a server there.
func unused(ctx context.Context, data, file string, replace bool) (release func() error, err error) {
	release = func() error { return nil }
	entries, err := os.ReadDir(data)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return release, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "look into the data folder")
	}
	if _, err := os.Stat(file); err == nil {
		store, err := db.Open(ctx, "sqlite:"+file, db.Options{})
		if err != nil {
			return nil, err
		}
		claim, err := store.Claim(ctx, "jobs")
		if fault.CodeOf(err) == fault.Conflict {
			err = fault.New(fault.Conflict, "a server is using %s", data).WithHint("stop it first")
		}
		if err != nil {
			return nil, errors.Join(err, store.Close())
		}
		release = func() error { return errors.Join(claim(), store.Close()) }
	}
	if !replace {
		return nil, errors.Join(fault.New(fault.Conflict, "%s has something in it already", data).
			WithHint("give another folder with --data, or --replace, which puts this one aside"), release())
	}
	return release, nil
}

// notNewer refuses a backup whose tables this program does not know.
func notNewer(h backup.Header, known map[string]int64) error {
	for _, set := range slices.Sorted(mapKeys(h.Schema)) {
		if version := h.Schema[set]; version > known[set] {
			return fault.New(fault.Conflict, "the backup is newer than this program: its tables %q are at version %d, known is %d", set, version, known[set]).
				WithHint("restore it with luanette %s or newer", h.Program)
		}
	}
	return nil
}

// knownSchema is the versions of tables that this program makes, found out by
// letting it make them.
func knownSchema(ctx context.Context) (schema map[string]int64, err error) {
	folder, err := os.MkdirTemp("", "luanette-schema-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	env := Environment{"HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder}
	none := filepath.Join(folder, "none.toml")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		return nil, err
	}
	config, err := Load(Sources{File: none, Env: env, Flags: map[string]string{"data": filepath.Join(folder, "data"), "log.level": "error"}})
	if err != nil {
		return nil, err
	}
	house, err := Build(ctx, config, Options{Version: "schema", Stderr: io.Discard, Env: env, Jobs: true})
	if err != nil {
		return nil, err
	}
	if err := house.Close(ctx); err != nil {
		return nil, err
	}
	file, err := db.File(config.Database)
	if err != nil {
		return nil, err
	}
	return db.Versions(ctx, file)
}

// sound refuses a database that is damaged.
func sound(ctx context.Context, file string) (err error) {
	store, err := db.Open(ctx, "sqlite:"+file, db.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.Check(ctx)
}

// swap puts the fresh folder in the place of the data folder.
func swap(data, fresh string) (aside string, err error) {
	if _, err := os.Stat(data); err == nil {
		aside = data + ".before-" + time.Now().UTC().Format("20060102T150405")
		if err := os.Rename(data, aside); err != nil {
			return "", fault.Wrap(fault.Internal, err, "put the data folder aside")
		}
	}
	if err := os.Rename(fresh, data); err != nil {
		return aside, fault.Wrap(fault.Internal, err, "put the restored folder in place").
			WithHint("it is in %s, and sound", fresh)
	}
	return aside, nil
}
