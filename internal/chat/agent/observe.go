package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/principal"
)

// Event is something that happens during a turn: one of Status, Text, ToolUse,
// ToolResult, Media, Usage and Notice.
type Event interface{ happens() }

// Status describes the current activity in a line, for people who wait.
type Status struct{ Message string }

// Text is a piece of the answer as it arrives. Pieces with the same Block belong
// together; Blocks count from 0 over the whole turn and are the Reply's Responses.
type Text struct {
	Block int
	Text  string
}

// ToolUse announces a tool call.
type ToolUse struct {
	ID        string // the same in ToolResult
	Iteration int    // from 1
	Tool      string // as people write it: namespace.name
	Input     json.RawMessage
}

// ToolResult is the result of a tool call.
type ToolResult struct {
	ID        string
	Iteration int
	Tool      string
	Text      string // as sent to the model
	Failed    bool
	Took      time.Duration
}

// Media is an image, a sound or a file of a tool's result, for people.
type Media struct {
	MediaInfo
	Data []byte
}

// MediaInfo describes an image, a sound or a file.
type MediaInfo struct {
	ID   string `json:"id"` // within the turn; the same if the turn is interrupted and continues
	Tool string `json:"tool,omitempty"`
	Name string `json:"name,omitempty"`
	MIME string `json:"mime_type"`
	Size int    `json:"size"`
}

// UsedTool is a tool call of a turn, for people who read the answer later. What is long is
// shortened.
type UsedTool struct {
	After    int             `json:"after"` // how many of the Reply's Responses came before
	Tool     string          `json:"tool"`
	Input    json.RawMessage `json:"input"`
	Result   string          `json:"result"`
	Failed   bool            `json:"failed,omitempty"`
	Duration float64         `json:"duration_ms"`
}

// Usage is the usage of the turn so far.
type Usage struct{ llm.Usage }

// Notice is information about the turn that is not part of the answer: a limit that was
// reached, a server that is unreachable.
type Notice struct {
	Code    string `json:"code"` // iteration_limit, call_limit, budget, refusal, max_tokens, arguments_cut, media_not_sent, unknown_outcome, server_away, model_busy, approval
	Message string `json:"message"`
}

func (Status) happens()     {}
func (Text) happens()       {}
func (ToolUse) happens()    {}
func (ToolResult) happens() {}
func (Media) happens()      {}
func (Usage) happens()      {}
func (Notice) happens()     {}

// Reply is a turn's outcome.
type Reply struct {
	RequestID  string
	Responses  []string // one per block of text, over all iterations
	Language   string   // the Request's, or "en"
	Stop       llm.Stop // why the last answer ended; "iteration_limit" at the limit
	Iterations int
	ToolCalls  int // including those of scripts
	Usage      llm.Usage
	Model      string
	Notices    []Notice
	Media      []MediaInfo // images, sounds and files of tools' results
	Tools      []UsedTool  // calls of the model, without those of scripts
	Trace      string      // id of its trace, or ""
	Away       []string    `json:",omitempty"` // servers that could not be used, for Exchange

	Calls []llm.Use     `json:"-"` // of the client's tools, which end a turn
	Steps []llm.Message `json:"-"` // with Calls: what the turn added to the conversation, before the results of Calls
}

// Reasons to stop that are not the model's.
const (
	StopIterations llm.Stop = "iteration_limit" // the turn reached Limits.Iterations
	StopBudget     llm.Stop = "budget"          // Options.Budget refused to go on
)

// Text is the whole answer, as stored in the history.
func (r Reply) Text() string { return strings.Join(r.Responses, "\n") }

// TurnEnded is published when a turn has ended.
type TurnEnded struct {
	RequestID  string    `json:"request_id"`
	Org        string    `json:"org,omitempty"`
	User       string    `json:"user"`
	Model      string    `json:"model"`
	Iterations int       `json:"iterations"`
	ToolCalls  int       `json:"tool_calls"`
	Usage      llm.Usage `json:"usage"`
	DurationMS int64     `json:"duration_ms"`
	ErrorType  string    `json:"error_type,omitempty"`
}

// EventType is "chat.turn_ended".
func (TurnEnded) EventType() string { return "chat.turn_ended" }

// EventKey is the request.
func (e TurnEnded) EventKey() string { return e.RequestID }

