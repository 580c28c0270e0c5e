package calls

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// Echo is a server of a tool that returns its arguments, in both eras.
func Echo() *hub.Hub {
	return hub.New(hub.Options{Name: "echo", Version: "1", Tools: &echo{[]tool.Info{
		{Ref: tool.Ref{Name: "echo"}, Description: "Returns its arguments", Input: json.RawMessage(`{"type":"object"}`)},
	}}})
}

type echo struct{ infos []tool.Info }

func (e *echo) Tools(context.Context) ([]tool.Info, error) { return e.infos, nil }

func (e *echo) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"hello"}],"structuredContent":` + string(call.Args) + `}`)}, nil
}
