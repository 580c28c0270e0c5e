package tools

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/module/mcp"
)

// callSource is the script of a job that calls a tool.
const callSource = `function main(call)
  return mcp.call(call.server, call.tool, call.arguments)
end
`

// startCall(server, tool, args?) starts a job that calls a tool, and returns its id.
func startCall(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	if err := checkCall(ctx, w, args); err != nil {
		return nil, err
	}
	arguments, err := args.Table(3)
	if err != nil {
		return nil, err
	}
	if arguments == nil {
		arguments = json.RawMessage("{}")
	}
	ref := host.CalledTool(args)
	params, err := json.Marshal(map[string]any{"server": args.At(1), "tool": args.At(2), "arguments": arguments})
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "%s", args.Func)
	}
	id, err := w.Jobs.Start(ctx, host.NewJob{Name: ref.String(), Source: callSource, Params: params, Tags: []string{"mcp_call"}, Token: w.Token(ctx)})
	return []host.Value{id}, err
}

// checkCall refuses what the job would refuse.
func checkCall(ctx context.Context, w *host.Services, args host.Args) error {
	if w.Jobs == nil {
		return errNoJobs(args)
	}
	return mcp.Check(ctx, w, args)
}

func errNoJobs(args host.Args) error {
	return fault.New(fault.Unavailable, "%s: no jobs run in this process", args.Func).
		WithHint("run the script on a server; within a run, parallel.spawn makes calls concurrently")
}

// result(id) returns the value and the state of a job.
func result(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	id, err := args.String(1)
	if err != nil {
		return nil, err
	}
	if w.Jobs == nil {
		return nil, errNoJobs(args)
	}
	found, err := w.Jobs.Result(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case found.Error != "":
		return []host.Value{found.Error, found.State}, nil
	case len(found.Value) > 0:
		return []host.Value{found.Value, found.State}, nil
	}
	return []host.Value{nil, found.State}, nil
}
