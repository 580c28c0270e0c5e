package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// idProvider is used when nothing is exported. Its spans record nothing but have real
// ids, so that log lines, scripts and upstreams can still correlate requests. If the
// context already has a span, that one is used: a span of ours would be missing in
// every trace viewer.
type idProvider struct{ noop.TracerProvider }

func (idProvider) Tracer(string, ...trace.TracerOption) trace.Tracer { return idTracer{} }

type idTracer struct{ noop.Tracer }

// Start returns the span of ctx, or begins a trace.
func (idTracer) Start(ctx context.Context, _ string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	root := len(options) > 0 && isRoot(options)
	if !root && trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, trace.SpanFromContext(ctx)
	}
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: newTraceID(), SpanID: newSpanID()}))
	return ctx, trace.SpanFromContext(ctx)
}

func newTraceID() (id trace.TraceID) {
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64()|1) // never all zero
	return id
}

func newSpanID() (id trace.SpanID) {
	binary.NativeEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

func isRoot(options []trace.SpanStartOption) bool {
	config := trace.NewSpanStartConfig(options...)
	return config.NewRoot()
}