// observe starts the turn's span; finish ends it and publishes TurnEnded.
func (t *turn) observe(ctx context.Context) (context.Context, func(error)) {
	about := t.model.About()
	ctx, span := t.agent.tracer.Start(ctx, "invoke_agent luanette", trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "invoke_agent"),
		attribute.String("gen_ai.agent.name", "luanette"),
		attribute.String("gen_ai.provider.name", about.Provider),
		attribute.String("gen_ai.request.model", about.Model),
		attribute.String("gen_ai.conversation.id", t.conversationID()),
		attribute.String("request_id", t.request.ID),
		attribute.String("user.id", t.request.User),
		attribute.String("luanette.org", t.request.Org),
	))
	if t.agent.options.Content {
		span.SetAttributes(attribute.String("gen_ai.input.messages", redact.Cut(t.request.Message, 4096)))
	}
	if traced := span.SpanContext(); traced.IsValid() {
		t.reply.Trace = traced.TraceID().String()
	}
	return ctx, func(err error) {
		span.SetAttributes(attribute.Int("luanette.chat.iterations", t.reply.Iterations), attribute.Int("luanette.chat.tool_calls", t.reply.ToolCalls))
		span.SetAttributes(usageAttributes(t.reply.Usage)...)
		endSpan(span, err)
		ended := TurnEnded{
			t.request.ID, t.request.Org, t.request.User, t.reply.Model, t.reply.Iterations, t.reply.ToolCalls,
			t.reply.Usage, time.Since(t.began).Milliseconds(), errorType(err),
		}
		t.agent.meters.turn(ctx, &ended, time.Since(t.began))
		t.agent.options.Bus.PublishFor(principal.OwnerOf(ctx), ended)
	}
}

func (t *turn) conversationID() string {
	id := t.request.Org + "/" + t.request.User
	if t.request.Conversation != "" {
		id += "/" + t.request.Conversation
	}
	return id
}

func errorType(err error) string {
	if err == nil {
		return ""
	}
	return string(fault.CodeOf(err))
}

// endSpan ends a span with its error, without content of the conversation.
func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, loggable(err))
		span.SetAttributes(attribute.String("error.type", errorType(err)))
	}
	span.End()
}

// asking starts the span of one request to the model, and logs it; done ends, measures and logs
// the answer.
func (t *turn) asking(ctx context.Context) (context.Context, func(llm.Answer, error)) {
	about, iteration := t.model.About(), slog.Int("iteration", t.reply.Iterations)
	ctx, span := t.agent.tracer.Start(ctx, "chat "+about.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.provider.name", about.Provider),
		attribute.String("gen_ai.request.model", about.Model),
	))
	t.note(ctx, slog.LevelInfo, t.modelEvent("request"), iteration, slog.Int("message_count", len(t.messages)),
		slog.String("provider", about.Provider), slog.String("model", about.Model), slog.Int("tools_offered", len(t.tools.offered)))
	began := time.Now()
	return ctx, func(a llm.Answer, err error) {
		took := time.Since(began)
		ms := slog.Int64("duration_ms", took.Milliseconds())
		span.SetAttributes(
			attribute.String("gen_ai.response.model", a.Model),
			attribute.String("gen_ai.response.id", a.ID),
			attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(a.Stop)}),
			attribute.Int("luanette.llm.attempts", a.Attempts),
		)
		span.SetAttributes(usageAttributes(a.Usage)...)
		if err != nil {
			status, _ := llm.Refusal(err)
			t.note(ctx, slog.LevelError, t.modelEvent("error"), iteration, slog.String("error", loggable(err)),
				slog.Int("status_code", status), slog.Int("attempts", a.Attempts), ms)
		} else {
			t.note(ctx, slog.LevelInfo, t.modelEvent("response"), iteration, slog.Int("tool_calls_count", len(a.Uses())),
				ms, slog.String("stop_reason", string(a.Stop)), slog.Int("attempts", a.Attempts),
				slog.Int64("input_tokens", a.Usage.Input), slog.Int64("output_tokens", a.Usage.Output),
				slog.Int64("cache_read_tokens", a.Usage.CacheRead), slog.Int64("cache_write_tokens", a.Usage.CacheWrite),
				slog.Float64("cost_usd", a.Usage.Cost), t.content("text", a.Text()))
		}
		t.agent.meters.answer(ctx, about, t.request.Org, a, err, took)
		endSpan(span, err)
	}
}

