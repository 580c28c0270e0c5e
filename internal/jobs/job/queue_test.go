package job_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

const longTime = clocktest.Timeout // ends a test that would hang

func TestMain(m *testing.M) {
	if os.Getenv(crashChild) != "" {
		runCrashChild()
		return
	}
	clocktest.SetParallel()
	goleak.VerifyTestMain(clocktest.Settled(m))
}

func TestJobRunsToItsEnd(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	events := bus.Subscribe(event.Options{Types: []string{"job.*"}})
	defer events.Close()
	s := newStage()
	q := open(t, database(t), s, job.Options{Events: bus})
	defer shut(t, q)
	id := submit(t, q, job.Spec{Source: "say:hello half read:a write:b", Creator: "amy", Tags: []string{"x", "y", "x"}, Name: "demo"})
	j := await(t, q, id)
	if j.State != job.Complete || string(j.Result) != "2" || j.Error != nil || j.Progress != 1 || len(j.Output) != 1 || j.Output[0].Text != "hello" {
		t.Errorf("job %+v", j)
	}
	if j.Created.After(j.Started) || j.Started.After(j.Finished) || !slices.Equal(j.Tags, []string{"x", "y"}) {
		t.Errorf("created %s, started %s, finished %s, tags %q", j.Created, j.Started, j.Finished, j.Tags)
	}
	var types []string
	for range 4 {
		e, err := events.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type)
	}
	if want := []string{"job.submitted", "job.started", "job.progress", "job.finished"}; !slices.Equal(types, want) {
		t.Errorf("events %q, want %q", types, want)
	}
	steps, err := q.Journal(t.Context(), id)
	if err != nil || len(steps) != 2 || steps[0].Name != "stage.read" || !steps[1].Done {
		t.Errorf("journal %v (%v)", steps, err)
	}
	replayed, err := q.Replay(t.Context(), id, job.Script{})
	if err != nil || string(replayed.Result) != "2" || replayed.Error != nil || replayed.Left != 0 || s.times(id, "write:b") != 1 {
		t.Errorf("replayed %+v (%v), written %d times", replayed, err, s.times(id, "write:b"))
	}
	other, err := q.Replay(t.Context(), id, job.Script{Source: "read:a write:c"})
	if err != nil || !other.Diverged || !strings.Contains(other.Error.Message, `"b"`) || !strings.Contains(other.Error.Message, `"c"`) {
		t.Errorf("another script %+v (%v), want a divergence that shows both", other, err)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	q := open(t, database(t), newStage(), job.Options{})
	defer shut(t, q)
	j := await(t, q, submit(t, q, job.Spec{Source: "say:before fail:boom"}))
	if j.State != job.Failed || j.Error == nil || j.Error.Message != "failed: boom" || len(j.Output) != 1 {
		t.Errorf("job %+v", j)
	}
	if _, err := q.Submit(t.Context(), job.Spec{Source: " "}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("a job without a script: %v", err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s := newStage()
	q := open(t, database(t), s, job.Options{Workers: 1})
	defer shut(t, q)
	for _, source := range []string{"say:x spin", "say:x wait swallow read:a"} {
		id := submit(t, q, job.Spec{Source: source})
		<-s.in
		behind := submit(t, q, job.Spec{Source: "read:a"}) // waits for the only place
		for _, each := range []string{behind, id} {
			if done, err := q.Cancel(t.Context(), each); !done || err != nil {
				t.Errorf("Cancel = %t, %v", done, err)
			}
			if j := await(t, q, each); j.State != job.Cancelled || j.Error != nil || j.Finished.IsZero() {
				t.Errorf("job %+v", j)
			}
		}
		if s.times(behind, "read:a")+s.times(id, "read:a") > 0 {
			t.Error("a cancelled job continued")
		}
		if done, err := q.Cancel(t.Context(), id); done || err != nil {
			t.Errorf("Cancel of an ended job = %t, %v", done, err)
		}
	}
	if _, err := q.Cancel(t.Context(), "unknown"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("Cancel of an unknown job: %v", err)
	}
}

func TestPoll(t *testing.T) {
	t.Parallel()
	s := newStage()
	q := open(t, database(t), s, job.Options{})
	defer shut(t, q)
	quick, slow := submit(t, q, job.Spec{Source: "read:a"}), submit(t, q, job.Spec{Source: "spin"})
	await(t, q, quick)
	done, pending, err := q.Poll(t.Context(), []string{slow, quick}, longTime, false)
	if err != nil || len(done) != 1 || done[0].ID != quick || !slices.Equal(pending, []string{slow}) {
		t.Errorf("any: %v, %v, %v", done, pending, err)
	}
	done, pending, err = q.Poll(t.Context(), []string{slow, quick}, time.Millisecond, true)
	if err != nil || len(done) != 1 || len(pending) != 1 {
		t.Errorf("all, out of time: %v, %v, %v", done, pending, err)
	}
	_, _, err = q.Poll(t.Context(), []string{quick, "ghost", "phantom"}, longTime, true)
	if fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), "ghost, phantom") {
		t.Errorf("unknown ids: %v", err)
	}
	if _, err := q.Cancel(t.Context(), slow); err != nil {
		t.Error(err)
	}
	await(t, q, slow)
}

