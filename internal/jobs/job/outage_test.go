package job_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// shaky runs jobs and approves them, and makes the database unreachable, once for each,
// at the moment that the job's name says.
type shaky struct {
	*approvalsFake
	t      *testing.T
	server *dbtest.Server
	back   sync.WaitGroup // the database is reachable again

	mu     sync.Mutex
	shaken map[string]bool
	made   map[string]int
}

// at stops the database if this is the moment of a job, and reports whether it was.
func (s *shaky) at(moment, name string) bool {
	s.mu.Lock()
	first := moment == name && !s.shaken[name]
	if first {
		s.shaken[name] = true
	}
	s.mu.Unlock()
	if first {
		s.server.Stop(s.t, "immediate")
		s.back.Go(func() { s.server.Start(s.t) })
	}
	return first
}

func (s *shaky) Approver(ctx context.Context, who host.RunInfo, past []host.Step) (host.Approver, error) {
	s.at("begin", who.Name)
	if who.Name != "ask" {
		return nil, nil
	}
	return s.approvalsFake.Approver(ctx, who, past)
}

func (s *shaky) Ask(ctx context.Context, p host.Paused) (host.Pending, error) {
	pending, err := s.approvalsFake.Ask(ctx, p)
	s.say(pending.ID, host.Allow)
	return pending, err
}

// RunJob makes one effect that must not be repeated.
func (s *shaky) RunJob(ctx context.Context, task job.Task) (outcome job.Outcome, err error) {
	ran := false
	effect := host.Effect{Seq: 1, Name: "stage.write", Kind: host.Write, Args: []host.Value{task.Name}}
	_, err = task.Handler.Handle(ctx, effect, func(context.Context) ([]host.Value, error) {
		s.mu.Lock()
		s.made[task.Name]++
		s.mu.Unlock()
		ran = true
		s.at("effect", task.Name)
		return nil, nil
	})
	for seq := int64(2); seq <= 3 && err == nil; seq++ { // the last waits until the previous one is recorded
		_, err = task.Handler.Handle(ctx, host.Effect{Seq: seq, Name: "stage.again", Kind: host.Idempotent, Args: []host.Value{task.Name}}, func(context.Context) ([]host.Value, error) {
			s.at("time", task.Name)
			return nil, nil
		})
	}
	if task.Name == "time" && ran { // a record before the last effect waited until it was late
		return outcome, fault.New(fault.Timeout, "out of time")
	}
	s.at("end", task.Name)
	s.at("ask", task.Name)
	return job.Outcome{Result: json.RawMessage(`"done"`)}, err
}

// A job continues after an outage of the database, whatever its state was, and repeats no
// effect.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	d := dbtest.OpenWith(t, server.URL, db.Options{OutageTimeout: time.Nanosecond})
	s := &shaky{approvalsFake: newApprovalsFake(), t: t, server: server, shaken: map[string]bool{}, made: map[string]int{}}
	q := open(t, d, s, job.Options{Node: "a", Approvals: s, Events: event.New(event.BusOptions{})})
	defer shut(t, q)
	for _, moment := range []string{"begin", "effect", "time", "end", "ask"} {
		if j := runToEnd(t, q, job.Spec{Source: "x", Name: moment}); j.State != job.Complete || string(j.Result) != `"done"` {
			t.Errorf("%s: it ended %s with %s %+v", moment, j.State, j.Result, j.Error)
		}
		s.back.Wait()
		if n := s.made[moment]; n != 1 || !s.shaken[moment] {
			t.Errorf("%s: the effect was made %d times, shaken %t", moment, n, s.shaken[moment])
		}
	}
}

// runToEnd submits a job and waits for it, with retries, as a client does.
func runToEnd(t *testing.T, q *job.Queue, s job.Spec) job.Job {
	ctx, _ := db.WaitForDatabase(t.Context())
	submitted, err := q.Submit(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	done, _, err := q.Poll(ctx, []string{submitted.ID}, longTime, true)
	if err != nil || len(done) != 1 {
		t.Errorf("waiting for %s: %v", submitted.ID, err)
		return job.Job{}
	}
	return done[0]
}
