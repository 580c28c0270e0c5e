package job

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// scheduleColumns are the columns that scanSchedule reads.
const scheduleColumns = "id, cron, zone, name, hash, source, params, creator, tags, priority, created, next, paused, last, last_job, started, skipped, reason, coalesce((SELECT asker FROM job_owners WHERE job_owners.id = job_schedules.id), '')"

func scanSchedule(row db.Scanner) (s Schedule, err error) {
	var tags, asker string
	var params []byte
	var created, next, last int64
	err = row.Scan(&s.ID, &s.Cron, &s.Zone, &s.Name, &s.Hash, &s.Source, &params, &s.Creator, &tags, &s.Priority,
		&created, &next, &s.Paused, &last, &s.LastJob, &s.Started, &s.Skipped, &s.Reason, &asker)
	if err != nil {
		return s, err
	}
	s.Params = params
	s.Created, s.Next, s.Last = timeOf(created), timeOf(next), timeOf(last)
	who, err := ownerOf(asker)
	if err != nil {
		return s, err
	}
	s.owner, s.ownerName, s.By = who.Owner(), who.Name, who.Client
	return s, json.Unmarshal([]byte(tags), &s.Tags)
}

// micros returns the stored form of a time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func (q *Queue) insertSchedule(ctx context.Context, s Schedule) error {
	tags, err := json.Marshal(append([]string{}, s.Tags...))
	if err != nil {
		return err
	}
	return q.db.Write(ctx, func(tx *db.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM job_schedules").Scan(&n); err != nil {
			return err
		}
		if n >= maxSchedules {
			return fault.New(fault.Limit, "there are %d schedules already", n).WithHint("remove some that are not needed; schedule_list shows them")
		}
		if err := storeOwner(ctx, tx, s.ID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO job_schedules (id, cron, zone, name, hash, source, params, creator, tags, priority, created, next, paused)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
			s.ID, s.Cron, s.Zone, s.Name, s.Hash, s.Source, []byte(s.Params), s.Creator, string(tags), s.Priority, micros(s.Created), micros(s.Next), s.Paused)
		return err
	})
}

// updateSchedule stores the changed fields of a schedule.
func updateSchedule(ctx context.Context, tx *db.Tx, s Schedule) error {
	_, err := tx.Exec(ctx, "UPDATE job_schedules SET next = $2, paused = $3, last = $4, last_job = $5, started = $6, skipped = $7, reason = $8 WHERE id = $1",
		s.ID, micros(s.Next), s.Paused, micros(s.Last), s.LastJob, s.Started, s.Skipped, s.Reason)
	return err
}

// changeSchedule reads a schedule, changes it and stores it, in one transaction.
func (q *Queue) changeSchedule(ctx context.Context, id string, change func(*Schedule) error) (s Schedule, err error) {
	err = q.db.Write(ctx, func(tx *db.Tx) (err error) {
		if s, err = scanSchedule(tx.QueryRow(ctx, "SELECT "+scheduleColumns+" FROM job_schedules WHERE id = $1", id)); err != nil {
			return err
		}
		if err = change(&s); err != nil {
			return err
		}
		return updateSchedule(ctx, tx, s)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = unknownSchedule(id)
	}
	return s, err
}

// Unschedule removes a schedule. The jobs it started stay.
func (q *Queue) Unschedule(ctx context.Context, id string) error {
	if err := q.writable(); err != nil {
		return err
	}
	if err := q.check(ctx, principal.Schedule, principal.Edit, id); err != nil {
		return err
	}
	return q.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, "DELETE FROM job_schedules WHERE id = $1", id)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM job_owners WHERE id = $1", id); err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return unknownSchedule(id)
	})
}

func unknownSchedule(id string) error {
	return fault.New(fault.NotFound, "no schedule %s", id).WithHint("schedule_list lists the schedules")
}

