package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/cluster/remotecall"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/jobs/job"
	guestbook "github.com/luanette/luanette/internal/mcp/sessionstore"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/backup"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// restoring is a restore under way.
type restoring struct {
	f          *db.Filling
	fresh      string // folder
	header     backup.Header
	known      map[string]fs.FS // migrations, by set
	inDatabase bool             // contents go to the database, else to a folder
	contents   string           // which is this one
	files      *cas.Dir         // it
	parts      parts
	stored     map[string]bool // contents that came as files, and are in the database
	damaged    []string
}

// run makes the tables as they were when the backup was made, and puts in what it
// holds. Whoever opens the database next brings them up to date.
func (r *restoring) run(ctx context.Context, in *backup.Reader) (err error) {
	if err := r.makeTables(ctx); err != nil {
		return err
	}
	if !r.inDatabase {
		if r.files, err = cas.OpenDir(r.contents, cas.DirOptions{MaxSize: -1}); err != nil {
			return fault.Wrap(fault.Config, err, "open the folder of contents").WithHint("choose a folder you may write to, with blobs or --data")
		}
	}
	r.parts = parts{done: func(hash string, content io.Reader) error { return r.keep(ctx, hash, content) }}
	err = in.Read(ctx, backup.Taker{
		File: func(name string, size int64, from io.Reader) error { return r.file(ctx, name, size, from) },
		Rows: func(t backup.Table, next func() ([]any, error)) error { return r.rows(ctx, t, next) },
	})
	if err = errors.Join(err, r.parts.end(err == nil)); err != nil {
		return err
	}
	if err := r.f.Finish(ctx); err != nil {
		return err
	}
	return r.settle(ctx)
}

func (r *restoring) makeTables(ctx context.Context) error {
	for set, version := range r.header.Schema {
		if err := r.f.MigrateTo(ctx, set, r.known[set], version); err != nil {
			return err
		}
	}
	if _, there := r.header.Schema[cas.MigrationSet]; r.inDatabase && !there {
		if err := r.f.DB.Migrate(ctx, cas.MigrationSet, r.known[cas.MigrationSet]); err != nil {
			return err
		}
	}
	return job.CreateTables(ctx, r.f.DB)
}

// settle makes anew what is not in a backup, and what another kind of database
// has otherwise.
func (r *restoring) settle(ctx context.Context) error {
	store, err := artifact.Open(ctx, r.f.DB, r.files, artifact.Options{})
	if err == nil {
		err = store.Reindex(ctx)
	}
	if err != nil || r.f.DB.Kind() != db.SQLite {
		return err
	}
	for set, disown := range map[string]func(context.Context, *db.DB) error{"job": job.ReleaseJobs, "script": script.ReleaseSessions} {
		if err := r.f.DB.Migrate(ctx, set, r.known[set]); err != nil {
			return err
		}
		if err := disown(ctx, r.f.DB); err != nil {
			return err
		}
	}
	return nil
}

// file takes a content, or another file of the data folder.
func (r *restoring) file(ctx context.Context, name string, size int64, from io.Reader) error {
	shelf, isContent := strings.CutPrefix(name, config.ContentsFolder+"/objects/")
	if ref, err := cas.Parse(strings.Replace(shelf, "/", "", 1)); isContent && err == nil {
		if !r.inDatabase {
			return r.keep(ctx, ref.String(), from)
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

// keep stores a content in the folder.
func (r *restoring) keep(ctx context.Context, hash string, content io.Reader) error {
	ref, _, err := r.files.Put(ctx, content)
	if err == nil && ref.String() != hash {
		r.damaged = append(r.damaged, hash)
	}
	return err
}

func (r *restoring) rows(ctx context.Context, t backup.Table, next func() ([]any, error)) error {
	isContent := t.Name == cas.TableBlobs || t.Name == cas.TableParts
	switch {
	case isContent && !r.inDatabase && t.Name == cas.TableBlobs:
		return nil
	case isContent && !r.inDatabase:
		return r.parts.take(next)
	case isContent:
		next = r.without(next)
	}
	err := r.f.Load(ctx, db.Table(t), next)
	if errors.Is(err, db.ErrUnknownColumn) {
		return fault.New(fault.Conflict, "the backup is newer than this program: it does not know all columns of the table %q", t.Name).
			WithHint("restore it with luanette %s or newer", r.header.Program)
	}
	return err
}

// without leaves out what came as a file too.
func (r *restoring) without(next func() ([]any, error)) func() ([]any, error) {
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

// parts makes contents of the rows that a database keeps them in, which come in
// order.
type parts struct {
	done func(hash string, content io.Reader) error
	hash string // of the content under way
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
			return fault.New(fault.InvalidParams, "the backup is damaged: a part of a content is none").WithHint("use another copy of it; nothing was restored")
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

// end hands over the content under way, if it is whole.
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

// knownSets is the migrations that this program has, found out by letting it make
// all of its tables.
func knownSets(ctx context.Context) (sets map[string]fs.FS, err error) {
	folder, err := os.MkdirTemp("", "luanette-schema-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	env := config.Environment{"HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder}
	none := filepath.Join(folder, "none.toml")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		return nil, err
	}
	loaded, err := config.Load(config.Sources{File: none, Env: env, Flags: map[string]string{"data": filepath.Join(folder, "data"), "log.level": "error"}})
	if err != nil {
		return nil, err
	}
	loaded.Blobs = config.BlobsInDatabase
	house, err := Build(ctx, loaded, Options{Version: "schema", Stderr: io.Discard, Env: env, Jobs: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, house.Close(ctx)) }()
	if _, err := guestbook.Open(ctx, house.store, time.Hour); err != nil { // nodes that share a database have these two
		return nil, err
	}
	if _, err := remotecall.Open(ctx, house.store, remotecall.Options{}); err != nil {
		return nil, err
	}
	return house.store.Migrations(), nil
}
