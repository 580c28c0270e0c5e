package catalog

import (
	"context"

	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/tool"
)

// DefaultDepth is how deep calls may nest.
const DefaultDepth = 8

type depthKey struct{}

// Depth is how many calls ctx is inside of.
func Depth(ctx context.Context) int {
	depth, _ := ctx.Value(depthKey{}).(int)
	return depth
}

// WithDepth says how many calls ctx is inside of, for a door that learns of it
// from outside.
func WithDepth(ctx context.Context, depth int) context.Context {
	return context.WithValue(ctx, depthKey{}, depth)
}

// nested refuses calls that are too many calls deep: tools that call each other
// in a circle come to an end here.
func nested(limit int) station {
	if limit <= 0 {
		limit = DefaultDepth
	}
	return func(next handler) handler {
		return func(ctx context.Context, e *entry, call tool.Call) (tool.Result, error) {
			depth := Depth(ctx) + 1
			if depth > limit {
				return tool.Result{}, fault.New(fault.Limit, "call %s: calls are nested more than %d deep", call.Ref, limit).
					WithHint("a tool probably calls itself by way of others; break the circle")
			}
			return next(WithDepth(ctx, depth), e, call)
		}
	}
}
