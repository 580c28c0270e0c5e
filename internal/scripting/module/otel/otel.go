// Package otel is the otel module of scripts: the run's span, and metrics.
package otel

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
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
	return host.Module{Name: "otel", Page: page, Funcs: []host.Func{
		{Name: "trace_id", Kind: host.Nondeterministic, Effect: traceID},
		{Name: "span_id", Kind: host.Nondeterministic, Effect: spanID},
		{Name: "traceparent", Kind: host.Nondeterministic, Effect: traceparent},
		{Name: "event", Kind: host.Observe, Effect: event},
		{Name: "set_attribute", Kind: host.Observe, Effect: setAttribute},
		{Name: "record_metric", Kind: host.Observe, Effect: recordMetric},
	}}
}

func traceID(ctx context.Context, _ *host.Services, _ host.Args) ([]host.Value, error) {
	return []host.Value{trace.SpanContextFromContext(ctx).TraceID().String()}, nil
}

func spanID(ctx context.Context, _ *host.Services, _ host.Args) ([]host.Value, error) {
	return []host.Value{trace.SpanContextFromContext(ctx).SpanID().String()}, nil
}

func traceparent(ctx context.Context, _ *host.Services, _ host.Args) ([]host.Value, error) {
	span := trace.SpanContextFromContext(ctx)
	return []host.Value{fmt.Sprintf("00-%s-%s-%s", span.TraceID(), span.SpanID(), span.TraceFlags())}, nil
}

func event(ctx context.Context, _ *host.Services, args host.Args) ([]host.Value, error) {
	name, err := args.String(1)
	if err != nil {
		return nil, err
	}
	attributes, err := attributesAt(args, 2)
	if err != nil {
		return nil, err
	}
	trace.SpanFromContext(ctx).AddEvent(name, trace.WithAttributes(attributes...))
	return nil, nil
}

func setAttribute(ctx context.Context, _ *host.Services, args host.Args) ([]host.Value, error) {
	key, err := args.String(1)
	if err != nil {
		return nil, err
	}
	if telemetry.Reserved(key) {
		return nil, fault.New(fault.InvalidParams, "set_attribute: %s says whose the span is, and cannot be set", key).WithHint("use a key of your own")
	}
	trace.SpanFromContext(ctx).SetAttributes(toAttribute(key, args.At(2)))
	return nil, nil
}

func recordMetric(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	name, err := args.String(1)
	if err != nil {
		return nil, err
	}
	value, err := args.Float(2)
	if err != nil {
		return nil, err
	}
	attributes, err := attributesAt(args, 3)
	if err != nil {
		return nil, err
	}
	histogram, err := w.Meter.Float64Histogram(name)
	if err != nil {
		return nil, fault.New(fault.InvalidParams, "otel.record_metric: %v", err).
			WithHint("a metric's name begins with a letter and has letters, digits, '_', '.', '-' and '/'")
	}
	histogram.Record(ctx, value, metric.WithAttributes(attributes...))
	return nil, nil
}

// attributesAt reads a table of attributes, sorted by key.
func attributesAt(args host.Args, i int) ([]attribute.KeyValue, error) {
	var table map[string]any
	if err := args.Decode(i, &table); err != nil {
		return nil, err
	}
	attributes := make([]attribute.KeyValue, 0, len(table))
	for key, value := range table {
		attributes = append(attributes, toAttribute(key, value))
	}
	slices.SortFunc(attributes, func(a, b attribute.KeyValue) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return attributes, nil
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
