package backup

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

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
