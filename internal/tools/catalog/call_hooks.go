package catalog

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// Hooks see and change calls of tools that have a namespace. They do not see calls of
// our own tools, but the calls that those make.
type Hooks interface {
	// ToolCall sees a call before it is made. It may return other arguments, a
	// result in place of the tool's, or an error that refuses the call.
	ToolCall(ctx context.Context, call tool.Call) (args json.RawMessage, answer *tool.Result, err error)
	// ToolResult sees how it ended and returns what the caller gets.
	ToolResult(ctx context.Context, call tool.Call, result tool.Result, failed error) (tool.Result, error)
}

// SetHooks sets the hooks that run from now on; nil sets none.
func (c *Catalog) SetHooks(hooks Hooks) {
	if hooks == nil {
		c.hooks.Store(nil)
		return
	}
	c.hooks.Store(&hooks)
}

// RunHooks runs the owner's hooks before and after. Arguments that a hook changed are
// checked like the caller's own.
func RunHooks() tool.Step {
	return tool.Step{Name: "hooks", Before: beforeHooks, After: afterHooks}
}

func beforeHooks(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	r := i.State.(*run)
	hooks := r.catalog.hooks.Load()
	if hooks == nil || i.Call.Ref.Space == "" {
		return ctx, nil
	}
	args, answer, err := (*hooks).ToolCall(ctx, i.Call)
	if err != nil {
		return ctx, err
	}
	if answer != nil {
		i.Result, i.Answered = *answer, true
		return ctx, nil
	}
	if i.Relayed && len(args) > 0 {
		i.Params = rawjson.Set(i.Params, "arguments", args)
	}
	r.hooks, i.Call.Args, i.Call.Task = *hooks, args, nil // the hooks see the result, not a task
	return ctx, nil
}

func afterHooks(ctx context.Context, i *tool.Invocation) {
	if hooks := i.State.(*run).hooks; hooks != nil && !i.Asked {
		i.Result, i.Err = hooks.ToolResult(ctx, i.Call, i.Result, i.Err)
	}
}
