package job_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/store/db"
)

// started returns the jobs of a schedule, the newest first.
func started(t *testing.T, q *job.Queue, id string) []job.Job {
	t.Helper()
	page, err := q.List(t.Context(), job.Filter{Schedule: id}, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	return page.Jobs
}

func schedule(t *testing.T, q *job.Queue, s job.Spec, cron string) job.Schedule {
	t.Helper()
	made, err := q.Schedule(t.Context(), s, cron, "UTC")
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func only(t *testing.T, q *job.Queue) job.Schedule {
	t.Helper()
	all, err := q.Schedules(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("schedules %+v (%v), want one", all, err)
	}
	return all[0]
}

var keep = job.Options{KeepComplete: 240 * time.Hour, KeepFailed: 240 * time.Hour}

// A schedule continues after a restart, makes up for missed times once, and never starts
// two jobs for one time.
func TestScheduleContinues(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		q := open(t, d, s, keep)
		made := schedule(t, q, job.Spec{Source: "read:a", Creator: "amy", Tags: []string{"x"}, Priority: 3}, "*/10 * * * * *")
		if made.Next.Second()%10 != 0 || !made.Next.After(made.Created) || made.Next.Sub(made.Created) > 10*time.Second {
			t.Errorf("created %s, next %s", made.Created, made.Next)
		}
		time.Sleep(time.Until(made.Next) - time.Second)
		synctest.Wait()
		if n := len(started(t, q, made.ID)); n != 0 {
			t.Errorf("%d jobs before the time", n)
		}
		time.Sleep(22 * time.Second)
		synctest.Wait()
		jobs := started(t, q, made.ID)
		if len(jobs) != 3 || jobs[0].State != job.Complete || jobs[0].Creator != "amy" || jobs[0].Tags[0] != "x" || jobs[0].Priority != 3 {
			t.Errorf("%d jobs in 30 seconds, the last %+v", len(jobs), jobs)
		}
		shut(t, q)

		time.Sleep(50 * time.Second) // no process runs
		q = open(t, d, s, keep)
		synctest.Wait()
		if n := len(started(t, q, made.ID)); n != 4 {
			t.Errorf("%d jobs after a restart, want one more than 3", n)
		}
		got := only(t, q)
		if got.Started != 4 || got.Skipped != 0 || got.LastJob == "" || got.Last.IsZero() || !got.Next.After(time.Now()) || got.Next.Second()%10 != 0 {
			t.Errorf("schedule %+v", got)
		}
		shut(t, q)

		q = open(t, d, s, keep)
		synctest.Wait()
		if n := len(started(t, q, made.ID)); n != 4 {
			t.Errorf("%d jobs after a restart before the next time, want 4", n)
		}
		shut(t, q)
	})
}

func TestScheduleIsPausedAndRemoved(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		q := open(t, d, newStage(), keep)
		defer shut(t, q)
		made := schedule(t, q, job.Spec{Source: "read:a"}, "@every 10s")
		paused, err := q.PauseSchedule(t.Context(), made.ID, true)
		if err != nil || !paused.Paused || !paused.Next.IsZero() {
			t.Errorf("paused %+v (%v)", paused, err)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := len(started(t, q, made.ID)); n != 0 {
			t.Errorf("%d jobs while paused", n)
		}
		resumed, err := q.PauseSchedule(t.Context(), made.ID, false)
		if err != nil || resumed.Paused || time.Until(resumed.Next).Round(time.Second) != 10*time.Second {
			t.Errorf("resumed %+v (%v)", resumed, err)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if n := len(started(t, q, made.ID)); n != 1 {
			t.Errorf("%d jobs after the pause, want 1", n)
		}
		if err := q.Unschedule(t.Context(), made.ID); err != nil {
			t.Error(err)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := len(started(t, q, made.ID)); n != 1 {
			t.Errorf("%d jobs of a removed schedule, want the one there was", n)
		}
		if err := q.Unschedule(t.Context(), made.ID); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("removed twice: %v", err)
		}
		if _, err := q.PauseSchedule(t.Context(), made.ID, true); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("paused a removed schedule: %v", err)
		}
	})
}

