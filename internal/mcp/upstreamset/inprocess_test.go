package upstreamset_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// oneTool is a source in this process.
type oneTool struct{}

func (oneTool) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Space: "here", Name: "say"}, Raw: json.RawMessage(`{"name":"say"}`)}}, nil
}

func (oneTool) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Output("said by "+call.Ref.String(), nil)
}

// A namespace of this process is listed and served like an upstream, until an upstream
// takes its name.
func TestInProcess(t *testing.T) {
	t.Parallel()
	f := openAlone(t)
	f.AddInProcess("here", oneTool{})
	s, ok := f.Status("here")
	if list := f.List(); !ok || len(list) != 1 || list[0].Namespace != "here" || s.State != "connected" || s.Tools != 1 || s.Transport != upstreamset.TransportInProcess {
		t.Errorf("listed as %+v", list)
	}
	peer, ok := f.Relayed(t.Context(), "here")
	if !ok {
		t.Fatal("it is not served")
	}
	if result, err := peer.Request(t.Context(), wire.MethodToolsList, nil, nil); err != nil || string(result) != `{"tools":[{"name":"say"}]}` {
		t.Errorf("tools/list: %s, %v", result, err)
	}
	if result, err := peer.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: "say"}}, nil); err != nil || !strings.Contains(string(result.Raw), "said by here.say") {
		t.Errorf("tools/call: %s, %v", result.Raw, err)
	}
	if _, err := peer.Request(t.Context(), wire.MethodPromptsList, nil, nil); err == nil {
		t.Error("it has prompts")
	}
	if _, known := peer.Find(t.Context(), "say"); !known {
		t.Error("say is not found")
	}
	if tools, err := f.Refresh(t.Context(), "here"); err != nil || len(tools) != 1 {
		t.Errorf("refreshed %v, %v", tools, err)
	}
	if removed, err := f.Remove(t.Context(), "here"); removed || fault.CodeOf(err) != fault.Conflict || fault.HintOf(err) == "" {
		t.Errorf("removed %t, %v", removed, err)
	}
	if err := f.Configure([]upstream.Spec{{Name: "here", Settings: upstream.Settings{URL: "http://127.0.0.1:1"}, Trusted: true}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if s, _ := f.Status("here"); s.Transport == upstreamset.TransportInProcess || len(f.List()) != 1 {
		t.Errorf("with an upstream of that name it is %+v", s)
	}
}
