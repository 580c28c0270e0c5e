package server

import (
	"context"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin/jobtools"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/jobs/jobrunner"
	"github.com/luanette/luanette/internal/jobs/musicjob"
	"github.com/luanette/luanette/internal/jobs/webhook"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/observe/telemetry"
)

// openJobs starts the queue of scripts and music. What scripts start, it runs.
func openJobs(ctx context.Context, p *process, s *storage, g *guards, t *tooling) (*job.Queue, error) {
	queue, err := openQueue(ctx, p, jobrunner.Runner{Scripts: t.scripts.runner, Upstreams: t.upstreams, Music: t.localMusic}, job.Options{
		Shares: g.shares, CurrentPrincipal: g.currentPrincipal, Approvals: t.approvals, Tools: t.catalog, Revert: p.revert, Admit: g.orgs.SpendJob, Kept: s.contents,
	})
	if err != nil {
		return nil, err
	}
	p.queue.Store(queue)
	if t.localMusic != nil {
		t.localMusic.SetJobs(musicjob.Queue{Jobs: queue}) // its long tools are jobs, which run in it
	}
	g.shares.Register(principal.Job, queue.SharedJob)
	g.shares.Register(principal.Schedule, queue.SharedSchedule)
	return queue, nil
}

// openQueue starts the queue and resumes jobs that a crash interrupted. One process at a
// time has the queue. Another process on the same data folder, such as a client's own
// `luanette stdio` beside a server, can only read jobs.
func openQueue(ctx context.Context, p *process, runner jobrunner.Runner, o job.Options) (*job.Queue, error) {
	c := p.config.Jobs
	runner.Since, runner.Settled, runner.Limits, runner.Scope = p.started, p.settled, c.Limits(), p.chatScope
	o.Workers, o.Grace, o.LoginWait, o.LoginTopic = c.Workers, graceTimeout, time.Duration(c.LoginWait), oauth.Topic
	o.UpstreamWait = time.Duration(c.UpstreamWait)
	o.KeepComplete, o.KeepFailed, o.KeepCount, o.KeepScheduled = time.Duration(c.KeepComplete), time.Duration(c.KeepFailed), c.KeepCount, c.KeepScheduled
	o.TempDir, o.ReadOnly, o.Node, o.Unlimited = filepath.Join(p.config.Data, "jobs"), !p.options.Jobs, p.jobNode(), musicjob.Is
	o.Traces, o.Tracer, o.Meter, o.Events, o.Log = telemetry.JobTraces{}, p.telemetry.Tracer("job"), p.telemetry.Meter("job"), p.bus, p.log
	queue, err := job.Open(ctx, p.store, runner, o)
	if fault.CodeOf(err) == fault.Conflict {
		p.log.InfoContext(ctx, "jobs run in another process on this data folder")
		o.ReadOnly = true
		queue, err = job.Open(ctx, p.store, runner, o)
	}
	if err == nil {
		p.closeFirst.within("jobs", storeTimeout, func(context.Context) error { return queue.Close() })
	}
	return queue, err
}

// jobTasks shows jobs as MCP tasks; nil if there are no jobs.
func (in *parts) jobTasks() hub.Tasks {
	if in.jobs == nil {
		return nil
	}
	return jobtools.Tasks{Queue: in.jobs, Approvals: in.approvals}
}

// webhookReceiver starts jobs for requests of other services.
func (srv *Server) webhookReceiver() *webhook.Receiver {
	return webhook.New(webhook.Options{
		Queue: srv.jobs, Hooks: srv.webhooks.Hooks, Script: webhook.Scripts{Published: srv.scripts.published, Stored: srv.scripts.store, Describe: srv.scripts.runner.Describe}.Find,
		Client: srv.config.Browsers().Proxies.Client, Audit: srv.audit, Events: srv.bus, Tracer: srv.telemetry.Tracer("webhook"), Log: srv.log,
	})
}
