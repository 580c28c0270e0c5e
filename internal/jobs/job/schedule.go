package job

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// Schedule starts jobs at the times of a cron expression. It is stored and continues
// after a restart. One job makes up for all times that passed meanwhile, and a time at
// which the previous job still runs is skipped.
type Schedule struct {
	ID string
	Spec
	Cron    string
	Zone    string // an IANA time zone; "" is the server's own
	Created time.Time
	Next    time.Time // start of the next job; zero if there is none
	Paused  bool
	Reason  string    // why the queue paused it; "" if somebody did
	Last    time.Time // start of the last job; zero before the first
	LastJob string
	Started int    // number of jobs so far
	Skipped int    // number of times skipped
	By      string // the client or key with which its owner made it; "" without one
	Sharing

	owner     principal.Owner
	ownerName string
}

// maxSchedules is the maximum number of schedules.
const maxSchedules = 1000

// Schedule stores a schedule. Its first job starts at the next time of the expression.
func (q *Queue) Schedule(ctx context.Context, s Spec, expression, zone string) (Schedule, error) {
	if err := q.writable(); err != nil {
		return Schedule{}, err
	}
	s, err := s.check()
	if err != nil {
		return Schedule{}, err
	}
	if s.Delay != 0 || !s.Start.IsZero() {
		return Schedule{}, fault.New(fault.InvalidParams, "a schedule has no delay and no start").
			WithHint("the cron expression says when it starts")
	}
	r, err := parseCron(expression, zone)
	if err != nil {
		return Schedule{}, err
	}
	now := q.options.Clock.Now()
	made := Schedule{ID: newID(), Spec: s, Cron: expression, Zone: zone, Created: now, Next: r.after(now)}
	if made.Next.IsZero() {
		return Schedule{}, invalidCron(expression, "there is no such time in the next five years")
	}
	if err := q.insertSchedule(ctx, made); err != nil {
		return Schedule{}, err
	}
	q.replan()
	return made, nil
}

// PauseSchedule stops a schedule from starting jobs, or resumes it. Times that passed
// while it was paused are skipped.
func (q *Queue) PauseSchedule(ctx context.Context, id string, paused bool) (Schedule, error) {
	if err := q.writable(); err != nil {
		return Schedule{}, err
	}
	if err := q.check(ctx, principal.Schedule, principal.Edit, id); err != nil {
		return Schedule{}, err
	}
	s, err := q.changeSchedule(ctx, id, func(s *Schedule) error {
		if s.Paused == paused {
			return nil
		}
		s.Paused, s.Next, s.Reason = paused, time.Time{}, ""
		if paused {
			return nil
		}
		r, err := parseCron(s.Cron, s.Zone)
		if err != nil {
			return err
		}
		s.Next = r.after(q.options.Clock.Now())
		return nil
	})
	q.replan()
	if err == nil {
		s.Sharing, err = q.sharing(ctx, principal.Schedule, id, s.owner, s.ownerName)
	}
	return s, err
}

// replan makes runSchedules read the schedules again.
func (q *Queue) replan() {
	select {
	case q.planned <- struct{}{}:
	default: // signalled already
	}
}

// maxSleep is the maximum time between two checks: the clock may be set, or the
// machine suspended.
const maxSleep = time.Minute

// runSchedules starts the jobs of schedules until ctx ends.
func (q *Queue) runSchedules(ctx context.Context) {
	var seen time.Time
	for ctx.Err() == nil {
		seen = q.followClock(ctx, seen)
		next, err := q.startDue(ctx)
		nap := maxSleep
		if err != nil && ctx.Err() == nil {
			q.options.Log.ErrorContext(ctx, "schedules not read, trying again", "error", err)
			nap = time.Second
		} else if !next.IsZero() {
			nap = min(nap, next.Sub(q.options.Clock.Now()))
		}
		due := make(chan struct{})
		stop := q.options.Clock.AfterFunc(nap, func() { close(due) })
		select {
		case <-due:
		case <-q.planned:
		case <-ctx.Done():
		}
		stop()
	}
}

// startDue starts a job for every schedule that is due, and returns the time of the
// next one.
func (q *Queue) startDue(ctx context.Context) (next time.Time, err error) {
	now := q.options.Clock.Now()
	ids, err := q.dueSchedules(ctx, now)
	if err != nil {
		return next, err
	}
	for _, id := range ids {
		if _, err := q.asOwner(ctx, id); fault.CodeOf(err) == fault.Denied {
			if err := q.retire(ctx, id, err); err != nil {
				return next, err
			}
			continue
		}
		j, err := q.fire(ctx, id, now)
		if err != nil {
			return next, err
		}
		if j.ID == "" {
			continue
		}
		q.admit(j)
		if err := q.persist(ctx, func() error { return q.engine.Start(j.ID) }); err != nil {
			return next, err // the job is stored: the next process starts it
		}
	}
	return q.nextDue(ctx)
}

// retire pauses a schedule whose owner has lost its rights, or did not log in.
func (q *Queue) retire(ctx context.Context, id string, why error) error {
	q.options.Log.WarnContext(ctx, "schedule paused", "schedule", id, "error", why)
	_, err := q.changeSchedule(ctx, id, func(s *Schedule) error {
		s.Paused, s.Next, s.Reason = true, time.Time{}, fault.From(why).Error()
		return nil
	})
	if fault.CodeOf(err) == fault.NotFound { // removed meanwhile
		return nil
	}
	return err
}

func (s *Schedule) job(now time.Time) Job {
	return Job{ID: newID(), Spec: s.Spec, Schedule: s.ID, State: Pending, Created: now, Due: now}
}
