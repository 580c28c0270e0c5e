package job

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"
	_ "time/tzdata" // for machines without a time zone database

	"github.com/robfig/cron/v3"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
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
	late, err := db.Find(ctx, q.db, scanSchedule, "SELECT "+scheduleColumns+" FROM job_schedules WHERE next > $1", db.UnixMicro(now))
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
			s.ID, s.Cron, s.Zone, s.Name, s.Hash, s.Source, []byte(s.Params), s.Creator, string(tags), s.Priority, db.UnixMicro(s.Created), db.UnixMicro(s.Next), s.Paused)
		return err
	})
}

// updateSchedule stores the changed fields of a schedule.
func updateSchedule(ctx context.Context, tx *db.Tx, s Schedule) error {
	_, err := tx.Exec(ctx, "UPDATE job_schedules SET next = $2, paused = $3, last = $4, last_job = $5, started = $6, skipped = $7, reason = $8 WHERE id = $1",
		s.ID, db.UnixMicro(s.Next), s.Paused, db.UnixMicro(s.Last), s.LastJob, s.Started, s.Skipped, s.Reason)
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
		n, err := tx.Exec(ctx, "DELETE FROM job_schedules WHERE id = $1", id)
		if err != nil {
			return err
		}
		if n == 0 {
			return unknownSchedule(id)
		}
		_, err = tx.Exec(ctx, "DELETE FROM job_owners WHERE id = $1", id)
		return err
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
	all, err = db.Find(ctx, q.db, scanSchedule, "SELECT "+scheduleColumns+" FROM job_schedules WHERE "+where+" ORDER BY next = 0, next, created, id", args...)
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
	return db.Find(ctx, q.db, db.Column[string],
		"SELECT id FROM job_schedules WHERE next > 0 AND next <= $1 ORDER BY next, id", db.UnixMicro(now))
}

// nextDue returns the next time of any schedule; zero means never.
func (q *Queue) nextDue(ctx context.Context) (time.Time, error) {
	var next int64
	err := q.db.QueryRow(ctx, "SELECT coalesce(min(next), 0) FROM job_schedules WHERE next > 0").Scan(&next)
	return timeOf(next), err
}

// fire stores the job of a due schedule together with the schedule's next time, in one
// transaction, so that no time is served twice. The job is empty if there is nothing to
// start.
func (q *Queue) fire(ctx context.Context, id string, now time.Time) (j Job, err error) {
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		j = Job{}
		s, err := scanSchedule(tx.QueryRow(ctx, "SELECT "+scheduleColumns+" FROM job_schedules WHERE id = $1 AND next > 0 AND next <= $2", id, db.UnixMicro(now)))
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

// cronTimes is a cron expression in a time zone.
type cronTimes struct {
	plan  cron.Schedule
	place *time.Location
}

var cronFields = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// parseCron parses a cron expression and the name of a time zone; "" is the machine's
// own.
func parseCron(expression, zone string) (cronTimes, error) {
	place := time.Local
	if zone != "" {
		var err error
		if place, err = time.LoadLocation(zone); err != nil {
			return cronTimes{}, fault.New(fault.InvalidParams, "no time zone %q", zone).
				WithHint("give a name such as Europe/Berlin or UTC, or omit it for the server's own")
		}
	}
	expression = strings.TrimSpace(expression)
	if strings.Contains(expression, "=") { // the library parses zones there, and panics on some invalid ones
		return cronTimes{}, invalidCron(expression, "it must not contain a time zone; use the zone parameter")
	}
	plan, err := cronFields.Parse(expression)
	if err != nil {
		return cronTimes{}, invalidCron(expression, err.Error())
	}
	return cronTimes{plan, place}, nil
}

func invalidCron(expression, problem string) error {
	return fault.New(fault.InvalidParams, "%q is not a cron expression: %s", expression, problem).
		WithHint("write minute hour day month weekday, such as */15 * * * * or 0 7 * * 1-5; or @hourly, @daily, @weekly, @every 10m")
}

// after returns the next time after t, or zero if there is none within five years.
func (r cronTimes) after(t time.Time) time.Time { return r.plan.Next(t.In(r.place)) }
