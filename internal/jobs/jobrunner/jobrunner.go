// Package jobrunner runs jobs: scripts, or work of the music backend.
package jobrunner

import (
	"context"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/jobs/musicjob"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
)

// Upstreams are the tool servers that scripts use.
type Upstreams interface {
	// Has reports whether there is an upstream of that name.
	Has(name string) bool
	// AwaitAttempt waits until an upstream has been tried for the first time.
	AwaitAttempt(ctx context.Context, name string)
}

// Runner runs jobs.
type Runner struct {
	Scripts   *script.Runner // nil in a server with music only
	Upstreams Upstreams
	Music     *hootenanny.Backend // nil if it is switched off
	Limits    script.Limits
	Since     time.Time       // when the server started
	Settled   <-chan struct{} // closed when startup.lua has run

	// Scope returns a context in which the job has the tools of its creator.
	Scope func(context.Context) (context.Context, error)
}

// RunJob runs one job.
func (r Runner) RunJob(ctx context.Context, task job.Task) (job.Outcome, error) {
	if musicjob.Is(task.Spec) {
		return musicjob.Run(ctx, r.Music, task)
	}
	if r.Scripts == nil {
		return job.Outcome{}, fault.New(fault.Unavailable, "no scripts run in this process").WithHint("give the music backend a data folder of its own")
	}
	hash, err := cas.Parse(task.Hash)
	if err != nil {
		hash = cas.Ref{} // a script that was not stored
	}
	if err := r.awaitHooks(ctx, task); err != nil {
		return job.Outcome{}, err
	}
	if ctx, err = r.Scope(ctx); err != nil {
		return job.Outcome{}, err
	}
	outcome, err := r.Scripts.Run(tool.WithJob(ctx, task.ID, task.Name), script.Request{
		Source: task.Source, Language: task.Language, Name: task.Name, Hash: hash, Creator: task.Creator, Params: task.Params, Main: true,
		Job: task.ID, FlowName: "job:" + task.ID,
		Jobs: job.ForScripts{Queue: task.Queue}, Handler: task.Handler, Temp: task.Temp, Watch: task.Watch, Limits: r.Limits,
		AwaitTools: r.awaitTools(task),
		Caller:     &tool.Caller{ID: task.Creator, Progress: func(p tool.Progress) { task.Progress(p.Progress, p.Message) }},
	})
	var failure *script.Error
	if errors.As(err, &failure) {
		err = failure.Fault()
	}
	return job.Outcome{Result: outcome.Result, Output: outcome.Output}, err
}

// awaitTools returns what a job does before it calls a tool that is not known: it waits for
// the upstream of that tool, which says what the tool is, and for no other. A job that runs
// offline waits for none.
func (r Runner) awaitTools(task job.Task) func(ctx context.Context, namespace string) {
	if task.Offline {
		return nil
	}
	return func(ctx context.Context, namespace string) {
		r.Upstreams.AwaitAttempt(ctx, principal.Of(ctx).Namespace(namespace, r.Upstreams.Has))
	}
}

// awaitHooks delays jobs of an earlier process until startup.lua has set its hooks, which
// see all calls of a job. Jobs that startup.lua starts are not delayed: it may wait for
// them.
func (r Runner) awaitHooks(ctx context.Context, task job.Task) error {
	if task.Offline || !task.Created.Before(r.Since) {
		return nil
	}
	select {
	case <-r.Settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
