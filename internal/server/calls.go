package server

import (
	"slices"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/policy"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// callSteps are what every tool call passes, in this order, wherever it comes from:
// /mcp, /mcp/NAME, scripts, jobs, chat and the command line.
func callSteps(s *storage, g *guards, src *sources, tools *overlay.Source) []tool.Step {
	return []tool.Step{
		catalog.LimitDepth(),                    // tools that call each other in a circle end
		catalog.Observe(),                       // span, events, statistics
		g.audit.RecordCalls(),                   // an entry per call, refused ones too
		catalog.CheckVisible(),                  // the tool exists for the caller
		catalog.CheckScope(),                    // the caller's scope admits the call
		src.pins.CheckCalls(tools.OriginalName), // the tool's definition is approved
		g.keys.CheckCalls(),                     // the caller's key is still valid
		g.policy.CheckCalls(),                   // policy rules and labels
		tools.CheckCalls(),                      // startup.lua does not hide the tool
		catalog.RunHooks(tools.OriginalName),    // hooks of startup.lua
		s.results.LearnCalls(),                  // shapes of results without a schema
		src.links.NoteCalls(),                   // resources that results name
		s.usage.LearnCalls(),                    // words of searches that led to the call
		catalog.CheckArguments(),                // arguments match the tool's schema
		src.approver.approveCalls(),             // a person has approved it, if need be
		g.quota.LimitCalls(),                    // calls of the principal
		catalog.LimitNamespace(),                // calls of the namespace, circuit breaker
	}
}

// reserved are our own tools that change what applies to all users: the upstreams, and
// what scripts may do.
var reserved = []string{"mcp_connect", "mcp_disconnect", "approval_decide", "approval_forget"}

// isReserved tells which tools only administrators see. Those who manage an organisation
// connect upstreams of it. Where policy rules name roles, others decide too, and the store of
// approvals checks who.
func isReserved(rules *policy.Policy, who principal.Principal, ref tool.Ref) bool {
	switch {
	case ref.Space != "" || !slices.Contains(reserved, ref.Name):
		return false
	case who.IsGuest():
		return false // the tools of approvals refuse guests with the reason
	case ref.Name == "mcp_connect" || ref.Name == "mcp_disconnect":
		return !who.ManagesOrg()
	}
	return ref.Name != "approval_decide" || !rules.Settings().NamesRoles()
}
