package job_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// Two nodes run jobs of one database. Each continues the unfinished jobs of the other,
// and callers may wait for a job or cancel it on either.
func TestJobsMoveBetweenNodes(t *testing.T) {
	t.Parallel()
	url := tables.Postgres(t)
	here, there := newStage(), newStage()
	a := open(t, dbtest.Open(t, url), here, job.Options{Node: "a"})
	defer shut(t, a)
	b := open(t, dbtest.Open(t, url), there, job.Options{Node: "b"})
	defer shut(t, b)
	j := submit(t, a, job.Spec{Source: "write:one spin write:two"})
	<-here.in
	recorded(t, b, j, 1)
	owners, err := b.Owners(t.Context())
	if err != nil || !slices.Equal(owners, []string{"a"}) {
		t.Errorf("owners %v (%v)", owners, err)
	}
	if err := b.TakeOver(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if err := a.Recheck(t.Context()); err != nil { // a is not dead
		t.Fatal(err)
	}
	<-there.in
	if n := here.times(j, "write:one") + there.times(j, "write:one"); n != 1 {
		t.Errorf("the first effect happened %d times", n)
	}
	for _, q := range []*job.Queue{a, b} { // one of them waits for the other's job
		var asked sync.WaitGroup
		asked.Go(func() {
			if _, err := q.Cancel(t.Context(), j); err != nil {
				t.Error(err)
			}
		})
		if ended := await(t, q, j); ended.State != job.Cancelled {
			t.Errorf("it is %s", ended.State)
		}
		asked.Wait()
	}
}

// signallingClock signals the beginning of every wait of a given length.
type signallingClock struct {
	clock.Clock
	of    time.Duration
	begun chan struct{}
}

func (c signallingClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if d == c.of {
		c.begun <- struct{}{}
	}
	return c.Clock.AfterFunc(d, f)
}

// A caller that waits for a job on one node learns its end also if another node took the
// job over meanwhile.
func TestPollFollowsAJobToAnotherNode(t *testing.T) {
	t.Parallel()
	url := tables.Postgres(t)
	here, there := newStage(), newStage()
	waits := signallingClock{clock.Real(), 59 * time.Second, make(chan struct{}, 1)}
	a := open(t, dbtest.Open(t, url), here, job.Options{Node: "a", Clock: waits})
	defer shut(t, a)
	b := open(t, dbtest.Open(t, url), there, job.Options{Node: "b"})
	defer shut(t, b)
	j := submit(t, a, job.Spec{Source: "spin"})
	<-here.in
	var asked sync.WaitGroup
	asked.Go(func() {
		if done, pending, err := a.Poll(t.Context(), []string{j}, waits.of, true); err != nil || len(done) != 1 || done[0].State != job.Cancelled {
			t.Errorf("done %v, pending %v (%v)", done, pending, err)
		}
	})
	defer asked.Wait()
	<-waits.begun
	if err := b.TakeOver(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if err := a.Recheck(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-there.in
	clocktest.Await(t, func() bool { return a.Running() == 0 })
	if _, err := b.Cancel(t.Context(), j); err != nil {
		t.Fatal(err)
	}
}

// recorded waits until the outcomes of n effects are in the journal: a node that takes
// the job over before that does not know their outcomes.
func recorded(t *testing.T, q *job.Queue, id string, n int) {
	t.Helper()
	clocktest.Await(t, func() bool {
		steps, err := q.Journal(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		done := 0
		for _, step := range steps {
			if step.Done {
				done++
			}
		}
		return done == n
	})
}

// A node that was taken for dead performs no more effects of its jobs.
func TestLostJobStops(t *testing.T) {
	t.Parallel()
	url := tables.Postgres(t)
	here, there := newStage(), newStage()
	here.hold = make(chan struct{})
	a := open(t, dbtest.Open(t, url), here, job.Options{Node: "a"})
	defer shut(t, a)
	j := submit(t, a, job.Spec{Source: "write:one wait:two write:three"})
	<-here.in
	b := open(t, dbtest.Open(t, url), there, job.Options{Node: "b"})
	defer shut(t, b)
	if err := b.TakeOver(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if ended := await(t, b, j); ended.State != job.Failed {
		t.Fatalf("it is %s, want it failed: the outcome of the second is unknown", ended.State)
	}
	close(here.hold)
	again := submit(t, a, job.Spec{Source: "write:more"}) // a is still a node
	if ended := await(t, a, again); ended.State != job.Complete {
		t.Errorf("it is %s", ended.State)
	}
	if n := here.times(j, "write:three") + there.times(j, "write:three"); n != 0 {
		t.Errorf("the third effect happened %d times", n)
	}
	if now, err := a.Status(t.Context(), j); err != nil || now.State != job.Failed {
		t.Errorf("it is %s (%v)", now.State, err)
	}
}

// Every node shows the progress and output of a job, also after another node has taken
// it over. Nothing of that is stored after the job ends.
func TestProgressIsSharedBetweenNodes(t *testing.T) {
	t.Parallel()
	url := tables.Postgres(t)
	here, there := newStage(), newStage()
	a := open(t, dbtest.Open(t, url), here, job.Options{Node: "a"})
	defer shut(t, a)
	d := dbtest.Open(t, url)
	b := open(t, d, there, job.Options{Node: "b"})
	defer shut(t, b)
	j := submit(t, a, job.Spec{Source: "say:one half say:two write:it spin"})
	<-here.in
	recorded(t, b, j, 1)
	seen := func(q *job.Queue) job.Job {
		t.Helper()
		var now job.Job
		clocktest.Await(t, func() bool { // another node stores it
			var err error
			if now, err = q.Status(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			return len(now.Output) == 2
		}, func() string { return fmt.Sprintf("%+v", now) })
		return now
	}
	if now := seen(b); now.Progress != 0.5 || now.Message != "half way" || now.Output[1].Text != "two" {
		t.Errorf("seen from elsewhere it is %+v", now)
	}
	page, err := b.List(t.Context(), job.Filter{}, 0, "")
	if err != nil || len(page.Jobs) != 1 || page.Jobs[0].Progress != 0.5 || page.Jobs[0].Output != nil {
		t.Errorf("listed elsewhere as %+v (%v)", page.Jobs, err)
	}
	if err := b.TakeOver(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if err := a.Recheck(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-there.in
	if now := seen(a); now.Output[0].Text != "one" {
		t.Errorf("taken over it is %+v", now)
	}
	if _, err := a.Cancel(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	await(t, b, j)
	var left int
	clocktest.Await(t, func() bool {
		if err := d.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM job_live) + (SELECT count(*) FROM job_said)").Scan(&left); err != nil {
			t.Fatal(err)
		}
		return left == 0
	}, func() string { return fmt.Sprintf("%d rows are left", left) })
}

// The end of a cancelled job is published once, whichever node cancels it, and whether it
// runs there, on another node, or has not begun.
func TestCancelledJobIsPublishedOnce(t *testing.T) {
	t.Parallel()
	url := tables.Postgres(t)
	here := newStage()
	bus := event.New(event.BusOptions{})
	events := bus.Subscribe(event.Options{Types: []string{"job.finished"}})
	defer events.Close()
	a := open(t, dbtest.Open(t, url), here, job.Options{Node: "a", Events: bus})
	b := open(t, dbtest.Open(t, url), newStage(), job.Options{Node: "b", Events: bus})
	var jobs []string
	for _, by := range []*job.Queue{a, b} {
		running := submit(t, a, job.Spec{Source: "spin"})
		<-here.in
		waiting := submit(t, a, job.Spec{Source: "spin", Delay: time.Hour})
		jobs = append(jobs, running, waiting)
		for _, id := range []string{running, waiting} {
			if done, err := by.Cancel(t.Context(), id); err != nil || !done {
				t.Errorf("cancelled: %t (%v)", done, err)
			}
			await(t, a, id) // until it has stopped
		}
	}
	shut(t, a)
	shut(t, b)
	times := map[string]int{}
	for e, ok := events.Poll(); ok; e, ok = events.Poll() {
		times[e.Data.(job.Finished).ID]++
	}
	for i, id := range jobs {
		if times[id] != 1 {
			t.Errorf("the end of job %d was published %d times", i, times[id])
		}
	}
}
