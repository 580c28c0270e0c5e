package startup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/scripttest"
)

// residentFixture is a resident script with its log and bus.
type residentFixture struct {
	*Script
	runner *script.Runner
	log    *syncText
	bus    *event.Bus
}

// syncText is a log that several goroutines may write to.
type syncText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *syncText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *syncText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func startResident(t *testing.T, source string, tools tool.Source) residentFixture {
	t.Helper()
	m := residentFixture{log: &syncText{}, bus: event.New(event.BusOptions{})}
	path := filepath.Join(t.TempDir(), "startup.lua")
	save(t, path, source)
	log := slog.New(slog.NewTextHandler(m.log, nil))
	m.runner = newRunner(t, func(r *script.Options) { r.Log, r.Events, r.Tools = log, m.bus, tools })
	m.Script = Run(t.Context(), m.runner, path, Options{
		Upstreams: &commander{}, Log: log, Events: m.bus,
		Clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), // rate-limited messages are logged once
	})
	if m.Script == nil {
		t.Fatal("the startup script is not resident")
	}
	return m
}

func hookedCall(args string) tool.HookedCall {
	call := tool.Call{Ref: tool.Ref{Space: "calc", Name: "plus"}, Args: json.RawMessage(args), Caller: &tool.Caller{ID: "me", User: "u"}}
	return tool.HookedCall{Call: call, Original: "add"}
}

func TestNoHooks(t *testing.T) {
	t.Parallel()
	m := startResident(t, "x = 1", nil)
	if m.Hooks(HookOptions{}) != nil || m.Listens() {
		t.Error("a script without hooks has hooks")
	}
	var none *Script
	if hooks := none.Hooks(HookOptions{}); hooks.SeesCalls() || hooks.SeesTools() || none.Listens() {
		t.Error("a nil Resident has hooks")
	}
}

func TestHookOnCalls(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body   string // of on_tool_call(call)
		args   string // arguments of the call that continues; "" for none
		answer string // in the result
		err    string
		log    string
	}{
		"nothing":          {body: "", args: `{"n":1.0,"big":12345678901234567890}`},
		"returned as is":   {body: "return call", args: `{"n":1.0,"big":12345678901234567890}`},
		"true":             {body: "return true", args: `{"n":1.0,"big":12345678901234567890}`},
		"other arguments":  {body: "return { arguments = { n = 2 } }", args: `{"n":2}`},
		"changed in place": {body: "call.arguments.n, call.arguments.big = 7, nil return call", args: `{"n":7}`},
		"empty arguments":  {body: "return { arguments = {} }", args: `{}`},
		"refused":          {body: "return { refuse = 'not on ' .. call.namespace .. '.' .. call.tool }", err: "call calc.plus: not on calc.add"},
		"refused by false": {body: "return false, call.caller .. call.user", err: "call calc.plus: meu"},
		"answered":         {body: "return { result = 'mine' }", answer: `{"content":[{"text":"mine","type":"text"}]}`},
		"answered a table": {body: "return { result = { a = 1 } }", answer: `"structuredContent":{"a":1}`},
		"answered a list":  {body: "return { result = { 1, 2 } }", answer: `"structuredContent":{"result":[1,2]}`},
		"broken":           {body: "local x = nil\nreturn x.y", args: `{"n":1.0,"big":12345678901234567890}`, log: "startup.lua:3: attempt to index a nil value"},
		"nonsense":         {body: "return 7", args: `{"n":1.0,"big":12345678901234567890}`, log: "it returned a number"},
		"empty table":      {body: "return {}", args: `{"n":1.0,"big":12345678901234567890}`, log: "without arguments, result or refuse"},
		"a list":           {body: "return { arguments = { 1 } }", args: `{"n":1.0,"big":12345678901234567890}`, log: "named fields"},
		"endless":          {body: "while true do end", args: `{"n":1.0,"big":12345678901234567890}`, log: "ran longer than 30ms"},
		"greedy":           {body: "local t = {} while true do t[#t + 1] = ('x'):rep(100000) .. #t end", args: `{"n":1.0,"big":12345678901234567890}`, log: "hook failed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startResident(t, "function on_tool_call(call)\n"+tt.body+"\nend", nil)
			hooks := m.Hooks(HookOptions{Time: 30 * time.Millisecond})
			if name != "endless" && name != "greedy" {
				hooks = m.Hooks(HookOptions{Time: time.Minute})
			}
			args, answer, err := hooks.ToolCall(t.Context(), hookedCall(`{"n":1.0,"big":12345678901234567890}`))
			if tt.err != "" {
				if fault.CodeOf(err) != fault.Denied || err.Error() != tt.err {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.answer != "" && (answer == nil || !strings.Contains(string(answer.Raw), tt.answer)) {
				t.Errorf("answer %v, want %s", answer, tt.answer)
			}
			if tt.args != "" && string(args) != tt.args {
				t.Errorf("arguments %s, want %s", args, tt.args)
			}
			if got := m.log.String(); tt.log == "" && got != "" || !strings.Contains(got, tt.log) {
				t.Errorf("log %q, want %q", got, tt.log)
			}
		})
	}
}

