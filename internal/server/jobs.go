package server

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/jobs/musicjob"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
)

// openJobs starts the queue and resumes jobs that a crash interrupted. One process at a
// time has the queue. Another process on the same data folder, such as a client's own
// `luanette stdio` beside a server, can only read jobs.
func (srv *Server) openJobs(ctx context.Context) error {
	options := job.Options{
		Workers: srv.config.Jobs.Workers, KeepComplete: time.Duration(srv.config.Jobs.KeepComplete), KeepFailed: time.Duration(srv.config.Jobs.KeepFailed),
		KeepCount: srv.config.Jobs.KeepCount, KeepScheduled: srv.config.Jobs.KeepScheduled,
		Grace: graceTimeout, TempDir: filepath.Join(srv.config.Data, "jobs"),
		CurrentPrincipal: srv.currentPrincipal(), ReadOnly: !srv.options.Jobs, Traces: telemetry.JobTraces{}, Tracer: srv.telemetry.Tracer("job"), Meter: srv.telemetry.Meter("job"), Node: srv.jobNode(), Unlimited: musicjob.Is, Events: srv.bus, Log: srv.log,
	}
	if srv.approvals != nil { // the music backend needs no approvals
		options.Approvals, options.Tools, options.Revert = srv.approvals, srv.catalog, srv.revert
	}
	runner := jobRunner{upstreams: srv.upstreams, music: srv.localMusic, since: srv.started, settled: srv.startupDone, limits: srv.config.Jobs.Limits(), scope: srv.chatScope}
	if srv.scripts != nil { // nil in a server with music only
		runner.runner = srv.scripts.runner
	}
	queue, err := job.Open(ctx, srv.store, runner, options)
	if fault.CodeOf(err) == fault.Conflict {
		srv.log.InfoContext(ctx, "jobs run in another process on this data folder")
		options.ReadOnly = true
		queue, err = job.Open(ctx, srv.store, runner, options)
	}
	if err != nil {
		return err
	}
	srv.jobs = queue
	return nil
}

// scriptJobs starts jobs for scripts; nil as long as there is no queue.
func (srv *Server) scriptJobs() script.Jobs {
	if srv.jobs == nil {
		return nil
	}
	return job.ForScripts{Queue: srv.jobs}
}

// jobTasks shows jobs as MCP tasks; nil if there are no jobs.
func (srv *Server) jobTasks() hub.Tasks {
	if srv.jobs == nil {
		return nil
	}
	return builtin.JobTasks{Queue: srv.jobs, Approvals: srv.approvals}
}

// upstreamWait is how long a job waits for upstreams: after a restart they are all
// connecting.
const upstreamWait = 30 * time.Second

// jobRunner runs jobs: scripts, or work of the music backend.
type jobRunner struct {
	runner    *script.Runner // nil in a server with music only
	upstreams *upstreamset.Set
	music     *hootenanny.Backend
	limits    script.Limits
	since     time.Time       // when the server started
	settled   <-chan struct{} // closed when startup.lua has run
	scope     func(context.Context) (context.Context, error)
}

// ready delays jobs of an earlier process until startup.lua has set its hooks, which see
// all calls of a job. Jobs that startup.lua starts are not delayed: it may wait for them.
func (r jobRunner) ready(ctx context.Context, task job.Task) error {
	if task.Offline || !task.Created.Before(r.since) {
		return nil
	}
	select {
	case <-r.settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r jobRunner) RunJob(ctx context.Context, task job.Task) (job.Outcome, error) {
	if musicjob.Is(task.Spec) {
		return musicjob.Run(ctx, r.music, task)
	}
	if r.runner == nil {
		return job.Outcome{}, fault.New(fault.Unavailable, "no scripts run in this process").WithHint("give the music backend a data folder of its own")
	}
	hash, err := cas.Parse(task.Hash)
	if err != nil {
		hash = cas.Ref{} // a script that was not stored
	}
	if err := r.ready(ctx, task); err != nil {
		return job.Outcome{}, err
	}
	if !task.Offline {
		r.upstreams.AwaitAttempts(ctx, upstreamWait)
	}
	if ctx, err = r.scope(ctx); err != nil {
		return job.Outcome{}, err
	}
	outcome, err := r.runner.Run(ctx, script.Request{
		Source: task.Source, Language: task.Language, Name: task.Name, Hash: hash, Creator: task.Creator, Params: task.Params, Main: true,
		Job: task.ID, FlowName: "job:" + task.ID,
		Jobs: job.ForScripts{Queue: task.Queue}, Handler: task.Handler, Temp: task.Temp, Watch: task.Watch, Limits: r.limits,
		Caller: &tool.Caller{ID: task.Creator, Progress: func(p tool.Progress) { task.Progress(p.Progress, p.Message) }},
	})
	var failure *script.Error
	if errors.As(err, &failure) {
		err = failure.Fault()
	}
	return job.Outcome{Result: outcome.Result, Output: outcome.Output}, err
}

// revert returns how the configuration in effect says that a tool is undone.
func (srv *Server) revert(ref tool.Ref) (tool.Revert, bool) { return srv.current().Revert(ref) }
