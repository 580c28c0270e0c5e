package builtin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/tools/toolset"
)

type executed struct {
	Result     json.RawMessage
	DurationMS *int64 `json:"duration_ms"`
	Calls      int
	Logs       []struct{ Level, Message, Timestamp string }
	Error      struct {
		Code, Message string
		Details       struct {
			Kind         string
			Line, Column int
		}
	}
}

func TestExecuteCode(t *testing.T) {
	t.Parallel()
	h := open(t)
	var got executed
	view := h.mustCall(t, "execute_code", `{"code":"console.warn('look', {a: 1});\nconst all = await Promise.all(['a', 'b'].map((path) => mcp.fs.read_file({ path })).concat(orpheus_generate()));\nreturn all.map((x) => x.path)"}`, &got)
	if string(got.Result) != `["a","b",null]` || got.Calls != 3 || got.DurationMS == nil {
		t.Errorf("got %s", view.Structured)
	}
	if len(got.Logs) != 1 || got.Logs[0].Level != "warn" || got.Logs[0].Message != "look { a: 1 }" || got.Logs[0].Timestamp == "" {
		t.Errorf("logs %+v", got.Logs)
	}
	h.mustCall(t, "execute_code", `{"language":"lua","code":"print('x') return mcp.fs.read_file{path = 'c'}.path"}`, &got)
	if string(got.Result) != `"c"` || got.Calls != 1 || got.Logs[0].Level != "log" {
		t.Errorf("in Lua: %+v", got)
	}
	h.mustCall(t, "execute_code", `{"code":"const n: number = 20; __result__ = n + 1"}`, &got)
	if string(got.Result) != `21` {
		t.Errorf("TypeScript with __result__: %s", got.Result)
	}
}

func TestExecuteCodeFails(t *testing.T) {
	t.Parallel()
	h := open(t)
	for code, want := range map[string]struct {
		kind, text   string
		line, column int
	}{
		"console.log('before');\nthrow new TypeError('no')": {"TypeError", "TypeError: no", 2, 11},
		"let x = ;":                         {"SyntaxError", `Unexpected ";"`, 1, 9},
		"await mcp.fs.raed_file({})":        {"ToolError", "fs.read_file", 1, 0},
		"read_file({ path: 1 })":            {"TypeError", "The tool of that name is mcp.fs.read_file", 1, 0},
		"await mcp.fs.read_file({})":        {"ToolError", "path", 1, 0},
		"fetch('https://example.com')":      {"NilCall", "scripts have no network of their own; call a tool", 1, 1},
		"while (true) {}":                   {"Timeout", "longer than 200ms", 1, 0},
		"/(a+)+$/.test('a'.repeat(40)+'b')": {"Timeout", "longer than 200ms", 0, 0},
	} {
		asked := map[string]any{"code": code}
		if want.kind == "Timeout" { // the others must end for their own reason, however busy the machine
			asked["timeout_ms"] = 200
		}
		args, _ := json.Marshal(asked)
		view, err := h.call(t, "execute_code", string(args))
		if err != nil || !view.IsError {
			t.Errorf("%s: %v %s", code, err, view.Text())
			continue
		}
		var got executed
		if err := json.Unmarshal(view.Structured, &got); err != nil {
			t.Fatal(err)
		}
		at := got.Error.Details
		if at.Kind != want.kind || !strings.Contains(view.Text(), want.text) || want.line > 0 && at.Line != want.line || want.column > 0 && at.Column != want.column {
			t.Errorf("%s\n%s at %d:%d\n%s", code, at.Kind, at.Line, at.Column, view.Text())
		}
		if strings.HasPrefix(code, "console") && (len(got.Logs) != 1 || got.Logs[0].Message != "before") {
			t.Errorf("logs of what failed: %+v", got.Logs)
		}
	}
}

// TestExecuteCodeCapsItsTime checks that no call can ask for more time than the server sets.
func TestExecuteCodeCapsItsTime(t *testing.T) {
	t.Parallel()
	h := open(t)
	limited := toolset.NewSet("", scripttools.Code(h.runner, h.sessions, scripttools.CodeOptions{Time: 200 * time.Millisecond, Longest: clocktest.Timeout}))
	result, err := limited.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: "execute_code"}, Args: json.RawMessage(`{"code":"while (true) {}","timeout_ms":600000}`)})
	if err != nil {
		t.Fatal(err)
	}
	if view, err := result.View(); err != nil || !view.IsError || !strings.Contains(view.Text(), "longer than 200ms") {
		t.Errorf("%v %s", err, view.Text())
	}
}

