package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"sync"

	"github.com/pressly/goose/v3"

	"github.com/luanette/luanette/internal/base/fault"
)

var setName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`) })

// Migrate brings the tables of one room up to date. The room embeds its files,
// migrations/00001_words.sql and so on in goose's form, and names its set; the
// set's own table migrations_<set> says which have run. Each runs once, in
// order, and whole or not at all. A file that was released is never changed.
func (d *DB) Migrate(ctx context.Context, set string, files fs.FS) error {
	if d.closed.Load() {
		return errClosed()
	}
	d.sets.Store(set, files)
	return d.migrateTo(ctx, set, files, math.MaxInt64)
}

// Migrations are the migrations that Migrate was called with, by their names.
func (d *DB) Migrations() map[string]fs.FS {
	sets := map[string]fs.FS{}
	d.sets.Range(func(set, files any) bool {
		sets[set.(string)] = files.(fs.FS)
		return true
	})
	return sets
}

// migrateTo runs no file of a number above version.
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
		if err := refuseNewer(ctx, p); err != nil {
			return err
		}
		return up(ctx, p, version)
	})
}

// NewestVersion is the version that the files of a set bring its tables to.
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

// isUpToDate is sure of it when the newest file is the newest that has run, which
// is so at nearly every start. It asks once; the library asks often, and others
// that start wait for it.
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

// refuseNewer keeps an older program away from tables it does not understand.
func refuseNewer(ctx context.Context, p *goose.Provider) error {
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("the database is at version %d, this program knows %d", current, target)
	}
	return nil
}

// up runs what has not run. Another process may be doing the same: then one of
// us fails at what the other has just done, and carries on from there.
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

// named says which file failed.
func named(err error) error {
	var partial *goose.PartialError
	if !errors.As(err, &partial) {
		return err
	}
	return fmt.Errorf("run %s: %w", partial.Failed.Source.Path, partial.Err)
}
