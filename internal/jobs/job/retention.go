package job

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// tidy removes old jobs periodically.
func (q *Queue) tidy(ctx context.Context) {
	every := min(q.options.KeepComplete, q.options.KeepFailed, time.Minute)
	for q.options.Clock.Sleep(ctx, every) == nil {
		if err := q.sweep(ctx); err != nil && ctx.Err() == nil {
			q.options.Log.WarnContext(ctx, "old jobs not removed", "error", err)
		}
	}
}

// sweep removes ended jobs that are too old or too many, and their journals.
func (q *Queue) sweep(ctx context.Context) error {
	now := q.options.Clock.Now()
	for _, find := range []struct {
		query string
		args  []any
	}{
		{expired, []any{now.Add(-q.options.KeepComplete).UnixMicro(), now.Add(-q.options.KeepFailed).UnixMicro()}},
		{surplusOfSchedules, []any{q.options.KeepScheduled}},
		{surplus, []any{q.options.KeepCount}},
	} {
		if err := q.removeAll(ctx, find.query, find.args...); err != nil {
			return err
		}
	}
	return q.removeKeys(ctx)
}

// What sweep removes, at most 1000 jobs at a time.
const (
	expired = `SELECT id FROM jobs WHERE finished > 0 AND (state = 'complete' AND finished < $1 OR state <> 'complete' AND finished < $2)
		ORDER BY finished LIMIT 1000`
	surplusOfSchedules = `SELECT id FROM (
			SELECT id, row_number() OVER (PARTITION BY schedule ORDER BY finished DESC, id DESC) AS place FROM jobs WHERE finished > 0 AND schedule <> ''
		) AS ranked WHERE place > $1 LIMIT 1000`
	surplus = `SELECT id FROM jobs WHERE finished > 0 ORDER BY finished DESC, id DESC LIMIT 1000 OFFSET $1`
)

// removeAll removes the jobs that a query finds, until it finds none.
func (q *Queue) removeAll(ctx context.Context, query string, args ...any) error {
	for {
		var ids []string
		err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
			ids, err = db.All(ctx, tx, func(row db.Scanner) (id string, err error) { return id, row.Scan(&id) }, query, args...)
			return err
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := q.engine.Forget(ids...); err != nil {
			return err
		}
		if err := q.remove(ctx, ids); err != nil {
			return err
		}
	}
}

func (q *Queue) remove(ctx context.Context, ids []string) error {
	return q.db.Write(ctx, func(tx *db.Tx) error {
		for _, id := range ids {
			if _, err := tx.Exec(ctx, "DELETE FROM jobs WHERE id = $1", id); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "DELETE FROM job_owners WHERE id = $1", id); err != nil {
				return err
			}
		}
		if q.options.Node == "" {
			return nil
		}
		return forgetLive(ctx, tx, ids) // left by nodes that died
	})
}
