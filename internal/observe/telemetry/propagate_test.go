package telemetry_test

import (
	"maps"
	"net/http"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/observe/telemetry"
)

const traceparent = "00-" + traceID + "-" + spanID + "-01"

func TestMetaCarriesTheTrace(t *testing.T) {
	t.Parallel()
	meta := map[string]any{"progressToken": 7, "traceparent": traceparent, "tracestate": "vendor=1", "baggage": "user=alice"}
	ctx := telemetry.ExtractMeta(t.Context(), meta)
	if got := trace.SpanContextFromContext(ctx).TraceID().String(); got != traceID {
		t.Fatalf("trace %s, want %s", got, traceID)
	}

	out := telemetry.InjectMeta(ctx, map[string]any{"progressToken": 7})
	if !maps.Equal(out, meta) {
		t.Errorf("injected %v, want %v", out, meta)
	}
	if out := telemetry.InjectMeta(ctx, nil); out["traceparent"] != traceparent {
		t.Errorf("injected %v into nothing", out)
	}

	header := http.Header{}
	telemetry.Inject(ctx, header)
	if got := header.Get("Traceparent"); got != traceparent {
		t.Errorf("header %q, want %q", got, traceparent)
	}
}

func TestNoTrace(t *testing.T) {
	t.Parallel()
	if out := telemetry.InjectMeta(t.Context(), nil); out != nil {
		t.Errorf("injected %v without a trace", out)
	}
	for _, meta := range []map[string]any{nil, {}, {"traceparent": 7}, {"traceparent": "nonsense"}} {
		ctx := telemetry.ExtractMeta(t.Context(), meta)
		if trace.SpanContextFromContext(ctx).IsValid() {
			t.Errorf("a trace was found in %v", meta)
		}
	}
}
