package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/observe/telemetry/params"
)

// newConsole returns the handler that writes for people or for log collectors.
func newConsole(o Options, level slog.Leveler) (slog.Handler, error) {
	out := o.Stderr
	if out == nil {
		out = io.Discard
	}
	options := &slog.HandlerOptions{Level: level}
	switch o.LogFormat {
	case "", "text":
		return slog.NewTextHandler(out, options), nil
	case "json":
		options.ReplaceAttr = inSeconds
		return slog.NewJSONHandler(out, options), nil
	default:
		return nil, fault.New(fault.Config, "unknown log format %q", o.LogFormat).
			WithHint("use text or json")
	}
}

// inSeconds writes durations as seconds: nanoseconds without a unit tell nobody anything.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.Float64(a.Key, a.Value.Duration().Seconds())
	}
	return a
}

// newHandler returns a handler that writes to console with trace ids and, unless
// exported is nil, to the collector as well. The console's level applies to both.
func newHandler(console slog.Handler, exported log.LoggerProvider) slog.Handler {
	h := newTraced(console)
	if exported == nil {
		return h
	}
	return both{h, otelslog.NewHandler("luanette", otelslog.WithLoggerProvider(exported))}
}

// traced adds the trace_id and span_id of a record's context at the top level, even if
// groups are open.
type traced struct {
	root slog.Handler // without groups and attributes
	next slog.Handler // root with all groups and attributes
	with []func(slog.Handler) slog.Handler
	deep bool // a group is open
}

func newTraced(h slog.Handler) *traced { return &traced{root: h, next: h} }

func (t *traced) Enabled(ctx context.Context, level slog.Level) bool {
	return t.root.Enabled(ctx, level)
}

func (t *traced) Handle(ctx context.Context, r slog.Record) error {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return t.next.Handle(ctx, r)
	}
	ids := []slog.Attr{slog.String(KeyTraceID, span.TraceID().String()), slog.String(KeySpanID, span.SpanID().String())}
	if !t.deep {
		r = r.Clone()
		r.AddAttrs(ids...)
		return t.next.Handle(ctx, r)
	}
	h := t.root.WithAttrs(ids)
	for _, with := range t.with {
		h = with(h)
	}
	return h.Handle(ctx, r)
}

