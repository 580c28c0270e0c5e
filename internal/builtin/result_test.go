package builtin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/searchtools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/typedecl/typedecltest"
)

// big is a list that is too large to be shown whole.
func big() string {
	items := make([]string, 2000)
	for i := range items {
		items[i] = fmt.Sprintf(`{"id":%d,"name":"item %d"}`, i, i)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func TestLargeResultsAreStored(t *testing.T) {
	t.Parallel()
	h := open(t)
	args := `{"name":"fs.write-file","arguments":{"items":` + big() + `}}`
	var shown struct{ Handle, Shape, Preview, Note string }
	view := h.mustCall(t, "call_tool", args, &shown)
	if shown.Handle != "$r1" || shown.Shape != "{items: {id: integer, name: string}[]}" ||
		!strings.HasPrefix(shown.Preview, `{items: [{id: 0, name: "item 0"}, {id: 1`) || len(view.Text()) > 2000 {
		t.Errorf("shown %+v", shown)
	}
	var evaluated struct{ Result struct{ Handle string } }
	h.mustCall(t, "lua_eval", `{"code":"print('hello') local t = {} for i = 1, 20000 do t[i] = i end return t"}`, &evaluated)
	if evaluated.Result.Handle != "$r2" {
		t.Errorf("evaluated %+v", evaluated)
	}
	var part struct {
		Value json.RawMessage
		Total int
	}
	h.mustCall(t, "result_read", `{"handle":"$r1","pointer":"/items","skip":1999,"count":5}`, &part)
	if string(part.Value) != `[{"id":1999,"name":"item 1999"}]` || part.Total != 2000 {
		t.Errorf("part %s of %d", part.Value, part.Total)
	}
	h.mustCall(t, "result_read", `{"handle":"$r1","pointer":"/items/7/name"}`, &part)
	if string(part.Value) != `"item 7"` {
		t.Errorf("part %s", part.Value)
	}
	for args, want := range map[string]string{
		`{"handle":"$r1"}`:  "narrow it with pointer, skip and count",
		`{"handle":"$r99"}`: "stored: $r2, $r1",
	} {
		if view, err := h.call(t, "result_read", args); err != nil || !view.IsError || !strings.Contains(view.Text(), want) {
			t.Errorf("%s: %s, %v", args, view.Text(), err)
		}
	}
}

func TestProgramsGetCompleteResults(t *testing.T) {
	t.Parallel()
	h := open(t)
	result, err := h.catalog.Call(t.Context(), tool.Call{
		Ref: tool.Ref{Name: "call_tool"}, Args: json.RawMessage(`{"name":"fs.write-file","arguments":{"items":` + big() + `}}`),
		Meta: json.RawMessage(`{"` + builtin.FullKey + `":true}`),
	})
	if err != nil || len(result.Raw) < len(big()) {
		t.Errorf("%d bytes, %v", len(result.Raw), err)
	}
	var evaluated struct{ Result int }
	h.mustCall(t, "lua_eval", `{"code":"local t = {} for i = 1, 20000 do t[i] = i end return #mcp.call_tool { name = 'fs.write-file', arguments = { items = t } }.items"}`, &evaluated)
	if evaluated.Result != 20000 {
		t.Errorf("a script got %d items", evaluated.Result)
	}
}

func TestLargeOutputAndErrorsAreShortened(t *testing.T) {
	t.Parallel()
	h := open(t)
	view := h.mustCall(t, "lua_eval", `{"code":"for i = 1, 5000 do print('line ' .. i) end return 1"}`, nil)
	if n := len(view.Structured) + len(view.Text()); n > builtin.DefaultShown || !strings.Contains(view.Text(), "more lines are not shown") {
		t.Errorf("%d bytes: %.200s", n, view.Text())
	}
	view, err := h.call(t, "lua_eval", `{"code":"error(string.rep('x', 100000))"}`)
	if err != nil || !view.IsError || len(view.Text()) > builtin.DefaultShown {
		t.Errorf("%d bytes of error, %v", len(view.Text()), err)
	}
}

func TestDeclarations(t *testing.T) {
	t.Parallel()
	h := open(t)
	all, err := h.set.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, info := range all {
		var got searchtools.Definitions
		view := h.mustCall(t, "get_tool_definitions", `{"names":["`+info.Name+`"],"format":"typescript"}`, &got)
		if len(got.Tools) != 0 || got.Declarations == "" || view.Text() != strings.TrimSpace(got.Declarations) {
			t.Errorf("%s: %+v", info.Name, got)
		}
		sources[info.Name] = got.Declarations
	}
	for name, problems := range typedecltest.Check(t, sources) {
		t.Errorf("%s: %v\n%s", name, problems, sources[name])
	}
	var got searchtools.Definitions
	h.mustCall(t, "get_tool_definitions", `{"names":["fs.read_file","fs.wrte-file"],"format":"lua"}`, &got)
	if !strings.Contains(got.Declarations, "function mcp.fs.read_file(args) end") || len(got.Unknown) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestLearnedShapesAreDeclared(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.results.Learn(&tool.Info{Ref: tool.Ref{Space: "fs", Name: "read_file"}}, tool.Result{Raw: json.RawMessage(`{"structuredContent":{"text":"x","size":1}}`)})
	var got searchtools.Definitions
	h.mustCall(t, "get_tool_definitions", `{"names":["fs.read_file"],"format":"typescript"}`, &got)
	if !strings.Contains(got.Declarations, "learned from 1 result:") || !strings.Contains(got.Declarations, "Promise<{ text: string; size: number }>") {
		t.Errorf("%s", got.Declarations)
	}
	h.mustCall(t, "get_tool_definitions", `{"names":["fs.read_file"]}`, &got)
	if got.Tools[0].LearnedFrom != 1 || !strings.Contains(string(got.Tools[0].Learned), `"size":{"type":"integer"}`) {
		t.Errorf("%+v", got.Tools[0])
	}
}
