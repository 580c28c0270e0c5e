// Package scripttest has stand-ins for what scripts use, for tests.
package scripttest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// Toolbox is a source of tools written as Go functions in the tests.
type Toolbox map[tool.Ref]Handler

// Handler returns the structured content of a call.
type Handler func(ctx context.Context, args json.RawMessage) (any, error)

func (b Toolbox) Tools(context.Context) ([]tool.Info, error) {
	var infos []tool.Info
	for ref := range b {
		infos = append(infos, tool.Info{Ref: ref, Description: "stand-in", Input: json.RawMessage(`{"type":"object"}`)})
	}
	slices.SortFunc(infos, func(x, y tool.Info) int {
		return cmp.Or(cmp.Compare(x.Space, y.Space), cmp.Compare(x.Name, y.Name))
	})
	return infos, nil
}

func (b Toolbox) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
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

// HandlerFor makes a Handler from a function with typed arguments.
func HandlerFor[In any](run func(ctx context.Context, in In) (any, error)) Handler {
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

// Calc is a source with calc.double and calc.fail.
type Calc struct{}

func (Calc) Tools(context.Context) ([]tool.Info, error) {
	info := func(name string) tool.Info {
		return tool.Info{Ref: tool.Ref{Space: "calc", Name: name}, Input: json.RawMessage(`{"type":"object"}`)}
	}
	return []tool.Info{info("double"), info("fail")}, nil
}

func (Calc) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	if call.Ref.Name == "fail" {
		return tool.Failure(errors.New("the abacus is broken")), nil
	}
	var in struct{ N int64 }
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return tool.Result{}, err
	}
	return tool.Output("done", map[string]any{"n": 2 * in.N, "list": []int{}})
}

// Upstreams is a fake host.Upstreams.
type Upstreams struct {
	mu    sync.Mutex
	Known []host.UpstreamStatus
}

func (l *Upstreams) Add(_ context.Context, name, url string) error {
	if !strings.HasPrefix(url, "http") {
		return fault.New(fault.Denied, "add %s: %q is no URL", name, url).WithHint("scripts add servers by http or https only")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Known = append(l.Known, host.UpstreamStatus{Name: name, State: "connecting", Endpoint: url})
	slices.SortFunc(l.Known, func(a, b host.UpstreamStatus) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func (l *Upstreams) Remove(_ context.Context, name string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.Known)
	l.Known = slices.DeleteFunc(l.Known, func(s host.UpstreamStatus) bool { return s.Name == name })
	return len(l.Known) < before, nil
}

func (l *Upstreams) Status(name string) (host.UpstreamStatus, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.Known, func(s host.UpstreamStatus) bool { return s.Name == name })
	if i < 0 {
		return host.UpstreamStatus{}, false
	}
	return l.Known[i], true
}

func (*Upstreams) Check(context.Context, string, string) error { return nil }

func (l *Upstreams) List() []host.UpstreamStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.Known)
}
