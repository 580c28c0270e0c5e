package server

import (
	"context"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin/jobtools"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/jobs/jobrunner"
	"github.com/luanette/luanette/internal/jobs/musicjob"
	"github.com/luanette/luanette/internal/jobs/webhook"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/scripting/script"
)

// openJobs starts the queue and resumes jobs that a crash interrupted. One process at a
// time has the queue. Another process on the same data folder, such as a client's own
// `luanette stdio` beside a server, can only read jobs.
func (srv *Server) openJobs(ctx context.Context) error {
	options := job.Options{
		Workers: srv.config.Jobs.Workers, KeepComplete: time.Duration(srv.config.Jobs.KeepComplete), KeepFailed: time.Duration(srv.config.Jobs.KeepFailed),
		KeepCount: srv.config.Jobs.KeepCount, KeepScheduled: srv.config.Jobs.KeepScheduled,
		LoginWait: time.Duration(srv.config.Jobs.LoginWait), LoginTopic: oauth.Topic,
		Grace: graceTimeout, TempDir: filepath.Join(srv.config.Data, "jobs"),
		Shares: srv.shares, CurrentPrincipal: srv.currentPrincipal(&srv.webhooks), ReadOnly: !srv.options.Jobs, Traces: telemetry.JobTraces{}, Tracer: srv.telemetry.Tracer("job"), Meter: srv.telemetry.Meter("job"), Node: srv.jobNode(), Unlimited: musicjob.Is, Events: srv.bus, Log: srv.log,
	}
	if srv.approvals != nil { // the music backend needs no approvals
		options.Approvals, options.Tools, options.Revert, options.Admit = srv.approvals, srv.catalog, srv.revert, srv.orgs.SpendJob
	}
	runner := jobrunner.Runner{Upstreams: srv.upstreams, Music: srv.localMusic, Since: srv.started, Settled: srv.startupDone, Limits: srv.config.Jobs.Limits(), Scope: srv.chatScope}
	if srv.scripts != nil { // nil in a server with music only
		runner.Scripts = srv.scripts.runner
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
	srv.closeFirst.add(queue.Close)
	srv.shares.Register(principal.Job, queue.SharedJob)
	srv.shares.Register(principal.Schedule, queue.SharedSchedule)
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
	return jobtools.Tasks{Queue: srv.jobs, Approvals: srv.approvals}
}

// setWebhooks applies the hooks of a configuration.
func (srv *Server) setWebhooks(ctx context.Context, config *config.Loaded) {
	hooks, problems := config.Webhooks(srv.secrets)
	for _, problem := range problems {
		srv.log.ErrorContext(ctx, "webhook cannot be used", "error", problem)
	}
	srv.webhooks.Set(hooks)
}

// webhookReceiver starts jobs for requests of other services.
func (srv *Server) webhookReceiver() *webhook.Receiver {
	return webhook.New(webhook.Options{
		Queue: srv.jobs, Hooks: srv.webhooks.Hooks, Script: webhook.Scripts{Published: srv.scripts.published, Stored: srv.scripts.store}.Find,
		Client: srv.config.Browsers().Proxies.Client, Audit: srv.audit, Events: srv.bus, Tracer: srv.telemetry.Tracer("webhook"), Log: srv.log,
	})
}

// revert returns how the configuration in effect says that a tool is undone.
func (srv *Server) revert(ref tool.Ref) (tool.Revert, bool) { return srv.current().Revert(ref) }
