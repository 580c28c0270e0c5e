package startup

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/lua"
)

// The names of the hooks, which are global functions of startup.lua.
const (
	hookTools  = "on_mcp_tools"
	hookCall   = "on_tool_call"
	hookResult = "on_tool_result"
)

// HookOptions limit hooks.
type HookOptions struct {
	Time   time.Duration // per call of a hook; zero means 100 ms
	Strict bool          // a hook that fails refuses the call; otherwise the call continues unchanged
}

// Hooks are the functions of a startup script that can change tools and their calls.
// They are called for everything except their own effects.
type Hooks struct {
	script               *Script
	options              HookOptions
	limits               script.Limits
	tools, calls, result bool
	reports              reports
}

// Hooks returns the script's hooks; nil if it has none.
func (s *Script) Hooks(o HookOptions) *Hooks {
	if s == nil {
		return nil
	}
	if o.Time <= 0 {
		o.Time = 100 * time.Millisecond
	}
	h := &Hooks{
		script: s, options: o,
		limits: script.Limits{Time: o.Time, Output: 64 << 10, Calls: 20, Temp: 1 << 20}.OrDefault(s.Limits()),
		tools:  s.Has(hookTools), calls: s.Has(hookCall), result: s.Has(hookResult),
	}
	if !h.tools && !h.calls && !h.result {
		return nil
	}
	return h
}

// SeesTools reports whether there is a hook for lists of tools.
func (h *Hooks) SeesTools() bool { return h != nil && h.tools }

// SeesCalls reports whether there is a hook for calls or their results.
func (h *Hooks) SeesCalls() bool { return h != nil && (h.calls || h.result) }

// HookFailed is published when a hook failed.
type HookFailed struct {
	Hook      string `json:"hook"`
	Namespace string `json:"namespace"`
	Tool      string `json:"tool,omitempty"`
	Error     string `json:"error"`
}

// EventType is "hook.failed".
func (HookFailed) EventType() string { return "hook.failed" }

// EventKey is the hook.
func (e HookFailed) EventKey() string { return e.Hook }

var _ event.Keyed = HookFailed{}

// call calls a hook with JSON arguments and passes its results to read. sent is the
// encoding of fields of the last argument after a round trip through Lua, to detect
// changes.
func (h *Hooks) call(ctx context.Context, hook string, handler host.Handler, args []json.RawMessage, fields []string, read func(sent []byte, results []lua.Value) error) error {
	var sent []byte
	return h.script.Call(ctx, h.limits, handler, hook,
		func(s *lua.State) ([]lua.Value, error) {
			given := make([]lua.Value, len(args))
			for i, raw := range args {
				var err error
				if given[i], err = lua.FromJSON(s, raw); err != nil {
					return nil, err
				}
			}
			var err error
			if t, ok := given[len(given)-1].AsTable(); ok {
				sent, err = fieldsOf(t, fields)
			}
			return given, err
		},
		func(results []lua.Value) error { return read(sent, results) })
}