// Schedules returns all schedules that the caller sees, ordered by their next time; paused
// ones come last.
func (q *Queue) Schedules(ctx context.Context) (all []Schedule, err error) {
	where, args, err := q.visible(ctx, principal.Schedule, "TRUE", nil)
	if err != nil {
		return nil, err
	}
	err = q.db.Read(ctx, func(tx *db.Tx) (err error) {
		all, err = db.All(ctx, tx, scanSchedule, "SELECT "+scheduleColumns+" FROM job_schedules WHERE "+where+" ORDER BY next = 0, next, created, id", args...)
		return err
	})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "list schedules")
	}
	for i := range all {
		if all[i].Sharing, err = q.sharing(ctx, principal.Schedule, all[i].ID, all[i].owner, all[i].ownerName); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (q *Queue) dueSchedules(ctx context.Context, now time.Time) (ids []string, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) (err error) {
		ids, err = db.All(ctx, tx, func(row db.Scanner) (id string, err error) { return id, row.Scan(&id) },
			"SELECT id FROM job_schedules WHERE next > 0 AND next <= $1 ORDER BY next, id", micros(now))
		return err
	})
	return ids, err
}

// nextDue returns the next time of any schedule; zero means never.
func (q *Queue) nextDue(ctx context.Context) (time.Time, error) {
	var next int64
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, "SELECT coalesce(min(next), 0) FROM job_schedules WHERE next > 0").Scan(&next)
	})
	return timeOf(next), err
}

// fire stores the job of a due schedule together with the schedule's next time, in one
// transaction, so that no time is served twice. The job is empty if there is nothing to
// start.
func (q *Queue) fire(ctx context.Context, id string, now time.Time) (j Job, err error) {
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		j = Job{}
		s, err := scanSchedule(tx.QueryRow(ctx, "SELECT "+scheduleColumns+" FROM job_schedules WHERE id = $1 AND next > 0 AND next <= $2", id, micros(now)))
		if errors.Is(err, sql.ErrNoRows) { // paused or removed meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		r, err := parseCron(s.Cron, s.Zone)
		if err != nil { // it was valid when stored: this machine has another time zone database
			q.options.Log.ErrorContext(ctx, "schedule paused", "schedule", id, "error", err)
			s.Paused, s.Next, s.Reason = true, time.Time{}, err.Error()
			return updateSchedule(ctx, tx, s)
		}
		s.Next = r.after(now)
		var busy int
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM jobs WHERE id = $1 AND finished = 0", s.LastJob).Scan(&busy); err != nil {
			return err
		}
		if busy > 0 {
			s.Skipped++
			return updateSchedule(ctx, tx, s)
		}
		asker, err := askerOf(ctx, tx, id)
		if err != nil {
			return err
		}
		ctx := principal.With(ctx, asker) // the job belongs to the schedule's owner
		j = s.job(now)
		j.owner = asker.Owner()
		s.Last, s.LastJob, s.Started = now, j.ID, s.Started+1
		if err := q.insertJob(ctx, tx, j); err != nil {
			return err
		}
		return updateSchedule(ctx, tx, s)
	})
	if fault.CodeOf(err) == fault.Limit {
		q.options.Log.WarnContext(ctx, "schedule skipped", "schedule", id, "error", err)
		return Job{}, q.skip(ctx, id, now)
	}
	if err != nil {
		return Job{}, err
	}
	return j, nil
}

// skip moves a due schedule to its next time without a job.
func (q *Queue) skip(ctx context.Context, id string, now time.Time) error {
	_, err := q.changeSchedule(ctx, id, func(s *Schedule) error {
		r, err := parseCron(s.Cron, s.Zone)
		if err != nil {
			return err
		}
		if !s.Next.IsZero() && !s.Next.After(now) { // not meanwhile by another node
			s.Next, s.Skipped = r.after(now), s.Skipped+1
		}
		return nil
	})
	if fault.CodeOf(err) == fault.NotFound { // removed meanwhile
		return nil
	}
	return err
}
