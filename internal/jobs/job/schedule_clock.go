package job

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// followClock plans the schedules anew if the clock was set back since the time seen, or if
// that is unknown. Otherwise a schedule would start nothing until its next time, which
// was computed before, came again. It returns the time now.
func (q *Queue) followClock(ctx context.Context, seen time.Time) (now time.Time) {
	now = q.options.Clock.Now().Round(0) // without the monotonic clock, which is never set back
	if !seen.IsZero() && !now.Before(seen) {
		return now
	}
	if err := q.advanceSchedules(ctx, now); err != nil && ctx.Err() == nil {
		q.options.Log.ErrorContext(ctx, "schedules not planned after the clock was set", "error", err)
		return seen // try again
	}
	return now
}

// advanceSchedules moves the next time of schedules that is later than the first one after
// now: no schedule computes such a time by itself, since it never computes ahead.
func (q *Queue) advanceSchedules(ctx context.Context, now time.Time) error {
	var late []Schedule
	err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
		late, err = db.All(ctx, tx, scanSchedule, "SELECT "+scheduleColumns+" FROM job_schedules WHERE next > $1", micros(now))
		return err
	})
	if err != nil {
		return err
	}
	for _, s := range late {
		r, err := parseCron(s.Cron, s.Zone)
		if err != nil {
			return err
		}
		first := r.after(now)
		if first.IsZero() || !s.Next.After(first) {
			continue
		}
		_, err = q.changeSchedule(ctx, s.ID, func(s *Schedule) error {
			if !s.Paused && s.Next.After(first) {
				s.Next = first
			}
			return nil
		})
		if err != nil && fault.CodeOf(err) != fault.NotFound { // removed meanwhile
			return err
		}
	}
	return nil
}
