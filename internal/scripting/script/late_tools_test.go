package script

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// lateTools are the tools of a server that is starting: none is known before listed is set.
type lateTools struct{ listed atomic.Bool }

func (l *lateTools) Tools(context.Context) ([]tool.Info, error) {
	if !l.listed.Load() {
		return nil, nil
	}
	return []tool.Info{{Ref: tool.Ref{Space: "late", Name: "sum"}, Hints: tool.Hints{ReadOnly: true}}}, nil
}

func (*lateTools) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Output("3", nil) }

func (l *lateTools) Find(ctx context.Context, ref tool.Ref) (tool.Info, bool) {
	list, _ := l.Tools(ctx)
	if len(list) == 0 || list[0].Ref != ref {
		return tool.Info{}, false
	}
	return list[0], true
}

func (l *lateTools) In(ctx context.Context, namespace string) ([]tool.Info, bool) {
	list, _ := l.Tools(ctx)
	return list, namespace == "late"
}

// kindRecorder records of which kinds the calls of tools are.
type kindRecorder struct{ of []host.Kind }

func (k *kindRecorder) Handle(ctx context.Context, e host.Effect, live func(context.Context) ([]host.Value, error)) ([]host.Value, error) {
	if e.Name == "mcp.call" {
		k.of = append(k.of, e.Kind)
	}
	return live(ctx)
}

// A run that may wait for a server knows what its tool is before it decides about the call:
// one that only reads needs no approval.
func TestCallsAreClassifiedWhenTheirToolsAreKnown(t *testing.T) {
	t.Parallel()
	for _, language := range []string{Lua, JavaScript} {
		source := "return mcp.late.sum{}"
		if language == JavaScript {
			source = "return await mcp.late.sum({})"
		}
		for _, waits := range []bool{true, false} {
			late, seen, want := &lateTools{}, &kindRecorder{}, host.Write
			r := newRunner(t, func(o *Options) { o.Tools = late })
			q := Request{Source: source, Language: language, Handler: seen}
			if waits {
				want = host.Read
				q.AwaitTools = func(_ context.Context, namespace string) { late.listed.Store(namespace == "late") }
			}
			if _, err := r.Run(t.Context(), q); err != nil || len(seen.of) != 1 || seen.of[0] != want {
				t.Errorf("%s, waits %v: the call is of kind %v, want %v; %v", language, waits, seen.of, want, err)
			}
		}
	}
}
