package telemetry

import (
	"testing"

	"go.opentelemetry.io/otel/trace"
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
