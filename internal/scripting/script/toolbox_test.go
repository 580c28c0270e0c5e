package script

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// toolbox is a source of tools written as Go functions in the tests.
type toolbox map[tool.Ref]handler

// handler returns the structured content of a call.
type handler func(ctx context.Context, args json.RawMessage) (any, error)

func (b toolbox) Tools(context.Context) ([]tool.Info, error) {
	var infos []tool.Info
	for ref := range b {
		infos = append(infos, tool.Info{Ref: ref, Description: "stand-in", Input: json.RawMessage(`{"type":"object"}`)})
	}
	slices.SortFunc(infos, func(x, y tool.Info) int {
		return cmp.Or(cmp.Compare(x.Space, y.Space), cmp.Compare(x.Name, y.Name))
	})
	return infos, nil
}

func (b toolbox) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	run, ok := b[call.Ref]
	if !ok {
		return tool.Result{}, fault.New(fault.ToolNotFound, "no tool %s", call.Ref)
	}
	answer, err := run(ctx, call.Args)
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if err != nil {
		return tool.Failure(err), nil
	}
	return tool.Output("done", answer)
}

// handlerFor makes a handler from a function with typed arguments.
func handlerFor[In any](run func(ctx context.Context, in In) (any, error)) handler {
	return func(ctx context.Context, args json.RawMessage) (any, error) {
		var in In
		if len(args) > 0 {
			if err := json.Unmarshal(args, &in); err != nil {
				return nil, err
			}
		}
		return run(ctx, in)
	}
}
