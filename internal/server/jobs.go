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
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
)

// JobsConfig is about scripts that run in the background.
type JobsConfig struct {
	Workers      int      `toml:"workers" help:"how many jobs run at once"`
	Timeout      Duration `toml:"timeout" help:"how long one run of a job may take; 0 is as long as scripts.timeout says"`
	KeepComplete Duration `toml:"keep_complete" help:"how long a complete job is kept after its end"`
	KeepFailed   Duration `toml:"keep_failed" help:"how long a failed or cancelled job is kept after its end"`
}

func defaultJobs() JobsConfig {
	return JobsConfig{Workers: 16, KeepComplete: Duration(5 * time.Minute), KeepFailed: Duration(30 * time.Minute)}
}

func (c JobsConfig) check() error {
	switch {
	case c.Workers < 1:
		return fault.New(fault.Config, "jobs.workers: %d is too few", c.Workers).WithHint("give 1 or more")
	case c.Timeout < 0 || c.KeepComplete <= 0 || c.KeepFailed <= 0:
		return fault.New(fault.Config, "jobs: timeout, keep_complete and keep_failed are lengths of time above zero").
			WithHint("such as 5m or 720h")
	}
	return nil
}

// openJobs starts the queue and lets jobs go on that a crash interrupted. The
// queue belongs to one process at a time: another one on the same data folder,
// such as a client's own `luanette stdio` beside a server, can only look at jobs,
// and so does a house that is not to run any.
func (h *House) openJobs(ctx context.Context) error {
	options := job.Options{
		Workers: h.config.Jobs.Workers, KeepComplete: time.Duration(h.config.Jobs.KeepComplete), KeepFailed: time.Duration(h.config.Jobs.KeepFailed),
		Grace: graceTime, TempDir: filepath.Join(h.config.Data, "jobs"),
		CurrentPrincipal: h.standing(), ReadOnly: !h.options.Jobs, Node: h.jobNode(), Unlimited: isMusic, Events: h.bus, Log: h.log,
	}
	if h.approvals != nil { // the music backend asks nobody
		options.Approvals, options.Tools = h.approvals, h.catalog
	}
	runner := jobRunner{upstreams: h.upstreams, music: h.hoot, since: h.started, settled: h.settled, limits: script.Limits{Time: time.Duration(h.config.Jobs.Timeout)}}
	if h.scripts != nil { // not in a house of music alone
		runner.runner = h.scripts.runner
	}
	queue, err := job.Open(ctx, h.store, runner, options)
	if fault.CodeOf(err) == fault.Conflict {
		h.log.InfoContext(ctx, "jobs run in another process on this data folder")
		options.ReadOnly = true
		queue, err = job.Open(ctx, h.store, runner, options)
	}
	if err != nil {
		return err
	}
	h.jobs = queue
	return nil
}

// tasks shows jobs as tasks; nil where there are none.
func (h *House) tasks() hub.Tasks {
	if h.jobs == nil {
		return nil
	}
	return builtin.JobTasks{Queue: h.jobs}
}

// closeTimeout is how long a job waits for upstreams that are slow to start: one that
// goes on after a restart finds them all connecting.
const patience = 30 * time.Second

// jobRunner runs jobs as the scripts they are, or as work of the music backend.
type jobRunner struct {
	runner    *script.Runner // nil in a house of music alone
	upstreams *upstreams
	music     *hootenanny.Backend
	limits    script.Limits
	since     time.Time       // when the house began
	settled   <-chan struct{} // closed when startup.lua has run
}

// ready waits with a job from before until startup.lua has set its hooks: they are to
// see all that the job does. What startup.lua itself starts, it may wait for.
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
	if isMusic(task.Spec) {
		return runMusic(ctx, r.music, task)
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
		r.upstreams.allTried(ctx, patience)
	}
	outcome, err := r.runner.Run(ctx, script.Request{
		Source: task.Source, Language: task.Language, Name: task.Name, Hash: hash, Creator: task.Creator, Params: task.Params, Main: true,
		FlowName: "job:" + task.ID,
		Handler:  task.Door, Temp: task.Temp, Watch: task.Watch, Limits: r.limits,
		Caller: &tool.Caller{ID: task.Creator, Progress: func(p tool.Progress) { task.Progress(p.Progress, p.Message) }},
	})
	var failure *script.Error
	if errors.As(err, &failure) {
		err = failure.Fault()
	}
	return job.Outcome{Result: outcome.Result, Output: outcome.Output}, err
}