// fieldsOf encodes fields of a table, for comparison.
func fieldsOf(t *lua.Table, names []string) ([]byte, error) {
	var all []byte
	for _, name := range names {
		raw, err := lua.ToJSON(t.GetString(name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(append(all, raw...), '\n')
	}
	return all, nil
}

// The fields of a call and of a result that a hook may change.
var (
	callFields   = []string{"arguments"}
	resultFields = []string{"value", "error", "is_error"}
)

// largestShown is the size up to which arguments or a result are shown to a hook.
const largestShown = 4 << 20

// encode encodes values that cannot fail: text, booleans, and valid JSON.
func encode(v any) json.RawMessage {
	raw, _ := tool.Encode(v)
	return raw
}

// shownCall is a call as hooks see it.
type shownCall struct {
	Namespace string          `json:"namespace"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	TooLarge  bool            `json:"too_large,omitempty"` // the arguments are omitted
	Caller    string          `json:"caller,omitempty"`
	User      string          `json:"user,omitempty"`
}

func showCall(call tool.HookedCall) json.RawMessage {
	shown := shownCall{Namespace: call.Ref.Space, Tool: call.Original, Arguments: call.Args}
	switch {
	case len(call.Args) > largestShown:
		shown.Arguments, shown.TooLarge = nil, true
	case rawjson.IsNull(call.Args):
		shown.Arguments = json.RawMessage("{}")
	}
	if call.Caller != nil {
		shown.Caller, shown.User = call.Caller.ID, call.Caller.User
	}
	return encode(shown)
}

// ToolCall calls on_tool_call.
func (h *Hooks) ToolCall(ctx context.Context, call tool.HookedCall) (args json.RawMessage, answer *tool.Result, err error) {
	if !h.calls || script.InResident(ctx) {
		return call.Args, nil, nil
	}
	args = call.Args
	var refusal error
	err = h.call(ctx, hookCall, nil, []json.RawMessage{showCall(call)}, callFields, func(sent []byte, results []lua.Value) error {
		callDecision, err := readDecision(sent, results)
		if err != nil {
			return err
		}
		switch {
		case callDecision.refused:
			refusal = fault.New(fault.Denied, "call %s: %s", call.Ref, callDecision.reason).
				WithHint("a hook of this server's startup script refuses it")
		case callDecision.answer != nil:
			made, err := answerOf(callDecision.answer)
			answer = &made
			return err
		case callDecision.args != nil:
			args = callDecision.args
		}
		return nil
	})
	if err != nil {
		return call.Args, nil, h.failed(ctx, hookCall, call.Ref, err)
	}
	return args, answer, refusal
}

// callDecision is the decision of on_tool_call; the zero value continues the call unchanged.
type callDecision struct {
	refused bool
	reason  string
	answer  json.RawMessage
	args    json.RawMessage
}

// readDecision reads what on_tool_call returned: nothing, false and a reason, or a table
// with refuse, result or arguments.
func readDecision(sent []byte, results []lua.Value) (v callDecision, err error) {
	if len(results) == 0 || results[0].IsNil() {
		return v, nil
	}
	if yes, ok := results[0].AsBool(); ok {
		v.refused, v.reason = !yes, "refused"
		if len(results) > 1 && v.refused {
			v.reason, _ = results[1].AsString()
		}
		return v, nil
	}
	t, ok := results[0].AsTable()
	if !ok {
		return v, fmt.Errorf("it returned a %s; return nothing, false and a reason, or a table with arguments, result or refuse", results[0].TypeName())
	}
	return readDecisionTable(sent, t)
}

func readDecisionTable(sent []byte, t *lua.Table) (v callDecision, err error) {
	if reason := t.GetString("refuse"); reason.Truthy() {
		v.refused, v.reason = true, "refused"
		if text, ok := reason.AsString(); ok {
			v.reason = text
		}
		return v, nil
	}
	if result := t.GetString("result"); !result.IsNil() {
		v.answer, err = lua.ToJSON(result)
		return v, err
	}
	arguments, ok := t.GetString("arguments").AsTable()
	if !ok {
		return v, fmt.Errorf("it returned a table without arguments, result or refuse")
	}
	now, err := fieldsOf(t, callFields)
	switch changed := json.RawMessage(bytes.TrimSpace(now)); {
	case err != nil:
		return v, err
	case arguments.Len() > 0 || !rawjson.IsObject(changed):
		return v, fmt.Errorf("arguments must have named fields")
	case !bytes.Equal(now, sent): // otherwise the caller's own bytes are used
		v.args = changed
	}
	return v, nil
}

// answerOf makes a tool's result of a value: a string becomes text, a table with named
// fields becomes structured content, anything else becomes {"result": value}.
func answerOf(value json.RawMessage) (tool.Result, error) {
	if text, ok := rawjson.Text(value); ok {
		return tool.Output(text, nil)
	}
	structured := value
	if !rawjson.IsObject(structured) {
		structured = rawjson.Set(nil, "result", value)
	}
	return tool.Output(string(value), structured)
}

// shownResult is a result as hooks see it.
type shownResult struct {
	Value    json.RawMessage `json:"value,omitempty"` // as a script would get it
	Error    string          `json:"error,omitempty"` // why the call failed
	Code     string          `json:"code,omitempty"`  // of a call that could not be made or finished
	IsError  bool            `json:"is_error"`
	TooLarge bool            `json:"too_large,omitempty"` // the value is omitted
}

func showResult(result tool.Result, failed error) json.RawMessage {
	if failed != nil {
		return encode(shownResult{Error: failed.Error(), Code: string(fault.CodeOf(failed)), IsError: true})
	}
	if len(result.Raw) > largestShown {
		return encode(shownResult{TooLarge: true, IsError: rawjson.GetBool(result.Raw, "isError")})
	}
	view, err := result.View()
	if err != nil {
		return encode(shownResult{Error: err.Error(), IsError: true})
	}
	shown := shownResult{Value: view.Value(), IsError: view.IsError}
	if view.IsError {
		shown.Error = view.Text()
	}
	return encode(shown)
}

// ToolResult calls on_tool_result.
func (h *Hooks) ToolResult(ctx context.Context, call tool.HookedCall, result tool.Result, failed error) (tool.Result, error) {
	if !h.result || script.InResident(ctx) {
		return result, failed
	}
	changed, answered := result, failed
	asked := context.WithoutCancel(ctx) // also if the caller has disconnected
	err := h.call(asked, hookResult, nil, []json.RawMessage{showCall(call), showResult(result, failed)}, resultFields, func(sent []byte, results []lua.Value) error {
		other, err := readResult(sent, results)
		if err == nil && other != nil {
			changed, answered = *other, nil
		}
		return err
	})
	if err != nil {
		if refused := h.failed(ctx, hookResult, call.Ref, err); refused != nil {
			return tool.Result{}, refused
		}
		return result, failed
	}
	return changed, answered
}

// readResult reads what on_tool_result returned: nothing, or a table with value or
// error. It returns nil if the result stays as it is.
func readResult(sent []byte, results []lua.Value) (*tool.Result, error) {
	if len(results) == 0 || results[0].IsNil() {
		return nil, nil
	}
	t, ok := results[0].AsTable()
	if !ok {
		return nil, fmt.Errorf("it returned a %s; return nothing, or a table with value or error", results[0].TypeName())
	}
	now, err := fieldsOf(t, resultFields)
	if err != nil || bytes.Equal(now, sent) {
		return nil, err
	}
	cleared, _ := t.GetString("is_error").AsBool()
	cleared = !cleared && !t.GetString("is_error").IsNil()
	if text, ok := t.GetString("error").AsString(); ok && !cleared {
		made := tool.Failed(text)
		return &made, nil
	}
	value, err := lua.ToJSON(t.GetString("value"))
	if err != nil {
		return nil, err
	}
	made, err := answerOf(value)
	return &made, err
}

// shownTool is a tool as on_mcp_tools sees it.
type shownTool struct {
	Original    string          `json:"original"`
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	Priority    int             `json:"priority"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	ReadOnly    bool            `json:"read_only"`
	Idempotent  bool            `json:"idempotent"`
	Destructive bool            `json:"destructive"`
}

// Tools calls on_mcp_tools with a namespace's tools and returns the list it returned.
// The hook may have no effects.
func (h *Hooks) Tools(ctx context.Context, namespace string, tools []tool.Info) ([]tool.Info, error) {
	shown := make([]shownTool, len(tools))
	for i := range tools {
		t := &tools[i]
		shown[i] = shownTool{
			t.Original, t.Name, t.Title, t.Description, t.Priority, t.Input,
			t.Hints.ReadOnly, t.Hints.Idempotent, !t.Hints.NonDestructive && !t.Hints.ReadOnly,
		}
	}
	args := []json.RawMessage{encode(namespace), encode(shown)}
	chosen := tools
	err := h.call(ctx, hookTools, host.DenyEffects("tools are being listed"), args, nil, func(_ []byte, results []lua.Value) (err error) {
		if len(results) > 0 && !results[0].IsNil() {
			chosen, err = readTools(results[0], tools)
		}
		return err
	})
	if err == nil {
		return chosen, nil
	}
	if refused := h.failed(ctx, hookTools, tool.Ref{Space: namespace}, err); refused != nil {
		return nil, nil //nolint:nilerr // failed has logged it; none is shown
	}
	return tools, nil
}

// readTools reads a list of tools, identified by their original names or the names they
// had.
func readTools(value lua.Value, tools []tool.Info) ([]tool.Info, error) {
	raw, err := lua.ToJSON(value)
	if err != nil {
		return nil, err
	}
	var want []shownTool
	if rawjson.IsObject(raw) && string(raw) == "{}" {
		return nil, nil // an empty table hides all
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		return nil, fmt.Errorf("it must return a list of tools as it was given: %w", err)
	}
	chosen := make([]tool.Info, len(want))
	for i, w := range want {
		if w.Original == "" {
			w.Original = originalNamed(tools, w.Name)
		}
		chosen[i] = tool.Info{
			Ref: tool.Ref{Name: w.Name}, Original: w.Original, Title: w.Title, Description: w.Description, Priority: w.Priority,
		}
	}
	return chosen, nil
}

func originalNamed(tools []tool.Info, name string) string {
	for i := range tools {
		if tools[i].Name == name {
			return tools[i].Original
		}
	}
	return name
}

// failed reports a hook that failed. The error is nil unless the failure refuses the
// call.
func (h *Hooks) failed(ctx context.Context, hook string, ref tool.Ref, err error) error {
	options := h.script.options
	if left, tell := h.reports.due(hook+" "+ref.String(), options.Clock.Now()); tell {
		options.Log.WarnContext(ctx, "hook failed", "hook", hook, "tool", ref.String(), "error", err, "suppressed", left)
	}
	options.Events.Publish(HookFailed{Hook: hook, Namespace: ref.Space, Tool: ref.Name, Error: err.Error()})
	if !h.options.Strict {
		return nil
	}
	return fault.New(fault.Denied, "call %s: %s failed, and hooks are strict", ref, hook).
		WithHint("the owner of this server finds the reason in its log")
}

// reports decides which failures are logged: one per hook and tool every ten seconds.
type reports struct {
	mu   sync.Mutex
	last map[string]report // by hook and tool
}

type report struct {
	at   time.Time
	left int // failures since then that were not logged
}

func (r *reports) due(what string, now time.Time) (left int, tell bool) {
	const pause = 10 * time.Second
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]report{}
	}
	last, known := r.last[what]
	if known && now.Sub(last.at) < pause {
		last.left++
		r.last[what] = last
		return 0, false
	}
	r.last[what] = report{at: now}
	return last.left, true
}
