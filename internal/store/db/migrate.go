package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
)

var setName = lazyregexp.New(`^[a-z][a-z0-9_]{0,30}$`)

// Migrate brings the tables of one package up to date. The package embeds its files,
// migrations/00001_words.sql and so on in goose's form, and names its set; the
// table migrations_<set> records which have run. Each runs once, in order, and in a
// transaction. A released file must never change. The names of sets and tables are
// stored in databases, so a set keeps its name when its package is renamed.
func (d *DB) Migrate(ctx context.Context, set string, files fs.FS) error {
	if d.closed.Load() {
		return errClosed()
	}
	d.sets.Store(set, files)
	return d.migrateTo(ctx, set, files, math.MaxInt64)
}

// Migrations returns the migrations that Migrate was called with, by the names of sets.
func (d *DB) Migrations() map[string]fs.FS {
	sets := map[string]fs.FS{}
	d.sets.Range(func(set, files any) bool {
		sets[set.(string)] = files.(fs.FS)
		return true
	})
	return sets
}

// migrateTo is Migrate, without the files whose number is above version.
func (d *DB) migrateTo(ctx context.Context, set string, files fs.FS, version int64) error {
	if err := d.migrate(ctx, set, files, version); err != nil {
		return fault.Wrap(fault.Internal, d.dialect.explain(err), "migrate %s", set).
			WithHint("use the newest release with this database; if it is the newest, please report this")
	}
	return nil
}

func (d *DB) migrate(ctx context.Context, set string, files fs.FS, version int64) error {
	if !setName().MatchString(set) {
		return fmt.Errorf("set name %q is not lower-case letters, digits and _", set)
	}
	folder, err := fs.Sub(files, "migrations")
	if err != nil {
		return err
	}
	if d.isUpToDate(ctx, set, folder) {
		return nil
	}
	return d.dialect.migrating(ctx, func(pool *sql.DB) error {
		p, err := goose.NewProvider(d.dialect.migrations(), pool, d.dialect.translate(folder),
			goose.WithTableName("migrations_"+set), goose.WithDisableGlobalRegistry(true))
		if err != nil {
			return err
		}
		if err := refuseOthers(ctx, p); err != nil {
			return err
		}
		return up(ctx, p, version)
	})
}

// NewestVersion returns the version to which the files of a set bring its tables.
func NewestVersion(files fs.FS) (int64, error) {
	folder, err := fs.Sub(files, "migrations")
	if err != nil {
		return 0, err
	}
	return newest(folder)
}

func newest(folder fs.FS) (int64, error) {
	files, err := fs.Glob(folder, "*.sql")
	if err != nil || len(files) == 0 {
		return 0, errors.Join(err, fs.ErrNotExist)
	}
	return goose.NumericComponent(slices.Max(files))
}

// isUpToDate reports whether the newest file has run, as at nearly every start. It needs
// one query; the library needs many, and other processes that start wait for it.
func (d *DB) isUpToDate(ctx context.Context, set string, folder fs.FS) bool {
	newest, err := newest(folder)
	if err != nil {
		return false
	}
	var ran int64
	err = d.Read(ctx, func(tx *Tx) error {
		return tx.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM migrations_"+set).Scan(&ran)
	})
	return err == nil && ran == newest
}

// refuseOthers returns an error if a newer program has changed the tables, or if they are from
// before the first release.
func refuseOthers(ctx context.Context, p *goose.Provider) error {
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("the database is at version %d, this program knows %d", current, target)
	}
	if first := p.ListSources()[0].Version; current > 0 && current < first {
		return fmt.Errorf("the database is from before the first release, at version %d of %d: use a new data folder", current, first)
	}
	return nil
}

// up runs the migrations that have not run. If another process does so at the same
// time, one of the two fails with a conflict and tries again.
func up(ctx context.Context, p *goose.Provider, version int64) error {
	for {
		before, err := p.GetDBVersion(ctx)
		if err != nil {
			return err
		}
		_, failed := p.UpTo(ctx, version)
		if failed == nil {
			return nil
		}
		after, err := p.GetDBVersion(ctx)
		if err != nil || after == before {
			return errors.Join(named(failed), err)
		}
	}
}

// named adds the name of the file that failed.
func named(err error) error {
	var partial *goose.PartialError
	if !errors.As(err, &partial) {
		return err
	}
	return fmt.Errorf("run %s: %w", partial.Failed.Source.Path, partial.Err)
}

// textColumn matches a text column as our migrations write it.
var textColumn = lazyregexp.New(`(?m)((?:^\s*|[(,]\s*|ADD COLUMN )[a-z_]+\s+)TEXT\b`)

// collated are migrations whose text columns are compared byte by byte, as SQLite does,
// whatever the locale of the Postgres database.
type collated struct{ fs.FS }

// Open opens a file, or the folder. It adds the collation to SQL files.
func (c collated) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return f, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return collatedFile{f, strings.NewReader(textColumn().ReplaceAllString(string(text), `${1}TEXT COLLATE "C"`))}, nil
}

type collatedFile struct {
	fs.File
	text *strings.Reader
}

func (f collatedFile) Read(p []byte) (int, error) { return f.text.Read(p) }
