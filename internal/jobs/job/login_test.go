package job_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/jobs/job"
)

const loginTopic = "logins"

// TestJobWaitsForALogin checks a job whose owner's login ended: it tells the owner, waits,
// also in the next process, and continues with the call that was refused.
func TestJobWaitsForALogin(t *testing.T) {
	t.Parallel()
	d, s, bus := database(t), newStage(), event.New(event.BusOptions{})
	ada := principal.Principal{ID: "person:ada", Org: "acme", Scopes: []principal.Scope{principal.MCP}}
	asAda := principal.With(t.Context(), ada)
	told, others := bus.SubscribeAs(ada, event.Options{}), bus.SubscribeAs(principal.Principal{ID: "person:bob", Org: "acme"}, event.Options{})
	defer told.Close()
	defer others.Close()
	waits := func() job.NeedsLogin {
		for e := range told.All(t.Context()) {
			if needs, ok := e.Data.(job.NeedsLogin); ok {
				return needs
			}
		}
		t.Fatal("no event")
		return job.NeedsLogin{}
	}
	options := job.Options{Events: bus, LoginTopic: loginTopic}
	q := open(t, d, s, options)
	made, err := q.Submit(asAda, job.Spec{Source: "write:a login:crm write:b", Creator: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	if e := waits(); e.ID != made.ID || !strings.Contains(e.Hint, "http://hub/connect/crm") || !e.Until.After(time.Now()) {
		t.Errorf("event %+v", e)
	}
	if j, err := q.Status(asAda, made.ID); err != nil || j.State != job.Waiting || !strings.Contains(j.Message, "http://hub/connect/crm") {
		t.Errorf("job %+v (%v)", j, err)
	}
	shut(t, q)

	q = open(t, d, s, options)
	waits()
	s.loggedIn.Store(true)
	if err := d.Notify(t.Context(), loginTopic, "crm"); err != nil {
		t.Fatal(err)
	}
	if ended := awaitAs(t, asAda, q, made.ID); ended.State != job.Complete || string(ended.Result) != "3" {
		t.Fatalf("job %+v", ended)
	}
	if a, b := s.times(made.ID, "write:a"), s.times(made.ID, "write:b"); a != 1 || b != 1 {
		t.Errorf("write:a %d times, write:b %d times", a, b)
	}
	shut(t, q)
	if e, ok := others.Poll(); ok {
		t.Errorf("somebody else was told: %+v", e)
	}
}

// TestNobodyLogsIn checks that a job does not wait forever, and that its outcome is
// the same after a restart.
func TestNobodyLogsIn(t *testing.T) {
	t.Parallel()
	d, s := database(t), newStage()
	q := open(t, d, s, job.Options{LoginWait: time.Nanosecond})
	id := submit(t, q, job.Spec{Source: "write:a login:crm write:b"})
	j := await(t, q, id)
	if j.State != job.Failed || j.Error.Code != fault.Denied || !strings.Contains(j.Error.Message, "upstream crm requires a login, and nobody logged in within 1ns") ||
		!strings.Contains(j.Error.Hint, "http://hub/connect/crm") || s.times(id, "write:b") != 0 {
		t.Errorf("job %+v, error %+v", j, j.Error)
	}
	shut(t, q)
}

// TestScheduleIsPausedWithoutALogin checks that a schedule stops with the reason.
func TestScheduleIsPausedWithoutALogin(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		options := keep
		options.LoginWait = 90 * time.Second
		q := open(t, d, newStage(), options)
		made := schedule(t, q, job.Spec{Source: "login:crm"}, "0 * * * * *")
		time.Sleep(time.Until(made.Next) + time.Minute)
		synctest.Wait()
		if got, jobs := only(t, q), started(t, q, made.ID); got.Paused || len(jobs) != 1 || jobs[0].State != job.Waiting {
			t.Errorf("before the deadline: %+v, jobs %+v", got, jobs)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		got := only(t, q)
		if jobs := started(t, q, made.ID); !got.Paused || !strings.Contains(got.Reason, "upstream crm requires a login") || len(jobs) != 1 || jobs[0].State != job.Failed {
			t.Errorf("after the deadline: %+v, jobs %+v", got, jobs)
		}
		if got, err := q.PauseSchedule(t.Context(), made.ID, false); err != nil || got.Paused || got.Reason != "" {
			t.Errorf("resumed: %+v (%v)", got, err)
		}
		shut(t, q)
	})
}

// TestJobWaitsForAnUpstream checks a job whose call cannot be sent: it waits without a place
// in the queue, also in the next process, and goes on when the upstream is back.
func TestJobWaitsForAnUpstream(t *testing.T) {
	t.Parallel()
	d, s := database(t), newStage()
	synctest.Test(t, func(t *testing.T) {
		options := keep
		options.Workers = 1
		q := open(t, d, s, options)
		id := submit(t, q, job.Spec{Source: "write:a reach:crm write:b"})
		time.Sleep(time.Minute)
		j, err := q.Status(t.Context(), id)
		if err != nil || j.State != job.Waiting || j.Message != "waits for an upstream: upstream crm did not start" {
			t.Errorf("job %+v (%v)", j, err)
		}
		if n := s.times(id, "reach:crm"); n < 10 || n > 14 {
			t.Errorf("%d attempts in a minute", n)
		}
		if other := await(t, q, submit(t, q, job.Spec{Source: "write:c"})); other.State != job.Complete {
			t.Errorf("another job meanwhile: %+v", other)
		}
		shut(t, q)

		q = open(t, d, s, options)
		time.Sleep(time.Minute)
		s.reachable.Store(true)
		if j := await(t, q, id); j.State != job.Complete || string(j.Result) != "3" || s.times(id, "write:a") != 1 || s.times(id, "write:b") != 1 {
			t.Errorf("job %+v", j)
		}
		shut(t, q)
	})
}

// TestUpstreamStaysAway checks that a job does not wait forever, and that its schedule goes on.
func TestUpstreamStaysAway(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		options := keep
		options.UpstreamWait = 90 * time.Second
		q := open(t, d, newStage(), options)
		made := schedule(t, q, job.Spec{Source: "reach:crm"}, "0 * * * * *")
		time.Sleep(time.Until(made.Next) + 100*time.Second)
		synctest.Wait()
		jobs := started(t, q, made.ID)
		if len(jobs) != 1 || jobs[0].State != job.Failed || jobs[0].Error.Code != fault.Unavailable || jobs[0].Error.Hint != "repair it" ||
			!strings.Contains(jobs[0].Error.Message, "upstream crm did not start; the job waited 1m30s for it") {
			t.Errorf("jobs %+v", jobs)
		}
		if s := only(t, q); s.Paused || s.Skipped != 1 {
			t.Errorf("schedule %+v", s)
		}
		shut(t, q)
	})
}
