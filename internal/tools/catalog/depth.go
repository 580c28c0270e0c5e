package catalog

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// DefaultDepth is how deep calls may nest.
const DefaultDepth = 8

// metaDepth is the key of a call's _meta that tells others how deep it is: a
// server that is ourselves, or leads back to us, hands it on, so that a circle
// through the network ends as well. A caller that lies about it can only make
// its own calls deeper than they are.
const metaDepth = "luanette/depth"

type depthKey struct{}

// Depth is how many calls ctx is inside of.
func Depth(ctx context.Context) int {
	depth, _ := ctx.Value(depthKey{}).(int)
	return depth
}

func withDepth(ctx context.Context, depth int) context.Context {
	return context.WithValue(ctx, depthKey{}, depth)
}

// depthIn is the depth a caller's _meta tells, or zero.
func depthIn(meta json.RawMessage) int {
	raw, ok := rawjson.Get(meta, metaDepth)
	if !ok {
		return 0
	}
	depth, err := strconv.Atoi(string(raw))
	if err != nil {
		return 0
	}
	return depth
}

// nested refuses calls that are too many calls deep: tools that call each other
// in a circle come to an end here.
func nested(limit int) station {
	if limit <= 0 {
		limit = DefaultDepth
	}
	return func(next handler) handler {
		return func(ctx context.Context, e *entry, call tool.Call) (tool.Result, error) {
			above := max(Depth(ctx), depthIn(call.Meta))
			if above >= limit {
				return tool.Result{}, fault.New(fault.Limit, "call %s: calls are nested more than %d deep", call.Ref, limit).
					WithHint("a tool probably calls itself by way of others; break the circle")
			}
			if call.Ref.Space != "" {
				call.Meta = rawjson.Set(call.Meta, metaDepth, strconv.AppendInt(nil, int64(above+1), 10))
			}
			return next(withDepth(ctx, above+1), e, call)
		}
	}
}