func TestListAndStats(t *testing.T) {
	t.Parallel()
	s := newStage()
	q := open(t, database(t), s, job.Options{})
	defer shut(t, q)
	var ids []string
	for i := range 7 {
		source := "read:a"
		if i%2 == 1 {
			source = "fail:x"
		}
		ids = append(ids, submit(t, q, job.Spec{Source: source, Name: "play", Hash: []string{"h0", "h1"}[i%2], Creator: []string{"amy", "bob"}[i%2], Tags: []string{"all", []string{"even", "odd"}[i%2]}}))
	}
	await(t, q, ids...)
	running := submit(t, q, job.Spec{Source: "half spin", Tags: []string{"all"}})
	<-s.in
	var seen []string
	for cursor := ""; ; {
		page, err := q.List(t.Context(), job.Filter{Tag: "all"}, 3, cursor)
		if err != nil || page.Total != 8 {
			t.Fatalf("page of %d (%v)", page.Total, err)
		}
		for _, j := range page.Jobs {
			seen = append(seen, j.ID)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	slices.Sort(seen)
	if want := slices.Sorted(slices.Values(append(ids, running))); !slices.Equal(seen, want) {
		t.Errorf("listed %q, want %q", seen, want)
	}
	began, err := q.Status(t.Context(), running)
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[job.Filter]int{{Script: "play"}: 7, {Script: "h1"}: 3, {Since: began.Created}: 1, {State: job.Failed}: 3, {Creator: "amy"}: 4, {Tag: "odd", State: job.Complete}: 0, {State: job.Running}: 1} {
		page, err := q.List(t.Context(), f, 0, "")
		if err != nil || len(page.Jobs) != want || page.Total != want {
			t.Errorf("%+v: %d jobs of %d (%v), want %d", f, len(page.Jobs), page.Total, err, want)
		}
	}
	stats, err := q.Stats(t.Context())
	if err != nil || stats[job.Complete] != 4 || stats[job.Failed] != 3 || stats[job.Running] != 1 || stats[job.Pending] != 0 {
		t.Errorf("stats %v (%v)", stats, err)
	}
	if j, err := q.Status(t.Context(), running); err != nil || j.Progress != 0.5 || j.Message != "half way" {
		t.Errorf("status %+v (%v)", j, err)
	}
	if _, err := q.List(t.Context(), job.Filter{}, 0, "nonsense"); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("a wrong cursor: %v", err)
	}
}

// A queue that closes completes a write, and the next queue continues after it.
func TestCloseAndContinue(t *testing.T) {
	t.Parallel()
	d, s := database(t), newStage()
	s.hold = make(chan struct{})
	q := open(t, d, s, job.Options{Workers: 1, Grace: longTime})
	id := submit(t, q, job.Spec{Source: "read:a write:b wait swallow write:c"})
	<-s.in
	delayed := submit(t, q, job.Spec{Source: "read:a", Creator: "bob"})
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		shut(t, q)
	}()
	close(s.hold)
	<-closed

	q = open(t, d, s, job.Options{})
	defer shut(t, q)
	if j := await(t, q, id, delayed); j.State != job.Complete || string(j.Result) != "4" {
		t.Errorf("job %+v %+v", j, j.Error)
	}
	for _, word := range []string{"write:b", "wait:", "write:c"} {
		if n := s.times(id, word); n != 1 {
			t.Errorf("%s was made %d times", word, n)
		}
	}
}

