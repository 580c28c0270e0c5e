package telemetry

import (
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/observe/telemetry/otlptest"
)

func TestSpansHaveIDsThoughNothingIsExported(t *testing.T) {
	t.Parallel()
	tel, err := Setup(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	tracer := tel.Tracer("x")
	ctx, outer := tracer.Start(t.Context(), "outer")
	_, inner := tracer.Start(ctx, "inner")
	_, root := tracer.Start(ctx, "root", trace.WithNewRoot())
	a, b, c := outer.SpanContext(), inner.SpanContext(), root.SpanContext()
	if !a.IsValid() || !b.IsValid() || !a.Equal(b) {
		t.Errorf("outer %v, inner %v", a, b)
	}
	if !c.IsValid() || c.TraceID() == a.TraceID() {
		t.Errorf("a new root stayed in the trace: %v", c)
	}
	if inner.IsRecording() || a.IsSampled() {
		t.Error("something is recorded")
	}
}

func BenchmarkSpanWithoutExport(b *testing.B) {
	tel, err := Setup(b.Context(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	tracer := tel.Tracer("x")
	b.ReportAllocs()
	for b.Loop() {
		_, span := tracer.Start(b.Context(), "x")
		span.End()
	}
}

// A trace can be given the id of what it is about, whether it is exported, stored or
// neither.
func TestTraceOfAUUID(t *testing.T) {
	t.Parallel()
	sink := otlptest.Start(t)
	const uuid = "0b5b7f0e-4f5e-4c43-9d3a-1f2e3d4c5b6a"
	for name, o := range map[string]Options{"neither": {}, "stored": {RecentTraces: 5}, "exported": {RecentTraces: 5, Endpoint: sink.HTTP}} {
		tracer := setupInMemory(t, o).Tracer("x")
		ctx, outer := tracer.Start(WithTraceID(t.Context(), uuid), "job")
		_, inner := tracer.Start(ctx, "call")
		if a, b := outer.SpanContext().TraceID().String(), inner.SpanContext().TraceID().String(); a != TraceID(uuid) || b != a {
			t.Errorf("%s: %s and %s, want %s", name, a, b, TraceID(uuid))
		}
		_, other := tracer.Start(WithTraceID(t.Context(), "not a UUID"), "job")
		if id := other.SpanContext().TraceID(); !id.IsValid() || id.String() == TraceID(uuid) {
			t.Errorf("%s: %s", name, id)
		}
	}
}
