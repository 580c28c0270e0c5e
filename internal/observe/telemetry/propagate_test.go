package telemetry_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/observe/telemetry"
)

const traceparent = "00-" + traceID + "-" + spanID + "-01"

func TestHeaderCarriesTheTrace(t *testing.T) {
	t.Parallel()
	in := http.Header{"Traceparent": {traceparent}, "Tracestate": {"vendor=1"}, "Baggage": {"user=alice"}}
	ctx := telemetry.Extract(t.Context(), in)
	if got := trace.SpanContextFromContext(ctx).TraceID().String(); got != traceID {
		t.Fatalf("trace %s, want %s", got, traceID)
	}
	out := http.Header{}
	telemetry.Inject(ctx, out)
	if !maps.EqualFunc(out, in, slices.Equal) {
		t.Errorf("injected %v, want %v", out, in)
	}
}

func TestNoTrace(t *testing.T) {
	t.Parallel()
	out := http.Header{}
	if telemetry.Inject(t.Context(), out); len(out) > 0 {
		t.Errorf("injected %v without a trace", out)
	}
	for _, header := range []http.Header{nil, {}, {"Traceparent": {"nonsense"}}} {
		ctx := telemetry.Extract(t.Context(), header)
		if trace.SpanContextFromContext(ctx).IsValid() {
			t.Errorf("a trace was found in %v", header)
		}
	}
}