// A time at which no more jobs are admitted is skipped.
func TestScheduleWithoutQuota(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		o := keep
		o.Admit = func(context.Context, *db.Tx) error {
			if full.Load() {
				return fault.New(fault.Limit, "no more jobs")
			}
			return nil
		}
		q := open(t, d, newStage(), o)
		defer shut(t, q)
		made := schedule(t, q, job.Spec{Source: "return 1"}, "@every 5s")
		time.Sleep(6 * time.Second)
		synctest.Wait()
		full.Store(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n, got := len(started(t, q, made.ID)), only(t, q); n != 1 || got.Started != 1 || got.Skipped != 2 || !got.Next.After(time.Now()) {
			t.Errorf("%d jobs, schedule %+v", n, got)
		}
		full.Store(false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := len(started(t, q, made.ID)); n != 2 {
			t.Errorf("%d jobs after the quota was renewed, want 2", n)
		}
	})
}

// leaver is somebody who can lose rights while nobody looks, and records the rights of their
// jobs.
type leaver struct {
	*stage
	mu     sync.Mutex
	rights []principal.Scope // nil: they have left
	ran    []string          // the rights of each job, as it ran
}

func (l *leaver) now(_ context.Context, was principal.Principal) (principal.Principal, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was.Scopes = l.rights
	if l.rights == nil {
		return principal.Anonymous(), fault.New(fault.Denied, "Ann may not use this server any more")
	}
	return was, nil
}

func (l *leaver) change(rights ...principal.Scope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rights = rights
}

func (l *leaver) RunJob(ctx context.Context, task job.Task) (job.Outcome, error) {
	l.mu.Lock()
	l.ran = append(l.ran, fmt.Sprint(principal.Of(ctx).ID, principal.Of(ctx).Scopes))
	l.mu.Unlock()
	return l.stage.RunJob(ctx, task)
}

// Jobs at night have the rights that their owner has then, not those of the day on which they
// were made. Once the owner has left, they do nothing, and say why.
func TestScheduleOfALeaver(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		ann := &leaver{stage: newStage(), rights: []principal.Scope{principal.MCP, principal.Read}}
		o := keep
		o.CurrentPrincipal = ann.now
		q := open(t, d, ann, o)
		defer shut(t, q)
		ctx := principal.With(t.Context(), principal.Principal{ID: "person:ann", Scopes: ann.rights})
		made, err := q.Schedule(ctx, job.Spec{Source: "write:a"}, "0 * * * * *", "UTC")
		if err != nil {
			t.Fatal(err)
		}
		night := func() { // a minute: days take long, because others look every second
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		night()
		ann.change(principal.MCP)
		night()
		late, err := q.Submit(ctx, job.Spec{Source: "write:b", Delay: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ann.change()
		night()
		night()
		got, jobs := only(t, q), started(t, q, made.ID)
		if !got.Paused || got.Reason != "Ann may not use this server any more" || !got.Next.IsZero() || len(jobs) != 2 {
			t.Errorf("after they left: %+v, %d jobs", got, len(jobs))
		}
		if j := await(t, q, late.ID); j.State != job.Failed || j.Error.Code != fault.Denied || j.Error.Message != got.Reason || ann.times(j.ID, "write:b") != 0 {
			t.Errorf("a job from before: %+v %+v", j, j.Error)
		}
		if _, err := q.PauseSchedule(t.Context(), made.ID, false); err != nil { // an administrator resumes it
			t.Fatal(err)
		}
		night()
		if got := only(t, q); !got.Paused || got.Reason == "" || len(started(t, q, made.ID)) != 2 {
			t.Errorf("resumed by somebody else: %+v", got)
		}
		if want := []string{"person:ann[mcp read]", "person:ann[mcp]"}; !slices.Equal(ann.ran, want) {
			t.Errorf("the jobs ran with %q, want %q", ann.ran, want)
		}
	})
}

// A time at which the previous job still runs is skipped.
func TestScheduleDoesNotPileUp(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		q := open(t, d, newStage(), keep)
		defer shut(t, q)
		made := schedule(t, q, job.Spec{Source: "spin"}, "@every 5s")
		time.Sleep(16 * time.Second)
		synctest.Wait()
		got := only(t, q)
		if n := len(started(t, q, made.ID)); n != 1 || got.Started != 1 || got.Skipped != 2 {
			t.Errorf("%d jobs, schedule %+v", n, got)
		}
		if _, err := q.Cancel(t.Context(), got.LastJob); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := len(started(t, q, made.ID)); n != 2 {
			t.Errorf("%d jobs after the first ended, want 2", n)
		}
		if _, err := q.Cancel(t.Context(), only(t, q).LastJob); err != nil {
			t.Error(err)
		}
	})
}

