package app

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/cas"
	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/job"
	"github.com/luanette/luanette/internal/script"
	"github.com/luanette/luanette/internal/tool"
)

// openJobs starts the queue and lets jobs go on that a crash interrupted. The
// queue belongs to one process at a time: another one on the same data folder,
// such as a client's own `luanette stdio` beside a server, goes on without jobs.
func (h *House) openJobs(ctx context.Context) error {
	queue, err := job.Open(ctx, h.store, jobRunner{h.scripts.runner, h.upstreams}, job.Options{
		Grace: graceTime, TempDir: filepath.Join(h.config.Data, "jobs"),
		Events: h.bus, Log: h.log,
	})
	if fault.CodeOf(err) == fault.Conflict {
		h.log.InfoContext(ctx, "jobs run in another process on this data folder")
		return nil
	}
	if err != nil {
		return err
	}
	h.jobs = queue
	return nil
}

// patience is how long a job waits for upstreams that are slow to start: one that
// goes on after a restart finds them all connecting.
const patience = 30 * time.Second

// jobRunner runs jobs as the scripts they are.
type jobRunner struct {
	runner    *script.Runner
	upstreams *upstreams
}

func (r jobRunner) RunJob(ctx context.Context, task job.Task) (job.Outcome, error) {
	hash, err := cas.Parse(task.Hash)
	if err != nil {
		hash = cas.Ref{} // a script that was not stored
	}
	r.upstreams.allTried(ctx, patience)
	outcome, err := r.runner.Run(ctx, script.Request{
		Source: task.Source, Name: task.Name, Hash: hash, Creator: task.Creator, Params: task.Params, Main: true,
		Door: task.Door, Temp: task.Temp, Watch: task.Watch,
		Caller: &tool.Caller{ID: task.Creator, Progress: func(p tool.Progress) { task.Progress(p.Progress, p.Message) }},
	})
	var failure *script.Error
	if errors.As(err, &failure) {
		err = failure.Fault()
	}
	return job.Outcome{Result: outcome.Result, Output: outcome.Output}, err
}
