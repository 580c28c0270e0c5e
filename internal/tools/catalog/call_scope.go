package catalog

import (
	"context"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// CheckVisible refuses calls of tools that do not exist for the caller, with the error
// of a tool that does not exist at all, and of tools that are hidden from everybody,
// with the reason.
func CheckVisible() tool.Step {
	return tool.Step{Name: "visible", ChecksOnly: true, Before: checkVisible}
}

func checkVisible(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	r := i.State.(*run)
	switch c := r.catalog; {
	case !c.canSee(ctx, r.asked) && i.Relayed:
		return ctx, i.Deny("key", fault.New(fault.ToolNotFound, "no tool %q", i.Call.Ref.Name).WithHint("tools/list shows the available tools"))
	case !c.canSee(ctx, r.asked):
		return ctx, i.Deny("key", c.missing(ctx, c.view.Load(), r.asked))
	case r.entry != nil && r.entry.hidden != nil:
		return ctx, i.Deny("trust", r.entry.hidden)
	default:
		return ctx, nil
	}
}

// CheckScope asks the caller's scope whether it admits the call.
func CheckScope() tool.Step { return tool.Step{Name: "scope", ChecksOnly: true, Before: checkScope} }

func checkScope(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	if approved, ok := tool.Approved(ctx); ok && shown(ctx, i.Call.Ref) == approved {
		return ctx, nil // it was counted when it asked
	}
	if scope := tool.ScopeOf(ctx); scope != nil && scope.Admit != nil {
		return ctx, scope.Admit(i.Call.Ref)
	}
	return ctx, nil
}
