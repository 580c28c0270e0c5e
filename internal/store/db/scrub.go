package db

import (
	"context"
)

// Scrub removes what deleted rows have left in the files of the database, as far as that
// is possible while others use it. On Postgres that is the work of VACUUM, which the
// server does by itself.
func (d *DB) Scrub(ctx context.Context) error {
	if d.closed.Load() {
		return errClosed()
	}
	return d.dialect.explain(d.dialect.scrub(ctx, d))
}

func (*postgres) scrub(context.Context, *DB) error { return nil }

// scrub fills the unused pages with zeros, by a table that uses all of them for a moment.
// Then it empties the log. The rest of a page in use needs nothing: secure_delete
// overwrites it. If a reader needs the log, it is overwritten later.
func (s *sqliteFile) scrub(ctx context.Context, d *DB) error {
	const portion, most = 4 << 20, 4096 // bytes of one transaction, for which others wait, and the number of them
	for range most {
		var unused int64
		err := d.Write(ctx, func(tx *Tx) error {
			err := tx.QueryRow(ctx, "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size").Scan(&unused)
			if err == nil {
				_, err = tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS db_zeros (zeros BLOB NOT NULL)")
			}
			if err == nil && unused > 0 {
				_, err = tx.Exec(ctx, "INSERT INTO db_zeros (zeros) VALUES (zeroblob($1))", min(unused, portion))
			}
			return err
		})
		if err != nil {
			return err
		}
		if unused <= portion {
			break
		}
	}
	err := d.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, "DROP TABLE IF EXISTS db_zeros")
		return err
	})
	if err == nil {
		_, err = s.writers.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	}
	return err
}