func TestHookOnResults(t *testing.T) {
	t.Parallel()
	fine, _ := tool.Output("hello", map[string]any{"n": json.Number("12345678901234567890")})
	bad := tool.Failed("handler failed")
	unreachable := fault.New(fault.Unavailable, "connection refused")
	tests := map[string]struct {
		body   string // of on_tool_result(call, result)
		result tool.Result
		failed error
		want   string // in the result; "" means as it was
	}{
		"nothing":          {result: fine},
		"as is":            {body: "return result", result: fine},
		"failed as is":     {body: "return result", result: bad},
		"unreachable":      {body: "assert(result.code == 'unavailable') return result", failed: unreachable},
		"other value":      {body: "result.value = 'x' return result", result: fine, want: `{"content":[{"text":"x","type":"text"}]}`},
		"value alone":      {body: "return { value = { a = call.arguments.n } }", result: fine, want: `"structuredContent":{"a":1}`},
		"made an error":    {body: "return { error = 'hidden' }", result: fine, want: `{"content":[{"text":"hidden","type":"text"}],"isError":true}`},
		"reworded error":   {body: "result.error = result.error .. '!' return result", result: bad, want: `"text":"handler failed!"`},
		"forgiven":         {body: "result.is_error = false result.value = 0 return result", result: bad, want: `"structuredContent":{"result":0}`},
		"answered instead": {body: "if result.is_error then return { value = 'cached' } end", failed: unreachable, want: "cached"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startResident(t, "function on_tool_result(call, result)\n"+tt.body+"\nend", nil)
			got, err := m.Hooks(HookOptions{Time: time.Minute}).ToolResult(t.Context(), hookedCall(`{"n":1}`), tt.result, tt.failed)
			switch {
			case tt.want == "" && (string(got.Raw) != string(tt.result.Raw) || !errors.Is(err, tt.failed)):
				t.Errorf("changed to %s, %v", got.Raw, err)
			case tt.want != "" && (err != nil || !strings.Contains(string(got.Raw), tt.want)):
				t.Errorf("got %s, %v, want %s", got.Raw, err, tt.want)
			}
			if log := m.log.String(); log != "" {
				t.Errorf("log %s", log)
			}
		})
	}
}

func TestHookOnTools(t *testing.T) {
	t.Parallel()
	infos := func() []tool.Info {
		return []tool.Info{
			{Ref: tool.Ref{Space: "calc", Name: "add"}, Original: "add", Description: "adds", Hints: tool.Hints{ReadOnly: true}},
			{Ref: tool.Ref{Space: "calc", Name: "less"}, Original: "sub", Description: "subtracts"},
		}
	}
	tests := map[string]struct {
		body string
		want []string
		log  string
	}{
		"nothing":    {want: []string{"add:add:adds", "sub:less:subtracts"}},
		"hidden":     {body: "return map(filter(tools, function(t) return t.read_only end), function(t) return t end)", want: []string{"add:add:adds"}},
		"all hidden": {body: "return {}"},
		"changed":    {body: "tools[1].name, tools[1].description = ns .. 'plus', 'sums' return tools", want: []string{"add:calcplus:sums", "sub:less:subtracts"}},
		"by name":    {body: "return { { name = 'less', description = 'd' } }", want: []string{"sub:less:d"}},
		"no effects": {body: "fs.write('x', 'y')", want: []string{"add:add:adds", "sub:less:subtracts"}, log: "not allowed while tools are being listed"},
		"broken":     {body: "error('oh')", want: []string{"add:add:adds", "sub:less:subtracts"}, log: "oh"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startResident(t, "on('mcp_tools', function(ns, tools)\n"+tt.body+"\nend)", nil)
			hooks := m.Hooks(HookOptions{Time: time.Minute})
			if !hooks.SeesTools() || hooks.SeesCalls() {
				t.Error("wrong hooks")
			}
			chosen, err := hooks.Tools(t.Context(), "calc", infos())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, info := range chosen {
				got = append(got, info.Original+":"+info.Name+":"+info.Description)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if log := m.log.String(); tt.log == "" && log != "" || !strings.Contains(log, tt.log) {
				t.Errorf("log %q, want %q", log, tt.log)
			}
		})
	}
}

