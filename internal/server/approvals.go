package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin/approvaltools"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/govern/policy"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/delivery"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// approver has calls wait for a person's approval.
type approver struct {
	policy  *policy.Policy
	circles *circles
	// The following use it, and are set when they exist.
	catalog   *catalog.Catalog
	approvals *approval.Store
	scripts   *scripts
}

// openApprovals opens the store of approvals, where people decide what scripts may do.
func openApprovals(ctx context.Context, p *process, g *guards, deliveries *delivery.Store, asks *approver) (store *approval.Store, err error) {
	o := approval.Options{
		Policy: asks.policyOf(&p.config.Config), Expire: time.Duration(p.config.ApproveExpire), Nodes: p.isShared(), Events: p.bus, Log: p.log,
		Webhook: p.config.ApproveWebhook, Deliveries: deliveries,
		Audit: g.audit.RecordAction, Plan: asks.planAgain, Real: asks.catalog.Real,
		Alone: func(ctx context.Context) bool {
			used, err := g.keys.HasKeys(ctx)
			return err == nil && !used && g.tokens == nil
		},
	}
	if g.people != nil {
		o.People = g.people.Store
	}
	key, err := p.secrets.Find(p.config.ApproveSecret)
	if err == nil && o.Webhook != "" {
		_, err = delivery.KeyOf(key)
	}
	if err != nil && o.Webhook != "" {
		return nil, fault.Wrap(fault.Config, err, "approve_webhook_secret").WithHint("%s", fault.HintOf(err))
	}
	if o.Mail, err = p.config.ApprovalMail(p.secrets); err != nil {
		return nil, err
	}
	if store, err = approval.Open(ctx, p.store, o); err == nil {
		p.closeFirst.plain("approvals", store.Close)
		deliveries.Register(approval.Notices, delivery.Channel{Client: p.outbound().Client(), Secret: key, Wanted: store.NoticeWanted})
	}
	return store, err
}

// policyOf is what needs approval: by the settings for scripts, and by policy rules.
func (a *approver) policyOf(c *config.Config) approval.Policy {
	p := c.ApprovalPolicy()
	if s := c.PolicySettings(); s.Approves() {
		p.Also = a.needsApproval
	}
	return p
}

func (a *approver) needsApproval(ctx context.Context, e host.Effect) (approval.Demand, bool) {
	ref, isTool := e.Tool()
	if !isTool {
		ref = tool.Ref{Name: e.DisplayName()}
	}
	info, _ := a.catalog.Find(ctx, ref)
	if isTool && asksItself(&info) {
		return approval.Demand{}, false
	}
	info.Ref = a.catalog.Real(ctx, ref)
	d := a.policy.Decide(principal.Of(ctx), &info)
	return approval.Demand{Role: d.By, Count: d.Count}, d.Verdict == policy.Approve
}

// approveCalls has calls wait for a person's approval where the settings or the policy
// demand it. Scripts have asked before they call.
func (a *approver) approveCalls() tool.Step {
	return tool.Step{Name: "approval", Before: func(ctx context.Context, i *tool.Invocation) (context.Context, error) {
		if a.approvals == nil || a.approvals.Policy().Empty() || asksItself(i.Info) || a.approved(ctx, i.Info) {
			return ctx, nil
		}
		c := directCall(ctx, i)
		decision, err := a.approvals.DecideCall(ctx, c.Effect(), c.Hash())
		if err != nil || decision == host.Allow {
			return ctx, err
		}
		if i.Call.Kind != "" {
			return ctx, i.Deny("approval", fault.New(fault.Denied, "%s needs approval, for which only calls of tools can wait", c.Ref).
				WithHint("allow it by a rule of the policy: docs/policy.md"))
		}
		if tool.IsForPlan(ctx) {
			return ctx, i.Deny("approval", fault.New(fault.Denied, "%s needs approval itself", c.Ref))
		}
		i.Asked, i.Answered = true, true
		i.Result, i.Err = a.scripts.runner.CallApproved(ctx, c, i.Call.Caller, func(ctx context.Context) (tool.Result, error) { return a.catalog.Repeat(ctx, i) })
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
	c := script.DirectCall{Ref: ref, Args: asStored(i.Args), Meta: i.Call.Meta, Kind: host.Write}
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

// asStored is JSON as a request for approval is stored with: the call that is made after the
// decision is the one that was decided about by these bytes, however the client wrote them.
func asStored(args json.RawMessage) json.RawMessage {
	if stored, err := json.Marshal(args); err == nil && len(args) > 0 {
		return stored
	}
	return args
}

// asksItself reports whether a tool of ours asks for what it leads to, or is needed to
// decide.
func asksItself(info *tool.Info) bool {
	return info.Ref.IsRelay() || info.Space == "" && (strings.HasPrefix(info.Name, "approval_") || runsCode(info.Name))
}

// approved reports whether a call was approved: by itself, or as an effect of a script.
func (a *approver) approved(ctx context.Context, info *tool.Info) bool {
	own := tool.Ref{Space: info.Space, Name: cmp.Or(info.Original, info.Name)}
	is := func(ref tool.Ref) bool {
		ref = a.catalog.Real(ctx, ref)
		return ref == info.Ref || ref == own
	}
	if ref, ok := tool.Approved(ctx); ok && is(ref) {
		return true
	}
	outer := host.ParentOf(ctx)
	return outer != nil && is(outer.Tool())
}

// runsCode tells whether one of our tools runs the code in its arguments.
func runsCode(name string) bool {
	return slices.Contains([]string{"lua_eval", "execute_code", "lua_preview"}, name)
}

// approvedResult waits for the decision about a call, and for its end.
func (in *parts) approvedResult(ctx context.Context, id string) (tool.Result, error) {
	for {
		a, err := in.approvals.AwaitOutcome(ctx, id)
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
func (a *approver) planAgain(ctx context.Context, of *approval.Approval) (host.Plan, error) {
	id := of.Job()
	queue := a.circles.queue.Load()
	ctx = a.policy.Detach(ctx) // whoever looks at it has read other things than the run
	switch {
	case id == "":
		return a.scripts.sessions.Plan(ctx, of.RunInfo, of.Resume)
	case queue == nil:
		return host.Plan{}, fault.New(fault.Unavailable, "this process has no jobs")
	default:
		return queue.Plan(ctx, id)
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
