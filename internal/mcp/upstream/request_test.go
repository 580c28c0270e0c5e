package upstream_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// A request has a client span below its caller's, passes its context to the server,
// and records the outcome, including a tool's own error.
func TestRequestsAreTraced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("t")
		reader := sdkmetric.NewManualReader()
		meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("t")
		s := newTestManager(t, func(o *upstream.Options) { o.Tracer, o.Propagator, o.Meter = tracer, propagation.TraceContext{}, meter })
		said := ""
		s.fake.handle = func(_ context.Context, m wire.Message) (json.RawMessage, error) {
			said, _ = rawjson.GetText(wire.Meta(m.Params), "traceparent")
			switch name, _ := rawjson.GetText(m.Params, "name"); name {
			case "read":
				return json.RawMessage(`{"content":[]}`), nil
			case "write":
				return json.RawMessage(`{"content":[],"isError":true}`), nil
			default:
				return nil, wire.Errorf(-32099, "no")
			}
		}
		s.add(t, upstream.Spec{})
		for name, want := range map[string]string{"read": "", "write": "tool_error", "other": "-32099"} {
			spans.Reset()
			ctx, parent := tracer.Start(t.Context(), "caller")
			_, _ = s.Call(ctx, tool.Call{Ref: ref(name)})
			ended := spans.Ended()
			if len(ended) != 1 {
				t.Fatalf("%s: %d spans", name, len(ended))
			}
			span := ended[0]
			if span.Name() != "tools/call "+name || span.SpanKind() != trace.SpanKindClient || span.Parent().SpanID() != parent.SpanContext().SpanID() {
				t.Errorf("%s: span %q of kind %s below %s", name, span.Name(), span.SpanKind(), span.Parent().SpanID())
			}
			if !strings.Contains(said, span.SpanContext().SpanID().String()) {
				t.Errorf("%s: the server receives the span %s, not %s", name, said, span.SpanContext().SpanID())
			}
			attributes := attribute.NewSet(span.Attributes()...)
			for key, want := range map[attribute.Key]string{
				"error.type": want, "luanette.upstream": "test", "mcp.protocol.version": "2025-11-25", "network.transport": "tcp",
			} {
				if got, _ := attributes.Value(key); got.String() != want && (want != "" || got.Type() != attribute.EMPTY) {
					t.Errorf("%s: %s is %q, want %q", name, key, got.String(), want)
				}
			}
			if id, _ := attributes.Value("jsonrpc.request.id"); id.AsString() == "" {
				t.Errorf("%s: the span has no request id", name)
			}
		}
		checkMeasured(t, reader, map[string]uint64{"tools/call read": 1, "tools/call write tool_error": 1, "tools/call -32099": 1})
	})
}

// checkMeasured compares the counted calls, as "method tool error", and the states of the
// upstreams.
func checkMeasured(t *testing.T, reader *sdkmetric.ManualReader, want map[string]uint64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got, states := map[string]uint64{}, []string{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				if words := texts(p.Attributes, "mcp.method.name", "gen_ai.tool.name", "error.type"); m.Name == "mcp.client.operation.duration" && words[0] == wire.MethodToolsCall {
					got[strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")] += p.Count
				}
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				states = append(states, texts(p.Attributes, "luanette.upstream", "state")...)
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("measured %v, want %v", got, want)
	}
	if !slices.Equal(states, []string{"test", "connected"}) {
		t.Errorf("states %v", states)
	}
}

func texts(set attribute.Set, keys ...attribute.Key) (list []string) {
	for _, key := range keys {
		value, _ := set.Value(key)
		list = append(list, value.AsString())
	}
	return list
}
