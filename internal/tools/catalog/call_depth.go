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

// metaDepth is the key of a call's _meta that holds its depth. A server that is
// ourselves, or calls us back, passes it on, so that a circle through the network ends
// as well. A caller with a false value can only make its own calls deeper than they
// are.
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

// depthIn is the depth in a caller's _meta, or zero.
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

// LimitDepth refuses calls that are nested too deep, which ends tools that call each
// other in a circle. Relayed requests are not changed, so their depth is not recorded.
func LimitDepth() tool.Step { return tool.Step{Name: "depth", ChecksOnly: true, Before: limitDepth} }

func limitDepth(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	if i.Relayed {
		return ctx, nil
	}
	limit := i.State.(*run).catalog.depth
	above := max(Depth(ctx), depthIn(i.Call.Meta))
	if above >= limit {
		return ctx, fault.New(fault.Limit, "call %s: calls are nested more than %d deep", i.Call.Ref, limit).
			WithHint("a tool probably calls itself through others; break the circle")
	}
	if i.Call.Ref.Space != "" {
		i.Call.Meta = rawjson.Set(i.Call.Meta, metaDepth, strconv.AppendInt(nil, int64(above+1), 10))
	}
	return withDepth(ctx, above+1), nil
}
