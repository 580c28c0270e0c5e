package server

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
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/store/backup"
	"github.com/luanette/luanette/internal/store/db"
)

// RestoreOptions are the choices of a restore.
type RestoreOptions struct {
	Env      config.Environment
	Replace  bool // what is in the data folder already is put aside
	Progress backup.Progress
}

// Restored tells what was restored.
type Restored struct {
	backup.Header
	Aside   string   // where the data folder was put that was there before; "" when there was none
	Removed []string // folders of restores that were broken off
	Damaged []string // contents that were not sound any more when they were backed up
}

// Restore makes an empty database and the data folder what a backup holds,
// whichever kind of database that was made of. Both change in one step, when all of
// the backup has been read and found sound.
func Restore(ctx context.Context, config *config.Loaded, r io.Reader, o RestoreOptions) (restored Restored, err error) {
	place, err := placeToRestore(config, o.Env)
	if err != nil {
		return restored, err
	}
	release, err := place.unused(ctx, o.Replace)
	if err != nil {
		return restored, err
	}
	defer func() { err = errors.Join(err, release()) }()
	in, err := backup.NewReader(r, o.Progress)
	if err != nil {
		return restored, err
	}
	restored.Header = in.Header
	known, err := knownSets(ctx)
	if err == nil {
		err = notNewer(in.Header, known)
	}
	if err != nil {
		return restored, err
	}
	fresh, removed, leave, err := place.makeFresh()
	restored.Removed = removed
	if err != nil {
		return restored, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	err = db.FillEmpty(ctx, place.addressIn(fresh), func(f *db.Filling) error {
		to := &restoring{f: f, fresh: fresh, header: in.Header, known: known, stored: map[string]bool{}}
		to.inDatabase, to.contents = config.ContentLocation(place.kind, fresh)
		err := to.run(ctx, in)
		restored.Damaged = to.damaged
		if err == nil && place.kind != db.SQLite { // or the database is emptied again
			restored.Aside, err = place.swap(fresh)
		}
		return err
	})
	if err != nil {
		return restored, place.whoUses(ctx, err)
	}
	if place.kind == db.SQLite { // it is closed by now
		restored.Aside, err = place.swap(fresh)
	}
	return restored, err
}

// place is where a backup is restored to.
type place struct {
	kind    db.Kind
	address string // of the database
	data    string // the data folder, as an absolute path

	inDatabase bool // contents are, and files of them can be had again
}

func placeToRestore(l *config.Loaded, env config.Environment) (p place, err error) {
	if p.address, err = l.DatabaseURL(l.SecretFinder(env)); err != nil {
		return p, err
	}
	if p.kind, err = db.KindOf(p.address); err != nil {
		return p, err
	}
	if p.data, err = filepath.Abs(l.Data); err != nil {
		return p, err
	}
	p.inDatabase, _ = l.ContentLocation(p.kind, p.data)
	if file := db.PathOf(p.address); p.kind == db.SQLite && file != filepath.Join(p.data, config.DatabaseFile) {
		return p, fault.New(fault.Config, "the database %s is not %s in the data folder", file, config.DatabaseFile).
			WithHint("restore into a data folder without --database, then move the file")
	}
	return p, nil
}

// addressIn is that of the database, which as a file is in the fresh folder.
func (p place) addressIn(fresh string) string {
	if p.kind == db.SQLite {
		return "sqlite:" + filepath.Join(fresh, config.DatabaseFile)
	}
	return p.address
}

// unused refuses a data folder that is in use, or that has something in it which
// nobody said may go. While release was not called nobody else runs a server there.
func (p place) unused(ctx context.Context, replace bool) (release func() error, err error) {
	release = func() error { return nil }
	files, err := backup.Files(p.data, func(name string, isFolder bool) bool {
		return p.kind != db.SQLite && isPassing(name, isFolder) || p.inDatabase && name == config.ContentsFolder
	})
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(files) == 0 {
		return release, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "look into the data folder")
	}
	if file := filepath.Join(p.data, config.DatabaseFile); p.kind == db.SQLite && slices.ContainsFunc(files, func(f backup.Source) bool { return f.From == file }) {
		if release, err = claimed(ctx, file); err != nil {
			return nil, err
		}
	}
	if !replace {
		return nil, errors.Join(fault.New(fault.Conflict, "%s has something in it already", p.data).
			WithHint("give another folder with --data, or --replace, which puts this one aside"), release())
	}
	return release, nil
}

// claimed keeps servers away from a database file.
func claimed(ctx context.Context, file string) (release func() error, err error) {
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

// whoUses adds to the news that a database is not empty which nodes use it.
func (p place) whoUses(ctx context.Context, cause error) error {
	if !errors.Is(cause, db.ErrNotEmpty) {
		return cause
	}
	store, err := db.Open(ctx, p.address, db.Options{})
	if err != nil {
		return cause
	}
	defer func() { _ = store.Close() }() // nothing was written
	nodes, err := node.List(ctx, store)
	var running []string
	for _, n := range nodes {
		if n.State != "silent" {
			running = append(running, n.Name)
		}
	}
	if err != nil || len(running) == 0 {
		return cause
	}
	return fault.Wrap(fault.Conflict, cause, "servers are using the database: %s", strings.Join(running, ", ")).
		WithHint("restore into another database, one that is empty")
}

// swap puts the fresh folder in the place of the data folder, unless it holds
// nothing.
func (p place) swap(fresh string) (aside string, err error) {
	if entries, err := os.ReadDir(fresh); err == nil && len(entries) == 0 {
		return "", nil
	}
	before, err := os.ReadDir(p.data)
	switch {
	case err != nil: // it is not there
	case len(before) == 0:
		err = os.Remove(p.data)
	default:
		aside = p.data + ".before-" + time.Now().UTC().Format("20060102T150405")
		err = os.Rename(p.data, aside)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fault.Wrap(fault.Internal, err, "put the data folder aside")
	}
	if err := os.Rename(fresh, p.data); err != nil {
		if aside != "" {
			err = errors.Join(err, os.Rename(aside, p.data))
		}
		return "", fault.Wrap(fault.Internal, err, "put the restored folder in place")
	}
	return aside, nil
}

// notNewer refuses a backup whose tables this program does not know.
func notNewer(h backup.Header, known map[string]fs.FS) error {
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
