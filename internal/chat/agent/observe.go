package agent

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/principal"
)

// TurnStarted is published when a turn begins.
type TurnStarted struct {
	RequestID string `json:"request_id"`
	Org       string `json:"org,omitempty"`
	User      string `json:"user"`
	Model     string `json:"model"`
}

// EventType is "chat.turn_started".
func (TurnStarted) EventType() string { return "chat.turn_started" }

// EventKey is the request.
func (e TurnStarted) EventKey() string { return e.RequestID }

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

// observe starts the turn's span and publishes TurnStarted; finish ends both.
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
	t.publish(ctx, TurnStarted{t.request.ID, t.request.Org, t.request.User, t.reply.Model})
	return ctx, func(err error) {
		span.SetAttributes(attribute.Int("luanette.chat.iterations", t.reply.Iterations), attribute.Int("luanette.chat.tool_calls", t.reply.ToolCalls))
		span.SetAttributes(usageAttributes(t.reply.Usage)...)
		endSpan(span, err)
		ended := TurnEnded{
			t.request.ID, t.request.Org, t.request.User, t.reply.Model, t.reply.Iterations, t.reply.ToolCalls,
			t.reply.Usage, time.Since(t.began).Milliseconds(), errorType(err),
		}
		t.agent.meters.turn(ctx, &ended, time.Since(t.began))
		t.publish(ctx, ended)
	}
}

func (t *turn) conversationID() string {
	id := t.request.Org + "/" + t.request.User
	if t.request.Conversation != "" {
		id += "/" + t.request.Conversation
	}
	return id
}

func (t *turn) publish(ctx context.Context, p interface{ EventType() string }) {
	if t.agent.options.Bus != nil {
		t.agent.options.Bus.PublishFor(principal.OwnerOf(ctx), p)
	}
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

// iterationSpan covers one request to the model and the tools it leads to.
func (t *turn) iterationSpan(ctx context.Context) (context.Context, trace.Span) {
	return t.agent.tracer.Start(ctx, "iteration", trace.WithAttributes(
		attribute.Int("luanette.chat.iteration", t.reply.Iterations), attribute.String("request_id", t.request.ID)))
}

// asking starts the span of one request to the model; done ends, measures and logs it.
func (t *turn) asking(ctx context.Context) (context.Context, func(llm.Answer, error)) {
	about := t.model.About()
	ctx, span := t.agent.tracer.Start(ctx, "chat "+about.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.provider.name", about.Provider),
		attribute.String("gen_ai.request.model", about.Model),
	))
	t.noteAsking(ctx)
	began := time.Now()
	return ctx, func(a llm.Answer, err error) {
		took := time.Since(began)
		span.SetAttributes(
			attribute.String("gen_ai.response.model", a.Model),
			attribute.String("gen_ai.response.id", a.ID),
			attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(a.Stop)}),
			attribute.Int("luanette.llm.attempts", a.Attempts),
		)
		span.SetAttributes(usageAttributes(a.Usage)...)
		t.noteAsked(ctx, a, err, took)
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

// using starts the span of one tool call; done ends and logs it.
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
	t.noteUsing(ctx, use, shown)
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