func TestOneQueueAtATime(t *testing.T) {
	t.Parallel()
	d := database(t)
	q := open(t, d, newStage(), job.Options{})
	if _, err := job.Open(t.Context(), d, newStage(), job.Options{}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a second queue: %v", err)
	}
	shut(t, q)
	shut(t, open(t, d, newStage(), job.Options{}))
}

// With one place, creators take turns, and each creator's job with the highest priority
// runs first, whatever the order of submission.
func TestTurnsAndPriorities(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		q := open(t, d, s, job.Options{Workers: 1})
		defer shut(t, q)
		busy := submit(t, q, job.Spec{Source: "spin", Creator: "first"})
		<-s.in
		var all []string
		names := map[string]string{}
		for _, spec := range []job.Spec{
			{Creator: "amy", Priority: 0}, {Creator: "amy", Priority: 5}, {Creator: "amy", Priority: 9}, {Creator: "bob", Priority: -1}, {Creator: "bob", Priority: 0},
		} {
			spec.Source = "wait"
			id := submit(t, q, spec)
			all, names[id] = append(all, id), fmt.Sprint(spec.Creator, spec.Priority)
			synctest.Wait() // it is queued
		}
		current := busy
		var order []string
		for range all {
			if _, err := q.Cancel(t.Context(), current); err != nil {
				t.Fatal(err)
			}
			<-s.in
			page, err := q.List(t.Context(), job.Filter{State: job.Running}, 0, "")
			if err != nil || len(page.Jobs) != 1 {
				t.Fatalf("%d jobs run (%v), want one", len(page.Jobs), err)
			}
			current = page.Jobs[0].ID
			order = append(order, names[current])
		}
		if _, err := q.Cancel(t.Context(), current); err != nil {
			t.Fatal(err)
		}
		if want := []string{"amy9", "bob0", "amy5", "bob-1", "amy0"}; !slices.Equal(order, want) {
			t.Errorf("order %q, want %q", order, want)
		}
	})
}

// A process that does not run the jobs can read them.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	d, s := database(t), newStage()
	q := open(t, d, s, job.Options{})
	defer shut(t, q)
	id := submit(t, q, job.Spec{Source: "say:hello read:a"})
	await(t, q, id)
	looker := open(t, d, s, job.Options{ReadOnly: true})
	defer shut(t, looker)
	if j, err := looker.Status(t.Context(), id); err != nil || j.State != job.Complete || len(j.Output) != 1 {
		t.Errorf("status %+v (%v)", j, err)
	}
	if r, err := looker.Replay(t.Context(), id, job.Script{}); err != nil || r.Error != nil || r.Steps != 1 || string(r.Result) != "1" {
		t.Errorf("replay %+v (%v)", r, err)
	}
	_, submitted := looker.Submit(t.Context(), job.Spec{Source: "read:a"})
	_, cancelled := looker.Cancel(t.Context(), id)
	_, scheduled := looker.Schedule(t.Context(), job.Spec{Source: "read:a"}, "@daily", "")
	_, paused := looker.PauseSchedule(t.Context(), id, true)
	for _, err := range []error{submitted, cancelled, scheduled, paused, looker.Unschedule(t.Context(), id)} {
		if fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("a change by a read-only queue: %v", err)
		}
	}
}

