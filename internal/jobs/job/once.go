package job

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// errRepeated means that a job with the same key was submitted before.
var errRepeated = errors.New("a job with this key exists")

// SubmitOnce is Submit for a request that may come again: as long as keep lasts, the
// first job with the same key stays the only one, on all nodes. Of a repeated request
// only the id of that job is returned.
func (q *Queue) SubmitOnce(ctx context.Context, s Spec, key string, keep time.Duration) (j Job, repeated bool, err error) {
	id, now := newID(), q.options.Clock.Now()
	var earlier string
	j, err = q.submit(ctx, id, s, func(tx *db.Tx) error {
		earlier = ""
		err := tx.QueryRow(ctx, "SELECT job FROM job_keys WHERE key = $1 AND expires > $2", key, now.UnixMicro()).Scan(&earlier)
		switch {
		case err == nil:
			return errRepeated
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO job_keys (key, job, expires) VALUES ($1, $2, $3)
			ON CONFLICT (key) DO UPDATE SET job = excluded.job, expires = excluded.expires`, key, id, now.Add(keep).UnixMicro())
		return err
	})
	if errors.Is(err, errRepeated) {
		return Job{ID: earlier}, true, nil
	}
	return j, false, err
}

// removeKeys removes keys whose time is over. It writes only if there are any.
func (q *Queue) removeKeys(ctx context.Context) error {
	now, over := q.options.Clock.Now().UnixMicro(), false
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM job_keys WHERE expires <= $1)", now).Scan(&over)
	})
	if err != nil || !over {
		return err
	}
	return q.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM job_keys WHERE expires <= $1", now)
		return err
	})
}

// forgetKey removes the key of a job that could not be started, so that the request can
// be repeated.
func (q *Queue) forgetKey(ctx context.Context, id string) error {
	return q.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM job_keys WHERE job = $1", id)
		return err
	})
}
