package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// RestoreOptions are the choices of a restore, and what the program must provide.
type RestoreOptions struct {
	Replace  bool // move an existing data folder aside
	Progress Progress
	Schema   Schema
}

// Restored describes a completed restore.
type Restored struct {
	Header
	Aside   string   // where the former data folder was moved; "" if there was none
	Removed []string // folders of aborted restores
	Damaged []string // contents that were damaged before they were backed up
}

// Restore fills an empty database of any kind and the data folder from a backup. Both
// change in one step, after the whole backup was read and its checksums were verified.
func Restore(ctx context.Context, to Location, r io.Reader, o RestoreOptions) (restored Restored, err error) {
	target, err := newTarget(to, o.Schema)
	if err != nil {
		return restored, err
	}
	release, err := target.claim(ctx, o.Replace)
	if err != nil {
		return restored, err
	}
	defer func() { err = errors.Join(err, release()) }()
	in, err := NewReader(r, o.Progress)
	if err != nil {
		return restored, err
	}
	restored.Header = in.Header
	if err := notNewer(in.Header, o.Schema.Known); err != nil {
		return restored, err
	}
	fresh, removed, leave, err := target.makeFolder()
	restored.Removed = removed
	if err != nil {
		return restored, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	err = db.FillEmpty(ctx, target.databaseIn(fresh), func(f *db.Filling) error {
		run := &restoring{f: f, fresh: fresh, header: in.Header, schema: o.Schema, stored: map[string]bool{}}
		run.inDatabase, run.contents = to.Contents(target.kind, fresh)
		err := run.run(ctx, in)
		restored.Damaged = run.damaged
		if err == nil && target.kind != db.SQLite { // an error empties the database again
			restored.Aside, err = target.swap(fresh)
		}
		return err
	})
	if err != nil {
		return restored, target.explainNotEmpty(ctx, err)
	}
	if target.kind == db.SQLite { // its file is closed by now
		restored.Aside, err = target.swap(fresh)
	}
	return restored, err
}

// target is where a backup is restored to.
type target struct {
	kind       db.Kind
	database   string // URL
	data       string // the data folder, as an absolute path
	inDatabase bool   // contents are in the database; their files are a cache
	schema     Schema
}

func newTarget(to Location, schema Schema) (t target, err error) {
	t.database, t.schema = to.Database, schema
	if t.kind, err = db.KindOf(t.database); err != nil {
		return t, err
	}
	if t.data, err = filepath.Abs(to.Data); err != nil {
		return t, err
	}
	t.inDatabase, _ = to.Contents(t.kind, t.data)
	if file := db.PathOf(t.database); t.kind == db.SQLite && file != filepath.Join(t.data, databaseFile) {
		return t, fault.New(fault.Config, "the database %s is not %s in the data folder", file, databaseFile).
			WithHint("restore into a data folder without --database, then move the file")
	}
	return t, nil
}

// databaseIn is the URL of the database; a file is in the new folder.
func (t target) databaseIn(fresh string) string {
	if t.kind == db.SQLite {
		return "sqlite:" + filepath.Join(fresh, databaseFile)
	}
	return t.database
}

// claim refuses a data folder that a server uses, or that is not empty unless it may
// be replaced. No server can start there until release is called.
func (t target) claim(ctx context.Context, replace bool) (release func() error, err error) {
	release = func() error { return nil }
	files, err := Files(t.data, func(name string, isFolder bool) bool {
		return t.kind != db.SQLite && isTemporary(name, isFolder) || t.inDatabase && name == contentsFolder
	})
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(files) == 0 {
		return release, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "read the data folder")
	}
	if file := filepath.Join(t.data, databaseFile); t.kind == db.SQLite && slices.ContainsFunc(files, func(f Source) bool { return f.From == file }) {
		if release, err = claimDatabase(ctx, file); err != nil {
			return nil, err
		}
	}
	if !replace {
		return nil, errors.Join(fault.New(fault.Conflict, "%s is not empty", t.data).
			WithHint("choose another folder with --data, or use --replace, which moves this one aside"), release())
	}
	return release, nil
}

// claimDatabase keeps servers from using a database file until release is called.
func claimDatabase(ctx context.Context, file string) (release func() error, err error) {
	store, err := db.Open(ctx, "sqlite:"+file, db.Options{})
	if err != nil {
		return nil, err
	}
	claim, err := store.Claim(ctx, "jobs")
	if fault.CodeOf(err) == fault.Conflict {
		err = fault.New(fault.Conflict, "a server is using %s", filepath.Dir(file)).WithHint("stop it first")
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return func() error { return errors.Join(claim(), store.Close()) }, nil
}

// explainNotEmpty adds to the error of a database that is not empty which nodes use it.
func (t target) explainNotEmpty(ctx context.Context, cause error) error {
	if !errors.Is(cause, db.ErrNotEmpty) {
		return cause
	}
	store, err := db.Open(ctx, t.database, db.Options{})
	if err != nil {
		return cause
	}
	defer func() { _ = store.Close() }() // nothing was written
	running, err := t.schema.RunningNodes(ctx, store)
	if err != nil || len(running) == 0 {
		return cause
	}
	return fault.Wrap(fault.Conflict, cause, "servers are using the database: %s", strings.Join(running, ", ")).
		WithHint("restore into an empty database")
}

// swap replaces the data folder by the restored one, unless that is empty.
func (t target) swap(fresh string) (aside string, err error) {
	if entries, err := os.ReadDir(fresh); err == nil && len(entries) == 0 {
		return "", nil
	}
	before, err := os.ReadDir(t.data)
	switch {
	case err != nil: // it does not exist
	case len(before) == 0:
		err = os.Remove(t.data)
	default:
		aside = t.data + ".before-" + time.Now().UTC().Format("20060102T150405")
		err = os.Rename(t.data, aside)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fault.Wrap(fault.Internal, err, "move the data folder aside")
	}
	if err := os.Rename(fresh, t.data); err != nil {
		if aside != "" {
			err = errors.Join(err, os.Rename(aside, t.data))
		}
		return "", fault.Wrap(fault.Internal, err, "move the restored folder into place")
	}
	return aside, nil
}

// notNewer refuses a backup with tables that are newer than those of this program.
func notNewer(h Header, known map[string]fs.FS) error {
	for _, set := range slices.Sorted(maps.Keys(h.Schema)) {
		newest := int64(0)
		if files := known[set]; files != nil {
			var err error
			if newest, err = db.NewestVersion(files); err != nil {
				return err
			}
		}
		if version := h.Schema[set]; version > newest {
			return fault.New(fault.Conflict, "the backup is newer than this program: its tables %q are at version %d, known is %d", set, version, newest).
				WithHint("restore it with luanette %s or newer", h.Program)
		}
	}
	return nil
}
