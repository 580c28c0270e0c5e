// Package musicjob runs the long work of the music backend as durable jobs.
package musicjob

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/scripting/host"
)

// hashPrefix begins the hash of a job that is work of the music backend instead of a
// script. No stored script has such a hash.
const hashPrefix = "hootenanny:"

// Is tells whether a job is work of the music backend. Such jobs do not count against the
// limit of running scripts: a script that waits for one would keep it from starting.
func Is(s job.Spec) bool { return strings.HasPrefix(s.Hash, hashPrefix) }

// Queue is the job queue with the types of the music backend.
type Queue struct{ Jobs *job.Queue }

var _ hootenanny.Jobs = Queue{}

func (m Queue) Submit(ctx context.Context, s hootenanny.JobSpec) (hootenanny.Job, error) {
	j, err := m.Jobs.Submit(ctx, job.Spec{
		Name: s.Tool, Hash: hashPrefix + s.Tool, Source: "-- " + hashPrefix + s.Tool, Params: s.Params, Creator: s.Creator,
		Tags: append([]string{hootenanny.Space}, s.Tags...),
	})
	return fromJob(j), err
}

func (m Queue) Status(ctx context.Context, id string) (hootenanny.Job, error) {
	j, err := m.Jobs.Status(ctx, id)
	return fromJob(j), err
}

func (m Queue) Poll(ctx context.Context, ids []string, timeout time.Duration, all bool) (done []hootenanny.Job, pending []string, err error) {
	over, pending, err := m.Jobs.Poll(ctx, ids, timeout, all)
	for _, j := range over {
		done = append(done, fromJob(j))
	}
	return done, pending, err
}

func (m Queue) Cancel(ctx context.Context, id string) (bool, error) {
	return m.Jobs.Cancel(ctx, id)
}

func (m Queue) List(ctx context.Context, state string, limit int) (jobs []hootenanny.Job, total int, err error) {
	page, err := m.Jobs.List(ctx, job.Filter{State: job.State(state), Tag: hootenanny.Space}, limit, "")
	for _, j := range page.Jobs {
		jobs = append(jobs, fromJob(j))
	}
	return jobs, page.Total, err
}

func (m Queue) Active(ctx context.Context) (int, error) {
	stats, err := m.Jobs.Stats(ctx)
	count := 0
	for state, n := range stats {
		if !state.Final() {
			count += n
		}
	}
	return count, err
}

func fromJob(j job.Job) hootenanny.Job {
	m := hootenanny.Job{
		ID: j.ID, Tool: j.Name, State: string(j.State), Creator: j.Creator, Created: j.Created, Started: j.Started, Finished: j.Finished,
		Progress: j.Progress, Message: j.Message, Result: j.Result,
		Tags: slices.DeleteFunc(slices.Clone(j.Tags), func(tag string) bool { return tag == hootenanny.Space }),
	}
	if j.Error != nil {
		m.Error = &fault.Error{Code: j.Error.Code, Msg: j.Error.Message, Hint: j.Error.Hint, Details: j.Error.Details}
	}
	return m
}

// Run runs a job of the music backend. Requests to models go through the job's journal, so
// that a job that resumes after a crash does not repeat them.
func Run(ctx context.Context, backend *hootenanny.Backend, task job.Task) (job.Outcome, error) {
	if backend == nil {
		return job.Outcome{}, fault.New(fault.Unavailable, "the music backend is switched off").WithHint("set music.enabled, or start the server with --music, and start the job again")
	}
	env := host.NewEnv(nil, task.Handler, &host.Services{})
	result, err := backend.RunJob(ctx, hootenanny.Task{
		ID: task.ID, Tool: strings.TrimPrefix(task.Hash, hashPrefix), Params: task.Params, Progress: task.Progress,
		Step: func(ctx context.Context, name string, do func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
			step := host.Func{Name: name, Kind: host.Idempotent, Effect: func(ctx context.Context, _ *host.Services, _ host.Args) ([]host.Value, error) {
				out, err := do(ctx)
				return []host.Value{out}, err
			}}
			values, err := env.Call(ctx, "model", &step, nil)
			if err != nil {
				return nil, err
			}
			if len(values) == 1 {
				if out, ok := values[0].(json.RawMessage); ok {
					return out, nil
				}
			}
			return nil, fault.New(fault.Internal, "the journal of job %s has no answer of %s", task.ID, name)
		},
	})
	return job.Outcome{Result: result}, err
}
