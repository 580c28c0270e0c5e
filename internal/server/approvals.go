package server

import (
	"bytes"
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin/approvaltools"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
)

// openApprovals opens the store of approvals, where people decide what scripts may do.
func (srv *Server) openApprovals(ctx context.Context) (err error) {
	o := approval.Options{
		Policy: srv.approvalPolicy(&srv.config.Config), Expire: time.Duration(srv.config.ApproveExpire), Nodes: srv.isShared(), Events: srv.bus, Log: srv.log,
		Audit: srv.audit.RecordAction, Plan: srv.planAgain, Real: srv.catalog.Real,
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

// approveCalls has calls wait for a person's approval where the settings or the policy
// demand it. Scripts have asked before they call.
func (srv *Server) approveCalls() tool.Step {
	return tool.Step{Name: "approval", Before: func(ctx context.Context, i *tool.Invocation) (context.Context, error) {
		if srv.approvals == nil || srv.approvals.Policy().Empty() || asksItself(i.Info) || srv.approved(ctx, i.Info) {
			return ctx, nil
		}
		c := directCall(ctx, i)
		decision, err := srv.approvals.DecideCall(ctx, c.Effect(), c.Hash())
		if err != nil || decision == host.Allow {
			return ctx, err
		}
		if tool.IsForPlan(ctx) {
			return ctx, i.Deny("approval", fault.New(fault.Denied, "%s needs approval itself", c.Ref))
		}
		i.Asked, i.Answered = true, true
		i.Result, i.Err = srv.scripts.runner.CallApproved(ctx, c, i.Call.Caller, func(ctx context.Context) (tool.Result, error) { return srv.catalog.Repeat(ctx, i) })
		if fault.CodeOf(i.Err) == fault.Denied {
			i.Denied = true
		}
		return ctx, i.Err
	}}
}

// directCall describes a call to those who approve it, by the caller's name for the tool.
func directCall(ctx context.Context, i *tool.Invocation) script.DirectCall {
	ref := i.Call.Ref
	if ref.Space != "" {
		ref.Space = principal.Of(ctx).NameOf(ref.Space)
	}
	c := script.DirectCall{Ref: ref, Args: i.Args, Meta: i.Call.Meta, Kind: host.Write}
	switch {
	case i.Info.Hints.ReadOnly:
		c.Kind = host.Read
	case i.Info.Hints.Idempotent:
		c.Kind = host.Idempotent
	}
	if !bytes.Equal(i.Args, i.Call.Args) {
		c.Sent = i.Call.Args
	}
	return c
}

// asksItself reports whether a tool of ours asks for what it leads to, or is needed to
// decide.
func asksItself(info *tool.Info) bool {
	return info.Space == "" && (info.Name == "call_tool" || strings.HasPrefix(info.Name, "approval_") || runsCode(info.Name))
}

// approved reports whether a call was approved: by itself, or as an effect of a script.
func (srv *Server) approved(ctx context.Context, info *tool.Info) bool {
	own := tool.Ref{Space: info.Space, Name: cmp.Or(info.Original, info.Name)}
	is := func(ref tool.Ref) bool {
		ref = srv.catalog.Real(ctx, ref)
		return ref == info.Ref || ref == own
	}
	if ref, ok := tool.Approved(ctx); ok && is(ref) {
		return true
	}
	outer := host.ParentOf(ctx)
	return outer != nil && is(outer.Tool())
}

// approvedResult waits for the decision about a call, and for its end.
func (srv *Server) approvedResult(ctx context.Context, id string) (tool.Result, error) {
	for {
		a, err := srv.approvals.AwaitOutcome(ctx, id)
		if err != nil {
			return tool.Result{}, err
		}
		result, next, err := approvaltools.OutcomeResult(&a)
		if err != nil || next == "" {
			return result, err
		}
		id = next
	}
}

// planAgain makes the plan of a run that waits for approval.
func (srv *Server) planAgain(ctx context.Context, a *approval.Approval) (host.Plan, error) {
	id := a.Job()
	ctx = srv.policy.Detach(ctx) // whoever looks at it has read other things than the run
	switch {
	case id == "":
		return srv.scripts.sessions.Plan(ctx, a.RunInfo, a.Resume)
	case srv.jobs == nil:
		return host.Plan{}, fault.New(fault.Unavailable, "this process has no jobs")
	default:
		return srv.jobs.Plan(ctx, id)
	}
}

// watchApprovals delivers decisions and resumes approved runs of processes that died.
func (srv *Server) watchApprovals(ctx context.Context) {
	if !srv.options.Jobs {
		srv.approvals.Watch(ctx, nil)
		return
	}
	srv.approvals.Watch(ctx, func(ctx context.Context, a approval.Approval) {
		_, err := srv.scripts.sessions.Resume(ctx, a.ID, a.RunInfo, a.Resume, script.Request{})
		if err != nil && ctx.Err() == nil {
			srv.log.ErrorContext(ctx, "approved script not resumed", "approval", a.ID, "error", err)
		}
	})
}