func TestInvalidSchedules(t *testing.T) {
	t.Parallel()
	q := open(t, database(t), newStage(), job.Options{})
	defer shut(t, q)
	for _, each := range []struct{ cron, zone, want string }{
		{"", "", "cron"},
		{"* * *", "", "5"},
		{"61 * * * *", "", "61"},
		{"a b c d e", "", "cron expression"},
		{"0 0 30 2 *", "", "no such time"},
		{"TZ=UTC", "", "time zone"},
		{"CRON_TZ=Europe/Berlin 0 0 * * *", "", "time zone"},
		{"@sometimes", "", "sometimes"},
		{"0 0 * * *", "Mars/Olympus", "Mars/Olympus"},
	} {
		made, err := q.Schedule(t.Context(), job.Spec{Source: "read:a"}, each.cron, each.zone)
		if fault.CodeOf(err) != fault.InvalidParams || !strings.Contains(err.Error(), each.want) || fault.HintOf(err) == "" {
			t.Errorf("%q in %q: %+v, %v", each.cron, each.zone, made, err)
		}
	}
	if _, err := q.Schedule(t.Context(), job.Spec{Source: " "}, "@daily", ""); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("a schedule without a script: %v", err)
	}
	if _, err := q.Schedule(t.Context(), job.Spec{Source: "read:a", Delay: time.Second}, "@daily", ""); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("a schedule with a delay: %v", err)
	}
}

// Times are in the schedule's time zone.
func TestScheduleInAZone(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		q := open(t, d, newStage(), keep)
		defer shut(t, q)
		made, err := q.Schedule(t.Context(), job.Spec{Source: "read:a"}, "30 7 * * *", "Asia/Kolkata")
		if err != nil {
			t.Fatal(err)
		}
		if at := made.Next.UTC().Format("15:04"); at != "02:00" {
			t.Errorf("07:30 in Kolkata is %s UTC, want 02:00", at)
		}
	})
}

// A job with a start time waits for it, also across a restart.
func TestStartTime(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		q := open(t, d, s, keep)
		at := time.Now().Add(8 * time.Second).Truncate(time.Microsecond)
		id := submit(t, q, job.Spec{Source: "read:a", Start: at})
		time.Sleep(4 * time.Second)
		shut(t, q)
		q = open(t, d, s, keep)
		defer shut(t, q)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if j, err := q.Status(t.Context(), id); err != nil || j.State != job.Pending || !j.Due.Equal(at) {
			t.Errorf("before its time: %+v (%v)", j, err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if j, err := q.Status(t.Context(), id); err != nil || j.State != job.Complete || j.Started.Before(at) || s.times(id, "read:a") != 1 {
			t.Errorf("at its time: %+v (%v), done %d times", j, err, s.times(id, "read:a"))
		}
	})
}
