package script

import (
	"context"
	"errors"

	"github.com/luanette/luanette/internal/scripting/host"
)

// Jobs starts jobs in the background.
type Jobs interface {
	// NewID returns the id of a job to start: the same for every call with one token, a
	// new one if the token is "".
	NewID(token string) string
	// Start starts a job under an id; if there is one already, it does nothing.
	Start(ctx context.Context, id, creator string, j host.NewJob) error
	// Result returns the state of a job of the same principal.
	Result(ctx context.Context, id string) (host.JobResult, error)
}

// startedJobs starts jobs for one run. What the run has read counts as read by the jobs
// it starts, and the other way round when it gets their results.
type startedJobs struct {
	runner  *Runner
	jobs    Jobs
	request Request
}

// jobsFor returns what starts jobs for a run; nil if no jobs run here.
func (r *Runner) jobsFor(q Request) host.Jobs {
	jobs := q.Jobs
	if jobs == nil && r.options.Jobs != nil {
		jobs = r.options.Jobs()
	}
	if jobs == nil {
		return nil
	}
	return startedJobs{r, jobs, q}
}

func (s startedJobs) Start(ctx context.Context, j host.NewJob) (string, error) {
	if j.Name == "" {
		j.Name = s.request.ownName()
	}
	ready, err := s.runner.Prepare(ctx, Request{Source: j.Source, Language: j.Language, Name: j.Name, Params: j.Params, Main: true})
	if failure := (*Error)(nil); errors.As(err, &failure) {
		return "", failure.Fault()
	}
	if err != nil {
		return "", err
	}
	j.Language, j.Params = ready.Language, ready.Params
	id := s.jobs.NewID(j.Token)
	if flow := s.runner.options.Flow; flow != nil {
		if err := flow.Remember(ctx, flowOfJob(id)); err != nil {
			return "", err
		}
	}
	creator := s.request.Creator
	if s.request.Caller != nil {
		creator = s.request.Caller.ID
	}
	return id, s.jobs.Start(ctx, id, creator, j)
}

func (s startedJobs) Result(ctx context.Context, id string) (host.JobResult, error) {
	found, err := s.jobs.Result(ctx, id)
	if flow := s.runner.options.Flow; err == nil && flow != nil {
		err = flow.Recall(ctx, flowOfJob(id))
	}
	return found, err
}

// flowOfJob is the name under which the flow of a job is stored.
func flowOfJob(id string) string { return "job:" + id }
