package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/approval"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/scripting/script"
)

// openApprovals opens the office where people decide what scripts may do.
func (h *House) openApprovals(ctx context.Context) (err error) {
	h.approvals, err = approval.Open(ctx, h.store, approval.Options{
		Policy: h.approvalPolicy(&h.config.Config), Expire: time.Duration(h.config.ApproveExpire), Nodes: h.isShared(), Events: h.bus, Log: h.log,
		OnDecision: func(ctx context.Context, a approval.Approval) {
			h.did(ctx, "approval."+string(a.State), a.Subject, []byte(a.ID))
		},
	})
	return err
}

// policy is what the configuration wants approved.
func (c *Config) policy() approval.Policy {
	p := approval.Policy{Default: approval.Mode(c.Approve), Rules: map[string]approval.Mode{}}
	for name, u := range c.Upstreams {
		if u.Approve != "" {
			p.Rules[name] = approval.Mode(u.Approve)
		}
	}
	for subject, mode := range c.Approvals {
		p.Rules[subject] = approval.Mode(mode)
	}
	return p
}

func (c *Config) checkApprovals() error {
	wrong := func(key, mode string) error {
		return fault.New(fault.Config, "%s: %q is not a way to approve", key, mode).WithHint("use never, writes or all")
	}
	if !approval.Mode(c.Approve).Known() {
		return wrong("approve", c.Approve)
	}
	if c.ApproveExpire <= 0 {
		return fault.New(fault.Config, "approve_expire: a question must stand for some time").WithHint("such as 168h")
	}
	for _, name := range slices.Sorted(mapKeys(c.Upstreams)) {
		if mode := c.Upstreams[name].Approve; mode != "" && !approval.Mode(mode).Known() {
			return wrong("upstreams."+name+".approve", mode)
		}
	}
	for _, subject := range slices.Sorted(mapKeys(c.Approvals)) {
		if strings.Contains(subject, "*") { // which would stand for nothing, unnoticed
			return fault.New(fault.Config, "approvals.%q: names are whole here, without *", subject).WithHint("a namespace stands for all of its tools: %s", strings.TrimRight(subject, ".*"))
		}
		if mode := c.Approvals[subject]; !approval.Mode(mode).Known() {
			return wrong("approvals."+subject, mode)
		}
	}
	return nil
}

// approvalTools are those with which people decide.
func (h *House) approvalTools() []builtin.Tool {
	return builtin.Approvals(h.approvals, h.scripts.sessions)
}

// watchApprovals looks after questions and answers, and goes on with runs that
// were approved in a process that died.
func (h *House) watchApprovals(ctx context.Context) {
	if !h.options.Jobs {
		h.approvals.Watch(ctx, nil)
		return
	}
	h.approvals.Watch(ctx, func(ctx context.Context, a approval.Approval) {
		h.upstreams.allTried(ctx, patience)
		_, err := h.scripts.sessions.Resume(ctx, a.ID, a.RunInfo, a.Resume, script.Request{})
		if err != nil && ctx.Err() == nil {
			h.log.ErrorContext(ctx, "approved script did not go on", "approval", a.ID, "error", err)
		}
	})
}
