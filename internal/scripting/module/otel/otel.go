// Package otel is the otel module of scripts: the run's span, and metrics.
package otel

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed otel.md
var page string

// Module is the global otel.
func Module() host.Module {
	return host.Module{Name: "otel", Text: host.Text{Page: page}, Funcs: []host.Func{
		{Name: "trace_id", Kind: host.Nondeterministic, Effect: host.Bind(traceID), Inspected: host.Answers(trace.TraceID{}.String())},
		{Name: "span_id", Kind: host.Nondeterministic, Effect: host.Bind(spanID), Inspected: host.Answers(trace.SpanID{}.String())},
		{Name: "traceparent", Kind: host.Nondeterministic, Effect: host.Bind(traceparent), Inspected: host.Answers(traceparent(context.Background()))},
		{Name: "event", Kind: host.Observe, Effect: host.Bind(event)},
		{Name: "set_attribute", Kind: host.Observe, Effect: host.Bind(setAttribute)},
		{Name: "record_metric", Kind: host.Observe, Effect: host.Bind(recordMetric)},
	}}
}

func traceID(ctx context.Context) string {
	return trace.SpanContextFromContext(ctx).TraceID().String()
}

func spanID(ctx context.Context) string {
	return trace.SpanContextFromContext(ctx).SpanID().String()
}

func traceparent(ctx context.Context) string {
	span := trace.SpanContextFromContext(ctx)
	return fmt.Sprintf("00-%s-%s-%s", span.TraceID(), span.SpanID(), span.TraceFlags())
}

func event(ctx context.Context, name string, table map[string]any) {
	trace.SpanFromContext(ctx).AddEvent(name, trace.WithAttributes(attributes(table)...))
}

func setAttribute(ctx context.Context, key string, value host.Value) error {
	if telemetry.Reserved(key) {
		return fault.New(fault.InvalidParams, "set_attribute: %s says whose the span is, and cannot be set", key).WithHint("use a key of your own")
	}
	trace.SpanFromContext(ctx).SetAttributes(toAttribute(key, value))
	return nil
}

func recordMetric(ctx context.Context, w *host.Services, name string, value float64, table map[string]any) error {
	histogram, err := w.Meter.Float64Histogram(name)
	if err != nil {
		return fault.New(fault.InvalidParams, "otel.record_metric: %v", err).
			WithHint("a metric's name begins with a letter and has letters, digits, '_', '.', '-' and '/'")
	}
	histogram.Record(ctx, value, metric.WithAttributes(attributes(table)...))
	return nil
}

// attributes are those of a table, sorted by key.
func attributes(table map[string]any) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, len(table))
	for _, key := range slices.Sorted(maps.Keys(table)) {
		list = append(list, toAttribute(key, table[key]))
	}
	return list
}

func toAttribute(key string, value host.Value) attribute.KeyValue {
	switch v := value.(type) {
	case string:
		return attribute.String(key, v)
	case bool:
		return attribute.Bool(key, v)
	case int64:
		return attribute.Int64(key, v)
	case float64:
		if whole := int64(v); float64(whole) == v {
			return attribute.Int64(key, whole)
		}
		return attribute.Float64(key, v)
	case json.RawMessage:
		return attribute.String(key, string(v))
	default:
		return attribute.String(key, fmt.Sprint(v))
	}
}
