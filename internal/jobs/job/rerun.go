package job

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Rerun starts a new job of the caller with the script of a job. With params they take the
// place of the job's own.
func (q *Queue) Rerun(ctx context.Context, id, creator string, params json.RawMessage) (Job, error) {
	if err := q.check(ctx, principal.Job, principal.Use, id); err != nil {
		return Job{}, err
	}
	j, _, err := q.load(ctx, id)
	if err != nil {
		return Job{}, err
	}
	return q.Submit(ctx, j.again(creator, params))
}

// RunSchedule starts a job of the caller with the script of a schedule, now. The schedule
// does not change.
func (q *Queue) RunSchedule(ctx context.Context, id, creator string, params json.RawMessage) (Job, error) {
	if err := q.check(ctx, principal.Schedule, principal.Use, id); err != nil {
		return Job{}, err
	}
	var s Schedule
	err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
		s, err = scanSchedule(tx.QueryRow(ctx, "SELECT "+scheduleColumns+" FROM job_schedules WHERE id = $1", id))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = unknownSchedule(id)
	}
	if err != nil {
		return Job{}, err
	}
	return q.Submit(ctx, s.again(creator, params))
}

// again returns what a new job runs now.
func (s Spec) again(creator string, params json.RawMessage) Spec {
	s.Creator, s.Delay, s.Start = creator, 0, time.Time{}
	if len(params) > 0 {
		s.Params = params
	}
	return s
}
