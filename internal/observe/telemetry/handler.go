package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
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
		return slog.NewJSONHandler(out, options), nil
	default:
		return nil, fault.New(fault.Config, "unknown log format %q", o.LogFormat).
			WithHint("use text or json")
	}
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