// TestEndedJobsAreBoundedInNumber checks that the newest ended jobs are kept: of each
// schedule, and of all.
func TestEndedJobsAreBoundedInNumber(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		q := open(t, d, newStage(), job.Options{KeepCount: 6, KeepScheduled: 2})
		defer shut(t, q)
		plan, err := q.Schedule(t.Context(), job.Spec{Source: "read:a"}, "@every 10m", "")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(52 * time.Minute) // five runs, and a sweep after each
		page, err := q.List(t.Context(), job.Filter{Schedule: plan.ID}, 0, "")
		if err != nil || page.Total != 2 || time.Since(page.Jobs[0].Created) > 10*time.Minute {
			t.Fatalf("%d jobs of the schedule are kept, want the last 2 (%v)", page.Total, err)
		}
		var ids []string
		for range 8 {
			ids = append(ids, submit(t, q, job.Spec{Source: "read:a"}))
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Minute)
		page, err = q.List(t.Context(), job.Filter{}, 0, "")
		if err != nil || page.Total != 6 || page.Jobs[0].ID != ids[7] || page.Jobs[5].ID != ids[2] {
			t.Errorf("%d jobs are kept, want the last 6 (%v)", page.Total, err)
		}
	})
}

func TestDelayAndRetention(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		q := open(t, d, s, job.Options{KeepComplete: 10 * time.Second, KeepFailed: time.Minute})
		defer shut(t, q)
		good := submit(t, q, job.Spec{Source: "read:a", Delay: 5 * time.Second})
		bad := submit(t, q, job.Spec{Source: "fail:x"})
		synctest.Wait()
		if s.times(good, "read:a") != 0 {
			t.Error("ran before its time")
		}
		j := await(t, q, good, bad)
		if waited := j.Started.Sub(j.Created); waited < 5*time.Second {
			t.Errorf("started after %s, want 5 s", waited)
		}
		time.Sleep(25 * time.Second)
		if _, err := q.Status(t.Context(), good); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a complete job was not removed: %v", err)
		}
		if _, err := q.Status(t.Context(), bad); err != nil {
			t.Errorf("a failed job was removed too early: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := q.Status(t.Context(), bad); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a failed job was not removed: %v", err)
		}
	})
}

// TestAdmission checks that a job that is not admitted is not stored, and that one that
// exists is not counted again.
func TestAdmission(t *testing.T) {
	t.Parallel()
	asked := 0
	q := open(t, database(t), newStage(), job.Options{Admit: func(context.Context, *db.Tx) error {
		if asked++; asked > 1 {
			return fault.New(fault.Limit, "no more jobs")
		}
		return nil
	}})
	defer shut(t, q)
	scripts := job.ForScripts{Queue: q}
	id := scripts.NewID("one token")
	for range 2 {
		if err := scripts.Start(t.Context(), id, "", host.NewJob{Source: "return 1"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Submit(t.Context(), job.Spec{Source: "return 1"}); fault.CodeOf(err) != fault.Limit || err.Error() != "no more jobs" {
		t.Errorf("one job too many: %v", err)
	}
	if page, err := q.List(t.Context(), job.Filter{}, 0, ""); err != nil || len(page.Jobs) != 1 || asked != 2 {
		t.Errorf("%d jobs, asked %d times (%v)", len(page.Jobs), asked, err)
	}
}

// failing runs jobs that fail as a script does.
type failing struct{}

func (failing) RunJob(context.Context, job.Task) (job.Outcome, error) {
	return job.Outcome{}, fault.New(fault.Script, "Tool Call Failed in script calc.fail\n\nError: calc.fail: broken\n     2 |   return mcp.call(call.server, …)").
		WithDetails(map[string]string{"kind": "ToolError", "message": "calc.fail: broken"})
}

// TestErrorForScripts checks that a script gets the error of a job without the lines of the
// job's script, which is not its own.
func TestErrorForScripts(t *testing.T) {
	t.Parallel()
	q := open(t, database(t), failing{}, job.Options{})
	defer shut(t, q)
	scripts := job.ForScripts{Queue: q}
	id := scripts.NewID("")
	if err := scripts.Start(t.Context(), id, "", host.NewJob{Source: "return 1"}); err != nil {
		t.Fatal(err)
	}
	await(t, q, id)
	if got, err := scripts.Result(t.Context(), id); err != nil || got.State != "error" || got.Error != "calc.fail: broken" {
		t.Errorf("%+v, %v", got, err)
	}
}
