package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/jobs/job"
)

// TestResume checks that a job with a call in doubt goes on when somebody says whether it was
// carried out, also if the next process dies during the same call.
func TestResume(t *testing.T) {
	t.Parallel()
	d, s := database(t), newStage()
	s.hold = make(chan struct{})
	options := job.Options{Grace: time.Nanosecond}
	q := open(t, d, s, options)
	// interrupt has the server stop during the call, and returns the job in the next process.
	interrupt := func(id string) {
		t.Helper()
		if at := <-s.in; at != "wait" {
			t.Fatalf("the job is in %s", at)
		}
		shut(t, q)
		q = open(t, d, s, options)
		if j := await(t, q, id); j.State != job.Failed || !strings.Contains(j.Error.Hint, "job resume") {
			t.Fatalf("job %+v, error %+v", j, j.Error)
		}
		if steps, err := q.InDoubt(t.Context(), id); err != nil || len(steps) != 1 || steps[0].Call() != `stage.wait("x")` {
			t.Fatalf("in doubt: %+v (%v)", steps, err)
		}
	}
	resume := func(id string, a job.Assumption) string {
		t.Helper()
		j, err := q.Resume(t.Context(), id, a)
		if err != nil {
			t.Fatal(err)
		}
		return j.ID
	}
	first := submit(t, q, job.Spec{Source: "write:a wait:x write:b", Tags: []string{"weekly"}})
	interrupt(first)
	second := resume(first, job.Assumption{})
	interrupt(second)
	close(s.hold)
	for name, of := range map[string]struct {
		assume job.Assumption
		waits  int
	}{"not done": {waits: 1}, "done": {assume: job.Assumption{Done: true}}} {
		id := resume(second, of.assume)
		j := await(t, q, id)
		if j.State != job.Complete || string(j.Result) != "3" || strings.Join(j.Tags, " ") != "weekly resume resume:"+second {
			t.Errorf("%s: %+v", name, j)
		}
		if a, x, b := s.times(id, "write:a"), s.times(id, "wait:x"), s.times(id, "write:b"); a != 0 || x != of.waits || b != 1 {
			t.Errorf("%s: write:a %d times, wait:x %d times, write:b %d times", name, a, x, b)
		}
		if steps, err := q.Journal(t.Context(), id); err != nil || len(steps) != 3 || steps[0].Seq != 1 || steps[2].Seq != 3 {
			t.Errorf("%s: journal %+v (%v)", name, steps, err)
		}
		if _, err := q.Resume(t.Context(), id, of.assume); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("%s: resumed a complete job: %v", name, err)
		}
	}
	shut(t, q)
}
