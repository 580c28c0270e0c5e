package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"

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
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceIDOf(ctx), SpanID: newSpanID()}))
	return ctx, trace.SpanFromContext(ctx)
}

// ids makes the ids of the SDK's spans.
type ids struct{}

// NewIDs returns the ids of the first span of a trace.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	return traceIDOf(ctx), newSpanID()
}

// NewSpanID returns the id of a further span.
func (ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return newSpanID() }

type traceIDKey struct{}

// WithTraceID makes a UUID the id of the trace that begins in ctx, so that it can be found
// by what it is about. Any other text changes nothing.
func WithTraceID(ctx context.Context, uuid string) context.Context {
	id, err := trace.TraceIDFromHex(TraceID(uuid))
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, traceIDKey{}, id)
}

// TraceID returns the id of the trace of a UUID.
func TraceID(uuid string) string { return strings.ReplaceAll(uuid, "-", "") }

func traceIDOf(ctx context.Context) trace.TraceID {
	if id, ok := ctx.Value(traceIDKey{}).(trace.TraceID); ok {
		return id
	}
	return newTraceID()
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
