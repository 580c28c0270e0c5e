package job_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// stage runs "scripts" that are lists of words, one effect each:
//
//	read:X repeat:X write:X  do it, counted in done
//	login:X                  needs a login at X, unless the stage is loggedIn
//	reach:X                  is not sent to X, as that cannot be reached, unless the stage is reachable
//	wait                     waits until it is stopped, as a call would
//	spin                     waits until it is stopped, outside of any effect
//	say:X                    prints X
//	half                     reports half of the progress
//	fail:X                   fails
//	swallow                  from here on continues after errors, as with pcall
//
// The result is the number of effects.
type stage struct {
	mu   sync.Mutex
	done map[string]int
	in   chan string // signalled when a script waits or spins; may be nil
	hold chan struct{}

	loggedIn  atomic.Bool
	reachable atomic.Bool
}

func newStage() *stage { return &stage{done: map[string]int{}, in: make(chan string, 100)} }

func (s *stage) RunJob(ctx context.Context, task job.Task) (outcome job.Outcome, err error) {
	var seq int64
	swallow := false
	for _, word := range strings.Fields(task.Source) {
		verb, object, _ := strings.Cut(word, ":")
		switch verb {
		case "say":
			line := host.OutputLine{Stream: "stdout", Text: object}
			outcome.Output = append(outcome.Output, line)
			task.Watch(line)
		case "half":
			task.Progress(0.5, "half way")
		case "swallow":
			swallow = true
		case "fail":
			return outcome, fmt.Errorf("failed: %s", object)
		case "spin":
			s.in <- "spin"
			<-ctx.Done()
			return outcome, context.Cause(ctx)
		default:
			seq++
			if err := s.effect(ctx, task, seq, verb, object); err != nil && !swallow {
				return outcome, err
			}
		}
	}
	outcome.Result, err = json.Marshal(seq)
	return outcome, err
}

func (s *stage) effect(ctx context.Context, task job.Task, seq int64, verb, object string) error {
	kind, known := map[string]host.Kind{"read": host.Read, "repeat": host.Idempotent}[verb]
	if !known {
		kind = host.Write
	}
	e := host.Effect{Seq: seq, Name: "stage." + verb, Kind: kind, Args: []host.Value{object}}
	_, err := task.Handler.Handle(ctx, e, func(ctx context.Context) ([]host.Value, error) {
		s.mu.Lock()
		s.done[task.ID+" "+verb+":"+object]++
		s.mu.Unlock()
		if verb == "login" && !s.loggedIn.Load() {
			return nil, fault.New(fault.NeedsAuth, "upstream %s requires a login", object).WithHint("log in at http://hub/connect/%s", object)
		}
		if verb == "reach" && !s.reachable.Load() {
			return nil, tool.Unsent{Err: fault.New(fault.Unavailable, "upstream %s did not start", object).WithHint("repair it")}
		}
		if verb == "wait" {
			s.in <- "wait"
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-s.hold:
			}
		}
		return []host.Value{object}, nil
	})
	return err
}

func (s *stage) times(id, word string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done[id+" "+word]
}

// tables is a database with the tables of the workflow engine.
var tables = dbtest.NewTemplate(job.CreateTables)

func database(t testing.TB) *db.DB {
	t.Helper()
	return dbtest.Open(t, tables.Fresh(t))
}

// open opens a queue, which is closed by the test or at its end.
func open(t testing.TB, d *db.DB, runner job.Runner, o job.Options) *job.Queue {
	t.Helper()
	if o.Events == nil {
		o.Events = event.New(event.BusOptions{})
	}
	q, err := job.Open(context.Background(), d, runner, o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func shut(t testing.TB, q *job.Queue) {
	t.Helper()
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

func submit(t testing.TB, q *job.Queue, s job.Spec) string {
	t.Helper()
	j, err := q.Submit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return j.ID
}

// await waits until jobs have ended and returns the first.
func await(t testing.TB, q *job.Queue, ids ...string) job.Job {
	t.Helper()
	return awaitAs(t, t.Context(), q, ids...)
}

// awaitAs waits for longer than one Poll, which a busy machine can need.
func awaitAs(t testing.TB, ctx context.Context, q *job.Queue, ids ...string) job.Job {
	t.Helper()
	for began := time.Now(); ; {
		done, pending, err := q.Poll(ctx, ids, longTime, true)
		if err == nil && len(pending) == 0 {
			return done[0]
		}
		if err != nil || time.Since(began) > longTime {
			t.Fatalf("waiting for %d jobs: %d pending (%v)", len(ids), len(pending), err)
		}
	}
}
