package catalog

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/core/tool"
)

// Hooks have a say in calls of the tools of namespaces. Our own tools are not
// shown to them: what they call is.
type Hooks interface {
	// ToolCall sees a call before it is made. It may return other arguments, an
	// answer in the tool's place, or an error that refuses the call.
	ToolCall(ctx context.Context, call tool.Call) (args json.RawMessage, answer *tool.Result, err error)
	// ToolResult sees how it ended and returns what the caller gets.
	ToolResult(ctx context.Context, call tool.Call, result tool.Result, failed error) (tool.Result, error)
}

// SetHooks has hooks asked from now on; nil asks nobody, which costs nothing.
func (c *Catalog) SetHooks(hooks Hooks) {
	if hooks == nil {
		c.hooks.Store(nil)
		return
	}
	c.hooks.Store(&hooks)
}

// hooked asks the hooks before and after. Arguments they changed are checked like
// the caller's own.
func (c *Catalog) hooked(next handler) handler {
	return func(ctx context.Context, e *entry, call tool.Call) (tool.Result, error) {
		hooks := c.hooks.Load()
		if hooks == nil || call.Ref.Space == "" {
			return next(ctx, e, call)
		}
		args, answer, err := (*hooks).ToolCall(ctx, call)
		if err != nil {
			return tool.Result{}, err
		}
		if answer != nil {
			return *answer, nil
		}
		call.Args = args
		result, err := next(ctx, e, call)
		return (*hooks).ToolResult(ctx, call, result, err)
	}
}
