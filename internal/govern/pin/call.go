package pin

import (
	"context"

	"github.com/luanette/luanette/internal/core/tool"
)

// CheckCalls refuses calls of upstream tools whose definition is not approved. original
// is the upstream's name of a tool that was not listed yet, which may be called by an
// alias.
func (g *Guard) CheckCalls(original func(context.Context, tool.Ref) (string, error)) tool.Step {
	return tool.Step{Name: "pins", ChecksOnly: true, Before: func(ctx context.Context, i *tool.Invocation) (context.Context, error) {
		ref := i.Call.Ref
		switch {
		case ref.Space == "":
			return ctx, nil
		case i.Relayed: // it has the upstream's name
		case i.Info.Original != "":
			ref.Name = i.Info.Original
		case i.Info.Input == nil:
			name, err := original(ctx, ref)
			if err != nil {
				return ctx, err
			}
			ref.Name = name
		}
		if err := g.CheckCall(ctx, ref); err != nil {
			return ctx, i.Deny("trust", err)
		}
		return ctx, nil
	}}
}
