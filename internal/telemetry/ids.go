package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// idProvider serves when nothing is exported: its spans record nothing but have
// real ids, so that log lines, scripts and upstreams can still tell which
// requests belong together.
type idProvider struct{ noop.TracerProvider }

func (idProvider) Tracer(string, ...trace.TracerOption) trace.Tracer { return idTracer{} }

type idTracer struct{ noop.Tracer }

// Start continues the trace of ctx, or begins one.
func (idTracer) Start(ctx context.Context, _ string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanContextFromContext(ctx)
	if len(options) > 0 {
		if config := trace.NewSpanStartConfig(options...); config.NewRoot() {
			parent = trace.SpanContext{}
		}
	}
	id := parent.TraceID()
	if !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64()|1)
	}
	var span trace.SpanID
	binary.NativeEndian.PutUint64(span[:], rand.Uint64()|1)
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: span, TraceFlags: parent.TraceFlags(), TraceState: parent.TraceState(),
	}))
	return ctx, trace.SpanFromContext(ctx)
}