func (t *traced) WithAttrs(attrs []slog.Attr) slog.Handler {
	return t.and(t.deep, func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

func (t *traced) WithGroup(name string) slog.Handler {
	return t.and(t.deep || name != "", func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (t *traced) and(deep bool, with func(slog.Handler) slog.Handler) slog.Handler {
	return &traced{root: t.root, next: with(t.next), with: append(slices.Clip(t.with), with), deep: deep}
}

// both passes records to two handlers; the first decides which are enabled.
type both struct{ first, second slog.Handler }

func (b both) Enabled(ctx context.Context, level slog.Level) bool { return b.first.Enabled(ctx, level) }

func (b both) Handle(ctx context.Context, r slog.Record) error {
	return errors.Join(b.first.Handle(ctx, r.Clone()), b.second.Handle(ctx, r))
}

func (b both) WithAttrs(attrs []slog.Attr) slog.Handler {
	return both{b.first.WithAttrs(attrs), b.second.WithAttrs(attrs)}
}

func (b both) WithGroup(name string) slog.Handler {
	return both{b.first.WithGroup(name), b.second.WithGroup(name)}
}

// argumentKeys are the attributes that contain arguments of calls, and the prefixes of
// such attributes.
var argumentKeys = []string{"mcp.params", "script.params", "gen_ai.tool.call.arguments"}

func isArgument(key attribute.Key) bool {
	return slices.ContainsFunc(argumentKeys, func(name string) bool {
		rest, ok := strings.CutPrefix(string(key), name)
		return ok && rest != ".bytes" && (rest == "" || rest[0] == '.')
	})
}

// randomIDs are the attributes whose values are random and not secret: they are there to
// be searched for.
var randomIDs = []string{
	"request_id", "message_id", "webhook_id", "tool_call_id", "conversation", "node", KeyTraceID, KeySpanID, KeyJob, KeyScript, KeySession,
	"gen_ai.response.id", "gen_ai.conversation.id", "gen_ai.tool.call.id", "jsonrpc.request.id", "job.id", "script.hash",
}

// maskedSpan is a span as it is exported: without what looks secret and, unless they are
// wanted, without arguments.
type maskedSpan struct {
	sdktrace.ReadOnlySpan
	arguments bool
}

func masked(spans []sdktrace.ReadOnlySpan, arguments bool) []sdktrace.ReadOnlySpan {
	list := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		list[i] = maskedSpan{s, arguments}
	}
	return list
}

// Attributes are those of the span, masked.
func (s maskedSpan) Attributes() []attribute.KeyValue {
	return maskAttributes(s.ReadOnlySpan.Attributes(), s.arguments)
}

// Events are those of the span, masked.
func (s maskedSpan) Events() []sdktrace.Event {
	events := slices.Clone(s.ReadOnlySpan.Events())
	for i := range events {
		events[i].Attributes = maskAttributes(events[i].Attributes, s.arguments)
	}
	return events
}

// Status is that of the span, masked.
func (s maskedSpan) Status() sdktrace.Status {
	status := s.ReadOnlySpan.Status()
	status.Description = redact.Text(status.Description)
	return status
}

// maskAttributes returns list itself if there is nothing to mask.
func maskAttributes(list []attribute.KeyValue, arguments bool) []attribute.KeyValue {
	list = params.Expand(list)
	var changed []attribute.KeyValue
	for i, a := range list {
		drop := !arguments && isArgument(a.Key)
		shown, differs := maskValue(a)
		if changed == nil && (drop || differs) {
			changed = append(make([]attribute.KeyValue, 0, len(list)), list[:i]...)
		}
		if changed != nil && !drop {
			changed = append(changed, shown)
		}
	}
	if changed == nil {
		return list
	}
	return changed
}

func maskValue(a attribute.KeyValue) (shown attribute.KeyValue, differs bool) {
	if a.Value.Type() != attribute.STRING || slices.Contains(randomIDs, string(a.Key)) {
		return a, false
	}
	text := redact.Text(a.Value.AsString())
	differs = text != a.Value.AsString()
	if differs {
		a.Value = attribute.StringValue(text)
	}
	return a, differs
}

// maskingHandler hides what looks secret in log records.
type maskingHandler struct{ next slog.Handler }

func (h maskingHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h maskingHandler) Handle(ctx context.Context, r slog.Record) error {
	shown := slog.NewRecord(r.Time, r.Level, redact.Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		shown.AddAttrs(maskAttr(a))
		return true
	})
	return h.next.Handle(ctx, shown)
}

func (h maskingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	shown := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		shown[i] = maskAttr(a)
	}
	return maskingHandler{h.next.WithAttrs(shown)}
}

func (h maskingHandler) WithGroup(name string) slog.Handler {
	return maskingHandler{h.next.WithGroup(name)}
}

// maskAttr masks texts, errors and what is logged by its String method. Other values stay
// as they are, if the handler can write them.
func maskAttr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString:
		return maskText(a, a.Value.String())
	case slog.KindGroup:
		group := slices.Clone(a.Value.Group())
		for i := range group {
			group[i] = maskAttr(group[i])
		}
		a.Value = slog.GroupValue(group...)
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case error:
			return maskText(a, v.Error())
		case fmt.Stringer:
			return maskText(a, v.String())
		}
	}
	return a
}

func maskText(a slog.Attr, text string) slog.Attr {
	if shown := redact.Text(text); shown != text && !slices.Contains(randomIDs, a.Key) {
		a.Value = slog.StringValue(shown)
	}
	return a
}
