package catalog_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// hookFuncs are hooks written as functions.
type hookFuncs struct {
	before func(tool.HookedCall) (json.RawMessage, *tool.Result, error)
	after  func(tool.HookedCall, tool.Result, error) (tool.Result, error)
}

func (m hookFuncs) ToolCall(_ context.Context, call tool.HookedCall) (json.RawMessage, *tool.Result, error) {
	return m.before(call)
}

func (m hookFuncs) ToolResult(_ context.Context, call tool.HookedCall, r tool.Result, err error) (tool.Result, error) {
	return m.after(call, r, err)
}

func TestHooks(t *testing.T) {
	t.Parallel()
	source := newMemory().with("a", "x", `{"type":"object","properties":{"n":{"type":"integer"}}}`, nil).with("", "own", "", nil)
	c := catalog.New(catalog.Options{Sources: []tool.Source{source}})
	saw := ""
	c.SetHooks(hookFuncs{
		before: func(call tool.HookedCall) (json.RawMessage, *tool.Result, error) {
			switch string(call.Args) {
			case `{"n":1}`:
				return json.RawMessage(`{"n":2}`), nil, nil
			case `{"n":3}`:
				return json.RawMessage(`{"n":"three"}`), nil, nil
			case `{"n":4}`:
				own, _ := tool.Output("mine", nil)
				return nil, &own, nil
			case `{"n":5}`:
				return nil, nil, fault.New(fault.Denied, "not that")
			}
			return call.Args, nil, nil
		},
		after: func(call tool.HookedCall, r tool.Result, err error) (tool.Result, error) {
			saw = string(call.Args)
			if string(call.Args) == `{"n":6}` {
				return tool.Output("other", nil)
			}
			return r, err
		},
	})
	run := func(args string) (string, error) {
		result, err := c.Call(t.Context(), call("a", "x", args))
		return string(result.Raw), err
	}
	if got, err := run(`{"n":1}`); err != nil || !strings.Contains(got, `{"n":2}`) || saw != `{"n":2}` {
		t.Errorf("changed arguments: %s, %v, saw %s", got, err, saw)
	}
	if _, err := run(`{"n":3}`); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("arguments of a hook are not checked: %v", err)
	}
	before := source.called()
	if got, err := run(`{"n":4}`); err != nil || !strings.Contains(got, "mine") {
		t.Errorf("answer of a hook: %s, %v", got, err)
	}
	if _, err := run(`{"n":5}`); fault.CodeOf(err) != fault.Denied {
		t.Errorf("refused: %v", err)
	}
	if source.called() != before {
		t.Error("the tool was called")
	}
	if got, err := run(`{"n":6}`); err != nil || !strings.Contains(got, "other") {
		t.Errorf("changed result: %s, %v", got, err)
	}
	if result, err := c.Call(t.Context(), call("", "own", `{"n":5}`)); err != nil {
		t.Errorf("our own tools are shown to hooks: %s, %v", result.Raw, err)
	}
	c.SetHooks(nil)
	if _, err := run(`{"n":5}`); err != nil {
		t.Errorf("without hooks: %v", err)
	}
}

// renaming is a source whose tools have other names and priorities.
type renaming struct{ *memory }

func (a renaming) Tools(ctx context.Context) ([]tool.Info, error) {
	tools, err := a.memory.Tools(ctx)
	tools = slices.Clone(tools)
	for i := range tools {
		switch tools[i].Ref.String() {
		case "b.read_file":
			tools[i].Name, tools[i].Original = "read", "read_file"
		case "b.zip":
			tools[i].Priority = 5
		}
	}
	return tools, err
}

func TestRenamedTools(t *testing.T) {
	t.Parallel()
	source := newMemory().with("a", "zip", "", nil).with("b", "read_file", "", nil).with("b", "write", "", nil).with("b", "zip", "", nil).with("", "own", "", nil)
	source.answers[ref("b", "read")] = echo
	c := catalog.New(catalog.Options{Sources: []tool.Source{renaming{source}}})
	if got, want := listed(t, c), []string{"own", "b.zip", "b.read", "b.write", "a.zip"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	hits, _ := c.Search(t.Context(), catalog.Query{Text: "zip"})
	if len(hits) != 2 || hits[0].Ref != ref("b", "zip") {
		t.Errorf("found %v", hits)
	}
	for _, name := range []string{"b.read", "b.read_file", "mcp.b.read_file", "b__read"} {
		if info, err := c.Resolve(t.Context(), name); err != nil || info.Ref != ref("b", "read") {
			t.Errorf("%s is %v, %v", name, info.Ref, err)
		}
	}
	if _, err := c.Call(t.Context(), call("b", "read_file", "")); err != nil {
		t.Error(err)
	}
	if last := source.calls[len(source.calls)-1]; last.Ref != ref("b", "read") {
		t.Errorf("called %v", last.Ref)
	}
	c.Expose("b", catalog.Exposure{Names: []string{"read_file", "zap"}})
	if got := listed(t, c.Exposed()); !slices.Equal(got, []string{"b__read", "own"}) {
		t.Errorf("exposed %q", got)
	}
	if got := c.ExposureProblems(t.Context(), "b"); len(got) != 1 || !strings.Contains(got[0], `"zap"; did you mean zip?`) {
		t.Errorf("mistaken %q", got)
	}
	if got := c.ExposureProblems(t.Context(), "nowhere"); got != nil {
		t.Errorf("mistaken %q where nothing is", got)
	}
}

// TestHooksKnowOriginalNames checks that a hook sees the upstream's name of a tool, so that an
// alias is no way around it.
func TestHooksKnowOriginalNames(t *testing.T) {
	t.Parallel()
	original := func(context.Context, tool.Ref) (string, error) { return "remove", nil }
	c := catalog.New(catalog.Options{
		Sources: []tool.Source{newMemory().with("a", "alias", "", nil)},
		Steps:   []tool.Step{catalog.RunHooks(original)},
	})
	var saw []string
	c.SetHooks(hookFuncs{
		before: func(call tool.HookedCall) (json.RawMessage, *tool.Result, error) {
			saw = append(saw, call.Original)
			return call.Args, nil, nil
		},
		after: func(call tool.HookedCall, r tool.Result, err error) (tool.Result, error) {
			saw = append(saw, call.Original)
			return r, err
		},
	})
	if _, err := c.Call(t.Context(), call("a", "alias", "{}")); err != nil || !slices.Equal(saw, []string{"remove", "remove"}) {
		t.Errorf("hooks saw %q, %v", saw, err)
	}
}
