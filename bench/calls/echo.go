package calls

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// Echo serves a tool that says the same, in both eras.
func Echo() http.Handler {
	return hub.New(hub.Options{Name: "echo", Version: "1", Tools: &echo{[]tool.Info{
		{Ref: tool.Ref{Name: "echo"}, Description: "Says the same", Input: json.RawMessage(`{"type":"object"}`)},
	}}}).Handler()
}

type echo struct{ infos []tool.Info }

func (e *echo) Tools(context.Context) ([]tool.Info, error) { return e.infos, nil }

func (e *echo) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"hello"}],"structuredContent":` + string(call.Args) + `}`)}, nil
}
