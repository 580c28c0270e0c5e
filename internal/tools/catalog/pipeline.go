package catalog

import (
	"context"
	"runtime/debug"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// handler carries a call of one tool. It is tool.Source's Call with the tool
// looked up already.
type handler func(ctx context.Context, e *entry, call tool.Call) (tool.Result, error)

// station is a handler that does its part and leaves the rest to next.
type station func(next handler) handler

// chain puts stations before last; the first one listed is passed first.
func chain(last handler, stations ...station) handler {
	h := last
	for i := len(stations) - 1; i >= 0; i-- {
		h = stations[i](h)
	}
	return h
}

// last is the end of the chain: the call goes to the tool's source.
func (c *Catalog) last(ctx context.Context, e *entry, call tool.Call) (tool.Result, error) {
	return c.limited(ctx, e.state, call, e.source.Call)
}

// deliver hands the call over. A source that panics has made a mistake of its own,
// which must not take the house down.
func (c *Catalog) deliver(ctx context.Context, call tool.Call, through Through) (result tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.ErrorContext(ctx, "tool panicked", "tool", call.Ref.String(), "panic", p, "stack", string(debug.Stack()))
			result, err = tool.Result{}, fault.New(fault.Internal, "call %s: the tool broke off: %v", call.Ref, p)
		}
	}()
	return through(ctx, call)
}
