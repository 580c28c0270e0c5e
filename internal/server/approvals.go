package server

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/access/approval"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/jobs/jobrunner"
	"github.com/luanette/luanette/internal/scripting/script"
)

// openApprovals opens the store of approvals, where people decide what scripts may do.
func (srv *Server) openApprovals(ctx context.Context) (err error) {
	o := approval.Options{
		Policy: srv.approvalPolicy(&srv.config.Config), Expire: time.Duration(srv.config.ApproveExpire), Nodes: srv.isShared(), Events: srv.bus, Log: srv.log,
		Audit: srv.auditAdmin,
		Alone: func(ctx context.Context) bool {
			used, err := srv.keys.HasKeys(ctx)
			return err == nil && !used && srv.tokens == nil
		},
	}
	if srv.people != nil {
		o.People = srv.people.Store
	}
	if o.Webhook, err = srv.config.ApprovalWebhook(srv.secrets, srv.outbound().Client()); err != nil {
		return err
	}
	if o.Mail, err = srv.config.ApprovalMail(srv.secrets); err != nil {
		return err
	}
	srv.approvals, err = approval.Open(ctx, srv.store, o)
	return err
}

// approvalTools are the tools for those decisions.
func (srv *Server) approvalTools() []builtin.Tool {
	return builtin.Approvals(srv.approvals, srv.scripts.sessions)
}

// watchApprovals delivers decisions and resumes approved runs of processes that died.
func (srv *Server) watchApprovals(ctx context.Context) {
	if !srv.options.Jobs {
		srv.approvals.Watch(ctx, nil)
		return
	}
	srv.approvals.Watch(ctx, func(ctx context.Context, a approval.Approval) {
		srv.upstreams.AwaitAttempts(ctx, jobrunner.UpstreamWait)
		_, err := srv.scripts.sessions.Resume(ctx, a.ID, a.RunInfo, a.Resume, script.Request{})
		if err != nil && ctx.Err() == nil {
			srv.log.ErrorContext(ctx, "approved script not resumed", "approval", a.ID, "error", err)
		}
	})
}
