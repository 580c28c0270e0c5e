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
	"github.com/luanette/luanette/internal/base/fileowner"
	"github.com/luanette/luanette/internal/base/realpath"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
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
	t.data = realpath.Of(t.data) // systemd links the folder of a service, and would miss the link
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
	if fileowner.Foreign(t.data) { // we are root, and its user reads it
		if err := fileowner.Give(fresh, t.data); err != nil {
			return "", fault.Wrap(fault.Internal, err, "give the restored folder to %s", fileowner.Name(t.data))
		}
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

// restoring is a restore in progress.
type restoring struct {
	f          *db.Filling
	fresh      string // the folder to restore into
	header     Header
	schema     Schema
	inDatabase bool     // contents go to the database, otherwise to a folder
	contents   string   // that folder
	files      *cas.Dir // the store in it
	parts      parts
	stored     map[string]bool // contents that were files in the backup and are in the database now
	damaged    []string
}

// run creates the tables in the version of the backup and fills them. The next program
// that opens the database migrates them.
func (r *restoring) run(ctx context.Context, in *Reader) (err error) {
	if err := r.createTables(ctx); err != nil {
		return err
	}
	if !r.inDatabase {
		if r.files, err = cas.OpenDir(r.contents, cas.DirOptions{MaxSize: -1}); err != nil {
			return fault.Wrap(fault.Config, err, "open the folder of contents").WithHint("choose a writable folder with blobs or --data")
		}
	}
	r.parts = parts{done: func(hash string, content io.Reader) error { return r.storeFile(ctx, hash, content) }}
	err = in.Read(ctx, Taker{
		File: func(name string, size int64, from io.Reader) error { return r.file(ctx, name, size, from) },
		Rows: func(t Table, next func() ([]any, error)) error { return r.rows(ctx, t, next) },
	})
	if err = errors.Join(err, r.parts.end(err == nil)); err != nil {
		return err
	}
	if err := r.f.Finish(ctx); err != nil {
		return err
	}
	return r.rebuild(ctx)
}

func (r *restoring) createTables(ctx context.Context) error {
	for set, version := range r.header.Schema {
		if err := r.f.MigrateTo(ctx, set, r.schema.Known[set], version); err != nil {
			return err
		}
	}
	if _, there := r.header.Schema[cas.MigrationSet]; r.inDatabase && !there {
		if err := r.f.DB.Migrate(ctx, cas.MigrationSet, r.schema.Known[cas.MigrationSet]); err != nil {
			return err
		}
	}
	return r.schema.CreateTables(ctx, r.f.DB)
}

// rebuild derives the tables that are not in a backup, and adapts those that differ
// between kinds of database.
func (r *restoring) rebuild(ctx context.Context) error {
	store, err := artifact.Open(ctx, r.f.DB, r.files, artifact.Options{})
	if err == nil {
		err = store.Reindex(ctx)
	}
	if err != nil || r.f.DB.Kind() != db.SQLite {
		return err
	}
	for set, release := range r.schema.Release {
		if err := r.f.DB.Migrate(ctx, set, r.schema.Known[set]); err != nil {
			return err
		}
		if err := release(ctx, r.f.DB); err != nil {
			return err
		}
	}
	return nil
}

// file restores a content or another file of the data folder.
func (r *restoring) file(ctx context.Context, name string, size int64, from io.Reader) error {
	object, isContent := strings.CutPrefix(name, contentsFolder+"/objects/")
	if ref, err := cas.Parse(strings.Replace(object, "/", "", 1)); isContent && err == nil {
		if !r.inDatabase {
			return r.storeFile(ctx, ref.String(), from)
		}
		r.stored[ref.String()] = true
		return cas.FillDatabase(ctx, r.f, ref.String(), size, from)
	}
	place := filepath.Join(r.fresh, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(place, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Sync(), out.Close())
}

// storeFile stores a content in the folder.
func (r *restoring) storeFile(ctx context.Context, hash string, content io.Reader) error {
	ref, _, err := r.files.Put(ctx, content)
	if err == nil && ref.String() != hash {
		r.damaged = append(r.damaged, hash)
	}
	return err
}

func (r *restoring) rows(ctx context.Context, t Table, next func() ([]any, error)) error {
	isContent := t.Name == cas.TableBlobs || t.Name == cas.TableParts
	switch {
	case isContent && !r.inDatabase && t.Name == cas.TableBlobs:
		return nil
	case isContent && !r.inDatabase:
		return r.parts.take(next)
	case isContent:
		next = r.unstored(next)
	}
	err := r.f.Load(ctx, db.Table(t), next)
	if errors.Is(err, db.ErrUnknownColumn) {
		return fault.New(fault.Conflict, "the backup is newer than this program: it does not know all columns of the table %q", t.Name).
			WithHint("restore it with luanette %s or newer", r.header.Program)
	}
	return err
}

// unstored skips the rows of contents that were files in the backup too.
func (r *restoring) unstored(next func() ([]any, error)) func() ([]any, error) {
	return func() ([]any, error) {
		for {
			row, err := next()
			if err != nil || row == nil {
				return nil, err
			}
			if hash, _ := row[0].(string); !r.stored[hash] {
				return row, nil
			}
		}
	}
}

// parts joins the rows of a content, which arrive in order.
type parts struct {
	done func(hash string, content io.Reader) error
	hash string // of the current content
	file *os.File
}

func (p *parts) take(next func() ([]any, error)) error {
	for {
		row, err := next()
		if err != nil || row == nil {
			return err
		}
		hash, isText := row[0].(string)
		data, isBytes := row[len(row)-1].([]byte)
		if !isText || !isBytes {
			return fault.New(fault.InvalidParams, "the backup is damaged: a part of a content has the wrong type").WithHint("use another copy; nothing was restored")
		}
		if err := p.add(hash, data); err != nil {
			return err
		}
	}
}

func (p *parts) add(hash string, data []byte) (err error) {
	if hash != p.hash {
		if err := p.end(true); err != nil {
			return err
		}
		if p.file, err = os.CreateTemp("", "luanette-content-*"); err != nil {
			return err
		}
		p.hash = hash
	}
	_, err = p.file.Write(data)
	return err
}

// end passes on the current content if it is complete.
func (p *parts) end(whole bool) (err error) {
	if p.file == nil {
		return nil
	}
	if whole {
		if _, err = p.file.Seek(0, io.SeekStart); err == nil {
			err = p.done(p.hash, p.file)
		}
	}
	err = errors.Join(err, p.file.Close(), os.Remove(p.file.Name()))
	p.file = nil
	return err
}

// restoringSuffix and a number follow the data folder's name in the name of the folder
// into which a backup is restored until it is complete.
const restoringSuffix = ".restoring-"

// makeFolder creates the folder to restore into and locks it until release is called
// or the process ends. Unlocked folders belong to restores that were killed; they are
// removed.
func (t target) makeFolder() (fresh string, removed []string, release func() error, err error) {
	if removed, err = t.removeAborted(); err != nil {
		return "", removed, nil, err
	}
	parent, name := filepath.Split(t.data)
	if err = os.MkdirAll(parent, 0o700); err == nil {
		fresh, err = os.MkdirTemp(parent, name+restoringSuffix)
	}
	var unlock func() error
	if err == nil {
		unlock, err = lockFolder(fresh)
	}
	if err != nil {
		return "", removed, nil, fault.Wrap(fault.Config, err, "create the folder to restore into").
			WithHint("choose a data folder with --data whose parent folder you may write to")
	}
	// After swap the folder does not exist under this name.
	return fresh, removed, func() error { return errors.Join(os.RemoveAll(fresh), unlock()) }, nil
}

// removeAborted removes the folders of aborted restores into this data folder.
func (t target) removeAborted() (removed []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(t.data))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "look for aborted restores")
	}
	for _, e := range entries {
		left := filepath.Join(filepath.Dir(t.data), e.Name())
		if !e.IsDir() || !isRestoring(t.data, left) {
			continue
		}
		unlock, err := lockFolder(left)
		if errors.Is(err, errLocked) {
			return removed, fault.New(fault.Conflict, "a backup is being restored into %s", t.data).WithHint("wait for it")
		}
		if err == nil {
			err = errors.Join(os.RemoveAll(left), unlock())
		}
		if err != nil {
			return removed, fault.Wrap(fault.Config, err, "remove the folder of an aborted restore").WithHint("remove %s", left)
		}
		removed = append(removed, left)
	}
	return removed, nil
}

// isRestoring reports whether makeFolder created a folder of that name.
func isRestoring(data, folder string) bool {
	number, ok := strings.CutPrefix(folder, data+restoringSuffix)
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

var errLocked = errors.New("another process has locked the folder")
