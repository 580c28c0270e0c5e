package server

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/govern/policy"
	"github.com/luanette/luanette/internal/scripting/host"
)

// runsScript tells whether one of our tools runs a script: a published one, or code in
// its arguments.
func (c *circles) runsScript(name string) bool {
	return runsCode(name) || c.isScript(name)
}

// runsCode tells whether one of our tools runs the code in its arguments.
func runsCode(name string) bool {
	return slices.Contains([]string{"lua_eval", "execute_code", "lua_preview"}, name)
}

// approvalPolicy is what needs approval: by the settings for scripts, and by policy
// rules.
func (srv *Server) approvalPolicy(c *config.Config) approval.Policy {
	p := c.ApprovalPolicy()
	if s := c.PolicySettings(); s.Approves() {
		p.Also = srv.needsApproval
	}
	return p
}

func (srv *Server) needsApproval(ctx context.Context, e host.Effect) (approval.Demand, bool) {
	ref, isTool := e.Tool()
	if !isTool {
		ref = tool.Ref{Name: e.DisplayName()}
	}
	info, _ := srv.catalog.Find(ctx, ref)
	if isTool && asksItself(&info) {
		return approval.Demand{}, false
	}
	info.Ref = srv.catalog.Real(ctx, ref)
	d := srv.policy.Decide(principal.Of(ctx), &info)
	return approval.Demand{Role: d.By, Count: d.Count}, d.Verdict == policy.Approve
}

// own returns how tools are for the caller alone.
func (srv *Server) own(ctx context.Context) func(*tool.Info) (*tool.Info, bool) {
	return srv.upstreams.Own(ctx)
}

// hides returns which tools a principal may never call; nil: none.
func (srv *Server) hides(who principal.Principal) func(*tool.Info) bool {
	return srv.upstreams.Hides(who, srv.policy.Hides(who))
}
