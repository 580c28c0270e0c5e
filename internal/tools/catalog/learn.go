package catalog

import (
	"context"

	"github.com/luanette/luanette/internal/core/tool"
)

// Learner learns what results look like.
type Learner interface {
	// Learn takes in what a tool answered. It must not block.
	Learn(info *tool.Info, result tool.Result)
}

// learned shows a learner what others' tools answer, where they have no output
// schema.
func learned(l Learner) station {
	return func(next handler) handler {
		if l == nil {
			return next
		}
		return func(ctx context.Context, e *entry, call tool.Call) (tool.Result, error) {
			result, err := next(ctx, e, call)
			if err == nil && e.info.Output == nil && e.info.Space != "" {
				l.Learn(&e.info, result)
			}
			return result, err
		}
	}
}