func TestStrictHooksRefuse(t *testing.T) {
	t.Parallel()
	m := startResident(t, "function on_tool_call() error('oh') end on_tool_result, on_mcp_tools = on_tool_call, on_tool_call", nil)
	hooks := m.Hooks(HookOptions{Time: time.Minute, Strict: true})
	if _, _, err := hooks.ToolCall(t.Context(), hookedCall(`{}`)); fault.CodeOf(err) != fault.Denied {
		t.Errorf("call: %v", err)
	}
	if _, err := hooks.ToolResult(t.Context(), hookedCall(`{}`), tool.Failed("x"), nil); fault.CodeOf(err) != fault.Denied {
		t.Errorf("result: %v", err)
	}
	if shown, err := hooks.Tools(t.Context(), "calc", []tool.Info{{Original: "a"}}); len(shown) > 0 || err != nil {
		t.Errorf("tools: %v, %v", shown, err)
	}
}

// TestHooksDoNotSeeThemselves checks that hooks do not see the calls of a hook, and
// that its state persists.
func TestHooksDoNotSeeThemselves(t *testing.T) {
	t.Parallel()
	var hooks *Hooks
	asked := 0
	box := scripttest.Toolbox{{Space: "calc", Name: "add"}: func(ctx context.Context, args json.RawMessage) (any, error) {
		asked++
		_, _, err := hooks.ToolCall(ctx, hookedCall(string(args))) // as the catalog would
		return map[string]any{"n": asked}, err
	}}
	m := startResident(t, `function on_tool_call(call)
	  seen = (seen or 0) + 1
	  return { result = seen .. " " .. mcp.calc.add({}).n }
	end`, box)
	hooks = m.Hooks(HookOptions{Time: time.Minute})
	for i := range 3 {
		_, answer, err := hooks.ToolCall(t.Context(), hookedCall(`{}`))
		if want := fmt.Sprintf("%d %d", i+1, i+1); err != nil || answer == nil || !strings.Contains(string(answer.Raw), want) {
			t.Fatalf("turn %d: %v, %v\n%s", i, answer, err, m.log)
		}
	}
}

// TestHooksRunOneAtATime checks that concurrent calls run hooks one after the other.
func TestHooksRunOneAtATime(t *testing.T) {
	t.Parallel()
	m := startResident(t, "count = 0 function on_tool_call(call) count = count + 1 return { arguments = { n = count } } end", nil)
	hooks := m.Hooks(HookOptions{Time: time.Minute})
	var group sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for range 50 {
		group.Go(func() {
			args, _, err := hooks.ToolCall(t.Context(), hookedCall(`{}`))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[string(args)] = true
		})
	}
	group.Wait()
	if len(seen) != 50 {
		t.Errorf("%d different answers to 50 calls\n%s", len(seen), m.log)
	}
}

func TestFailuresAreReported(t *testing.T) {
	t.Parallel()
	m := startResident(t, "function on_tool_call(call) error('oh') end", nil)
	sub := m.bus.Subscribe(event.Options{Types: []string{"hook.failed"}})
	defer sub.Close()
	hooks := m.Hooks(HookOptions{Time: time.Minute})
	for range 5 {
		if _, _, err := hooks.ToolCall(t.Context(), hookedCall(`{}`)); err != nil {
			t.Fatal(err)
		}
		if e, err := sub.Next(t.Context()); err != nil || e.Data.(HookFailed).Tool != "plus" {
			t.Errorf("event %+v, %v", e, err)
		}
	}
	if n := strings.Count(m.log.String(), "hook failed"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, m.log)
	}
	second := hookedCall(`{}`)
	second.Ref.Name = "subtract"
	if _, _, err := hooks.ToolCall(t.Context(), second); err != nil || strings.Count(m.log.String(), "hook failed") != 2 {
		t.Errorf("the failure of another tool is not logged: %v\n%s", err, m.log)
	}
}

// TestHandlersOfStartup checks that event handlers of startup.lua receive later events.
func TestHandlersOfStartup(t *testing.T) {
	t.Parallel()
	m := startResident(t, `local heard = 0
	on("script.knock", function(e)
	  heard = heard + 1
	  if e.data.fail then error("handler failed") end
	  emit("script.answer", { heard = heard, name = e.data.name })
	end)`, nil)
	if !m.Listens() {
		t.Fatal("there is no subscriber")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { m.Listen(ctx) })
	sub := m.bus.Subscribe(event.Options{Types: []string{"script.answer"}})
	defer sub.Close()
	for i, data := range []string{`{name = "a"}`, `{fail = true}`, `{name = "b"}`} {
		_, err := m.runner.Run(t.Context(), script.Request{Source: `emit("script.knock", ` + data + `)`})
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			continue
		}
		e, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(encode(e.Data)), fmt.Sprintf(`"heard":%d`, i+1); !strings.Contains(got, want) {
			t.Errorf("answer %s, want %s", got, want)
		}
	}
	cancel()
	group.Wait()
	if log := m.log.String(); !strings.Contains(log, "handler failed") {
		t.Errorf("log %s", log)
	}
}
