package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// disconnected is a source with a namespace whose tools are not known.
type disconnected struct{}

func (disconnected) Tools(context.Context) ([]tool.Info, error) { return nil, nil }

func (disconnected) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Result{}, fault.New(fault.Unavailable, "%s is disconnected", call.Ref.Space)
}

func (disconnected) Find(context.Context, tool.Ref) (tool.Info, bool) { return tool.Info{}, false }

func (disconnected) In(_ context.Context, namespace string) ([]tool.Info, bool) {
	return nil, namespace == "down"
}

// TestFunctionsAreReserved checks that no namespace hides a function of the module.
func TestFunctionsAreReserved(t *testing.T) {
	t.Parallel()
	var names []string
	for _, f := range Module().Funcs {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, tool.ScriptFunctions) {
		t.Errorf("the functions are %v, reserved are %v", names, tool.ScriptFunctions)
	}
}

func TestToolsOfADisconnectedServerCanBeCalled(t *testing.T) {
	t.Parallel()
	w := &host.Services{Tools: disconnected{}}
	for _, c := range []struct {
		args []host.Value
		want bool
	}{
		{[]host.Value{"down"}, true}, {[]host.Value{"down", "any"}, true}, {[]host.Value{"other"}, false}, {[]host.Value{"other", "any"}, false}, {[]host.Value{"", "any"}, false},
	} {
		values, err := has(t.Context(), w, host.Args{Func: "has", Values: c.args})
		if err != nil || values[0] != c.want {
			t.Errorf("has%v = %v, %v, want %t", c.args, values, err, c.want)
		}
	}
	if _, err := call(t.Context(), w, host.Args{Func: "call", Values: []host.Value{"down", "any"}}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("call: %v", err)
	}
}

// writing is a source with a tool that writes.
type writing struct{ disconnected }

func (writing) Check(ctx context.Context, call tool.Call) error {
	if tool.IsOnlyReading(ctx) && call.Ref.Name == "pay" {
		return fault.New(fault.Denied, "pay may change something")
	}
	return nil
}

// TestOnlyReadingIsChecked checks that a plan refuses what call_tool_read would refuse.
func TestOnlyReadingIsChecked(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{tool.CallTool: false, tool.CallToolRead: true} {
		args := host.Args{Func: "call", Values: []host.Value{"", name, json.RawMessage(`{"name":"bank.pay","arguments":{}}`)}}
		if err := Check(t.Context(), &host.Services{Tools: writing{}}, args); (err != nil) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
