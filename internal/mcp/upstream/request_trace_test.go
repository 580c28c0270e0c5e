package upstream_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/propagation"
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
		s := newTestManager(t, func(o *upstream.Options) { o.Tracer, o.Propagator = tracer, propagation.TraceContext{} })
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
			got := ""
			for _, a := range span.Attributes() {
				if a.Key == "error.type" {
					got = a.Value.AsString()
				}
			}
			if got != want {
				t.Errorf("%s: error.type is %q, want %q", name, got, want)
			}
		}
	})
}