func TestExecuteCodeCapsCallsOfChats(t *testing.T) {
	t.Parallel()
	h := open(t)
	run := func(caller string) tool.View {
		result, err := h.catalog.Call(t.Context(), tool.Call{
			Ref: tool.Ref{Name: "execute_code"}, Caller: &tool.Caller{ID: caller},
			Args: json.RawMessage(`{"code":"for (let i = 0; i < 11; i++) await mcp.fs.read_file({ path: String(i) }); 'done'"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		view, err := result.View()
		if err != nil {
			t.Fatal(err)
		}
		return view
	}
	if view := run("user:ada"); view.IsError {
		t.Errorf("from a client: %s", view.Text())
	}
	if view := run("chat:ada"); !view.IsError || !strings.Contains(view.Text(), "the run's limit of 10 tool calls is used up") {
		t.Errorf("from a chat: %s", view.Text())
	}
}

func TestExecuteCodeInSessions(t *testing.T) {
	t.Parallel()
	h := open(t)
	var session struct {
		ID       string `json:"session_id"`
		Language string
	}
	h.mustCall(t, "session_create", `{"language":"javascript"}`, &session)
	if session.Language != "javascript" {
		t.Errorf("the session speaks %q", session.Language)
	}
	var got executed
	h.mustCall(t, "execute_code", `{"session_id":"`+session.ID+`","code":"const seen = ['a']; seen.length"}`, &got)
	h.mustCall(t, "execute_code", `{"session_id":"`+session.ID+`","code":"seen.push('b'); seen"}`, &got)
	if string(got.Result) != `["a","b"]` {
		t.Errorf("got %s", got.Result)
	}
	h.mustCall(t, "lua_eval", `{"session_id":"`+session.ID+`","code":"seen.length"}`, &got)
	if string(got.Result) != `2` {
		t.Errorf("by lua_eval: %s", got.Result)
	}
	if view, err := h.call(t, "execute_code", `{"session_id":"`+session.ID+`","language":"lua","code":"return 1"}`); err != nil || !view.IsError {
		t.Errorf("another language: %v %s", err, view.Text())
	}
}

const greeterJS = `
interface Params { name: string }
function describe() { return { name: "welcome", description: "Welcomes somebody", params: { name: { type: "string", required: true } } } }
function main({ name }: Params) { return { text: "Welcome " + name } }`

func TestStoredJavaScript(t *testing.T) {
	t.Parallel()
	h := open(t)
	args, _ := json.Marshal(map[string]any{"content": greeterJS, "language": "typescript"})
	var stored struct {
		Hash, Name string
		Tags       []string
		Warnings   []string
	}
	h.mustCall(t, "script_store", string(args), &stored)
	if stored.Name != "welcome" || !slices.Equal(stored.Tags, []string{"type:typescript"}) || len(stored.Warnings) > 0 {
		t.Errorf("stored %+v", stored)
	}
	a, err := h.scripts.Get(t.Context(), must(cas.Parse(stored.Hash)))
	if err != nil || a.MIME != "text/typescript" || script.LanguageOf(a.MIME) != script.JavaScript {
		t.Errorf("stored as %q, %v", a.MIME, err)
	}
	if view := h.mustCall(t, "lua_describe", `{"script_hash":"`+stored.Hash+`"}`, nil); !strings.Contains(view.Text(), "Welcomes somebody") {
		t.Errorf("described: %s", view.Text())
	}
	var found struct{ Scripts []struct{ Name string } }
	h.mustCall(t, "script_search", `{}`, &found)
	if len(found.Scripts) != 1 || found.Scripts[0].Name != "welcome" {
		t.Errorf("found %+v", found)
	}
	h.mustCall(t, "script_publish", `{"script_hash":"`+stored.Hash+`"}`, nil)
	var got struct{ Result struct{ Text string } }
	h.mustCall(t, "lua_eval", `{"code":"return mcp.welcome{name = 'Ada'}"}`, &got)
	if got.Result.Text != "Welcome Ada" {
		t.Errorf("published: %+v", got)
	}
	k := scripttools.NewSourceWriter(h.runner, h.scripts)
	if ref, err := k.Store(t.Context(), []byte(greeterJS+"\n"), "welcome.ts", cas.Ref{}); err != nil {
		t.Error(err)
	} else if a, err := h.scripts.Get(t.Context(), ref); err != nil || a.MIME != "text/typescript" || a.Name != "welcome" {
		t.Errorf("from a folder: %+v, %v", a, err)
	}
}

func must(ref cas.Ref, err error) cas.Ref {
	if err != nil {
		panic(err)
	}
	return ref
}
