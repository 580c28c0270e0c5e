package policy

import (
	"context"

	"github.com/luanette/luanette/internal/core/tool"
)

// CheckCalls refuses calls that the policy does not allow to the caller, and follows
// the labels of what calls read.
func (p *Policy) CheckCalls() tool.Step {
	return tool.Step{Name: "policy", ChecksOnly: true, Before: func(ctx context.Context, i *tool.Invocation) (context.Context, error) {
		ctx, decision, err := p.Admit(ctx, i.Info, i.Call)
		i.Rule, i.Denied = decision.Rule, err != nil
		return ctx, err
	}}
}
