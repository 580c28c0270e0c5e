package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/chat/llm"
)

// note logs one record of the turn. All records have its request_id. They contain no
// text of messages, arguments and answers, only sizes, unless Options.Content is set.
func (t *turn) note(ctx context.Context, level slog.Level, event string, attrs ...slog.Attr) {
	if !t.agent.log.Enabled(ctx, level) {
		return
	}
	facts := []slog.Attr{
		slog.String("event", event), slog.String("request_id", t.request.ID),
		slog.Int64("timestamp", time.Now().UnixMilli()), slog.String("user_id", t.request.User),
	}
	if t.request.Org != "" {
		facts = append(facts, slog.String("org", t.request.Org))
	}
	t.agent.log.LogAttrs(ctx, level, "chat", append(facts, attrs...)...)
}

func (t *turn) warn(ctx context.Context, event string) { t.note(ctx, slog.LevelWarn, event) }

// content returns an attribute with text of the conversation, or with its length if
// Options.Content is not set.
func (t *turn) content(key, text string) slog.Attr {
	if !t.agent.options.Content {
		return slog.Int(key+"_length", len(text))
	}
	return slog.String(key, redact.Cut(text, 4096))
}

// loggable returns an error's text without content of the conversation: what a server or
// tool returned can quote its arguments.
func loggable(err error) string {
	code := fault.CodeOf(err)
	switch code {
	case fault.Unavailable, fault.Timeout, fault.Limit, fault.ToolNotFound, fault.Cancelled, fault.NeedsAuth, fault.Config:
		return string(code) + ": " + redact.Cut(err.Error(), 300)
	default:
		return string(code)
	}
}

// modelEvent names an event of the model's API: claude_… is what the logs of Anthropic's
// are searched for.
func (t *turn) modelEvent(what string) string {
	if t.model.About().Provider == "anthropic" {
		return "claude_" + what
	}
	return "model_" + what
}

// noteAsking logs a request to the model.
func (t *turn) noteAsking(ctx context.Context) {
	about := t.model.About()
	t.note(ctx, slog.LevelInfo, t.modelEvent("request"), slog.Int("iteration", t.reply.Iterations), slog.Int("message_count", len(t.messages)),
		slog.String("provider", about.Provider), slog.String("model", about.Model), slog.Int("tools_offered", len(t.tools.offered)))
}

// noteAsked logs the model's answer.
func (t *turn) noteAsked(ctx context.Context, a llm.Answer, err error, took time.Duration) {
	if err != nil {
		t.note(ctx, slog.LevelError, t.modelEvent("error"), slog.Int("iteration", t.reply.Iterations), slog.String("error", loggable(err)),
			slog.Int("status_code", llm.StatusOf(err)), slog.Int("attempts", a.Attempts), slog.Int64("duration_ms", took.Milliseconds()))
		return
	}
	t.note(ctx, slog.LevelInfo, t.modelEvent("response"), slog.Int("iteration", t.reply.Iterations), slog.Int("tool_calls_count", len(a.Uses())),
		slog.Int64("duration_ms", took.Milliseconds()), slog.String("stop_reason", string(a.Stop)), slog.Int("attempts", a.Attempts),
		slog.Int64("input_tokens", a.Usage.Input), slog.Int64("output_tokens", a.Usage.Output),
		slog.Int64("cache_read_tokens", a.Usage.CacheRead), slog.Int64("cache_write_tokens", a.Usage.CacheWrite),
		slog.Float64("cost_usd", a.Usage.Cost), t.content("text", a.Text()))
}

// runsCode reports whether a tool runs code that the model wrote.
func runsCode(tool string) bool { return tool == "execute_code" || tool == "lua_eval" }

// noteUsing logs the start of a tool call.
func (t *turn) noteUsing(ctx context.Context, use llm.Use, shown string) {
	t.note(ctx, slog.LevelInfo, "tool_execution_start", slog.String("tool_name", shown), slog.Int("iteration", t.reply.Iterations),
		slog.String("tool_call_id", use.ID), t.content("arguments", string(use.Input)))
	if runsCode(shown) {
		var in struct{ Code string }
		_ = json.Unmarshal(use.Input, &in) // invalid arguments have no code
		t.note(ctx, slog.LevelInfo, "code_execution_start", slog.Int("code_length", len(in.Code)), slog.String("tool_name", shown))
	}
}

// noteUsed logs the end of a tool call.
func (t *turn) noteUsed(ctx context.Context, shown string, o outcome, took time.Duration) {
	ms := slog.Int64("duration_ms", took.Milliseconds())
	if runsCode(shown) {
		t.noteCode(ctx, shown, o, ms)
	}
	if o.failed {
		t.note(ctx, slog.LevelError, "tool_execution_error", slog.String("tool_name", shown), slog.String("error", o.reason()), ms,
			t.content("result", o.text))
		return
	}
	t.note(ctx, slog.LevelInfo, "tool_execution_complete", slog.String("tool_name", shown), ms, slog.Bool("success", true), t.content("result", o.text))
}

func (t *turn) noteCode(ctx context.Context, shown string, o outcome, ms slog.Attr) {
	if o.failed {
		t.note(ctx, slog.LevelError, "code_execution_error", slog.String("error", o.reason()), slog.Int("line_number", lineIn(o.text)),
			slog.String("tool_name", shown), ms)
		return
	}
	var said struct {
		Output []json.RawMessage
		Logs   []json.RawMessage
	}
	_ = json.Unmarshal(o.view.Structured, &said) // without such a list the count is zero
	t.note(ctx, slog.LevelInfo, "code_execution_complete", ms, slog.Int("console_logs_count", len(said.Output)+len(said.Logs)), slog.String("tool_name", shown))
}

// reason returns why a tool failed, without content of the conversation.
func (o outcome) reason() string {
	if o.err != nil {
		return loggable(o.err)
	}
	return "tool_error"
}

// codeLine matches the position of a failure in code: "file:12:" or "line 12".
var codeLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?::|\bline )(\d+)\b`) })

func lineIn(text string) int {
	m := codeLine().FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	line, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return line
}

// truncated logs that a result was too long to be sent whole.
func (t *turn) truncated(ctx context.Context, shown string, whole int) {
	t.note(ctx, slog.LevelWarn, "tool_result_truncated", slog.String("tool_name", shown), slog.Int("bytes", whole), slog.Int("kept", t.limits.ResultBytes))
}