func usageAttributes(u llm.Usage) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.Int64("gen_ai.usage.input_tokens", u.Input+u.CacheRead+u.CacheWrite),
		attribute.Int64("gen_ai.usage.output_tokens", u.Output),
		attribute.Int64("gen_ai.usage.cache_read.input_tokens", u.CacheRead),
		attribute.Int64("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite),
		attribute.Float64("luanette.chat.cost_usd", u.Cost),
	}
}

// using starts the span of one tool call, and logs it; done ends and logs it.
func (t *turn) using(ctx context.Context, use llm.Use, shown string) (context.Context, func(outcome)) {
	ctx, span := t.agent.tracer.Start(ctx, "execute_tool "+shown, trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", shown),
		attribute.String("gen_ai.tool.call.id", use.ID),
		attribute.String("gen_ai.tool.type", "function"),
	))
	if t.agent.options.Content {
		span.SetAttributes(attribute.String("gen_ai.tool.call.arguments", redact.JSON(use.Input)))
	}
	t.note(ctx, slog.LevelInfo, "tool_execution_start", slog.String("tool_name", shown), slog.Int("iteration", t.reply.Iterations),
		slog.String("tool_call_id", use.ID), t.content("arguments", string(use.Input)))
	if runsCode(shown) {
		var in struct{ Code string }
		_ = json.Unmarshal(use.Input, &in) // invalid arguments have no code
		t.note(ctx, slog.LevelInfo, "code_execution_start", slog.Int("code_length", len(in.Code)), slog.String("tool_name", shown))
	}
	began := time.Now()
	return ctx, func(o outcome) {
		t.noteUsed(ctx, shown, o, time.Since(began))
		if o.failed {
			span.SetStatus(codes.Error, o.reason())
			span.SetAttributes(attribute.String("error.type", o.kind()))
		}
		span.End()
	}
}

// kind returns the type of a tool's failure.
func (o outcome) kind() string {
	if o.err != nil {
		return errorType(o.err)
	}
	return "tool_error"
}

// meters record metrics; those that are nil record nothing.
type meters struct {
	tokens metric.Int64Histogram
	took   metric.Float64Histogram
	cost   metric.Float64Counter
	turns  metric.Float64Histogram
}

func newMeters(m metric.Meter) meters {
	if m == nil {
		return meters{}
	}
	var all meters
	var errs [4]error
	all.tokens, errs[0] = m.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"), metric.WithDescription("tokens of one answer"))
	all.took, errs[1] = m.Float64Histogram("gen_ai.client.operation.duration", metric.WithUnit("s"), metric.WithDescription("how long the model took to answer"))
	all.cost, errs[2] = m.Float64Counter("luanette.chat.cost", metric.WithUnit("USD"), metric.WithDescription("what answers cost by the price table"))
	all.turns, errs[3] = m.Float64Histogram("luanette.chat.turn.duration", metric.WithUnit("s"), metric.WithDescription("how long messages took to answer"))
	for _, err := range errs {
		if err != nil {
			return meters{}
		}
	}
	return all
}

func (m meters) answer(ctx context.Context, about llm.About, org string, a llm.Answer, err error, took time.Duration) {
	if m.took == nil {
		return
	}
	who := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", about.Provider),
		attribute.String("gen_ai.request.model", about.Model), attribute.String("luanette.org", org),
	}
	for kind, n := range map[string]int64{"input": a.Usage.Input + a.Usage.CacheRead + a.Usage.CacheWrite, "output": a.Usage.Output} {
		m.tokens.Record(ctx, n, metric.WithAttributes(append(who[:len(who):len(who)], attribute.String("gen_ai.token.type", kind))...))
	}
	m.cost.Add(ctx, a.Usage.Cost, metric.WithAttributes(who...))
	if err != nil {
		who = append(who, attribute.String("error.type", errorType(err)))
	}
	m.took.Record(ctx, took.Seconds(), metric.WithAttributes(who...))
}

func (m meters) turn(ctx context.Context, e *TurnEnded, took time.Duration) {
	if m.turns == nil {
		return
	}
	who := []attribute.KeyValue{attribute.String("gen_ai.request.model", e.Model), attribute.String("luanette.org", e.Org)}
	if e.ErrorType != "" {
		who = append(who, attribute.String("error.type", e.ErrorType))
	}
	m.turns.Record(ctx, took.Seconds(), metric.WithAttributes(who...))
}

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

// runsCode reports whether a tool runs code that the model wrote.
func runsCode(tool string) bool { return tool == "execute_code" || tool == "lua_eval" }

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
var codeLine = lazyregexp.New(`(?::|\bline )(\d+)\b`)

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
