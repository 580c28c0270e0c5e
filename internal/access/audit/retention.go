package audit

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// retentionInterval is how often old entries are deleted.
const retentionInterval = time.Hour

// RunRetention deletes entries that are older than Options.Keep, now and every hour
// until ctx ends.
func (l *Log) RunRetention(ctx context.Context) {
	for l.options.Keep > 0 {
		if err := l.DeleteBefore(ctx, l.options.Clock.Now().Add(-l.options.Keep)); err != nil && ctx.Err() == nil {
			l.options.Log.WarnContext(ctx, "old audit entries not deleted", "error", err)
		}
		if l.options.Clock.Sleep(ctx, retentionInterval) != nil {
			return
		}
	}
}

// deletedAtOnce bounds the entries that one transaction deletes.
const deletedAtOnce = 10_000

// DeleteBefore deletes entries that are older than before. Each chain stores up to
// where it was cut, with the hash of the last deleted entry.
func (s *Store) DeleteBefore(ctx context.Context, before time.Time) error {
	chains, err := s.Chains(ctx)
	if err != nil {
		return err
	}
	for _, c := range chains {
		for more := true; more; {
			err := s.db.Write(ctx, func(tx *db.Tx) (err error) {
				more, err = deleteSome(ctx, tx, c.Node, before.UnixMicro())
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteSome deletes the first entries of a chain, up to the last old one, and reports
// whether there may be more. The expression around node makes SQLite use the index on
// the time, which finds only old entries.
func deleteSome(ctx context.Context, tx *db.Tx, node string, before int64) (more bool, err error) {
	var first, last sql.NullInt64
	err = tx.QueryRow(ctx, `SELECT (SELECT min(seq) FROM audit_log WHERE node = $1), (SELECT max(seq) FROM audit_log WHERE node || '' = $1 AND at < $2)`, node, before).
		Scan(&first, &last)
	if err != nil || !last.Valid {
		return false, err
	}
	end := min(last.Int64, first.Int64+deletedAtOnce-1)
	var text string
	err = tx.QueryRow(ctx, `SELECT entry FROM audit_log WHERE node = $1 AND seq <= $2 ORDER BY seq DESC LIMIT 1`, node, end).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	e, err := decode(text)
	if err != nil || e.Hash == "" {
		return false, nil //nolint:nilerr // it was changed: Verify reports it
	}
	if _, err := tx.Exec(ctx, `DELETE FROM audit_log WHERE node = $1 AND seq <= $2`, node, e.Seq); err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `UPDATE audit_chains SET cut = $1, cut_hash = $2 WHERE node = $3`, e.Seq, e.Hash, node)
	return end < last.Int64, err
}
