package telemetry

import (
	"context"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// newMemoryProvider returns a provider of spans that are only stored in memory.
func newMemoryProvider(recent *Traces) *sdktrace.TracerProvider {
	limits := sdktrace.NewSpanLimits()
	limits.AttributeCountLimit, limits.EventCountLimit = maxAttributes, maxEvents
	return sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids{}), sdktrace.WithSampler(recordOnly{}), sdktrace.WithRawSpanLimits(limits), sdktrace.WithSpanProcessor(inheritor{}), sdktrace.WithSpanProcessor(memoryProcessor{recent}))
}

// recordOnly records every span without the sampled flag, because the flag would
// promise upstreams that the span is exported.
type recordOnly struct{}

func (recordOnly) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	return sdktrace.SamplingResult{Decision: sdktrace.RecordOnly, Tracestate: trace.SpanContextFromContext(p.ParentContext).TraceState()}
}

func (recordOnly) Description() string { return "RecordOnly" }

// memoryProcessor stores ended spans in the traces in memory.
type memoryProcessor struct{ traces *Traces }

func (memoryProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

func (p memoryProcessor) OnEnd(s sdktrace.ReadOnlySpan) {
	stored := storedSpan{
		id: s.SpanContext().SpanID(), parent: s.Parent().SpanID(), name: s.Name(), kind: s.SpanKind(),
		start: s.StartTime(), took: s.EndTime().Sub(s.StartTime()), attributes: s.Attributes(),
	}
	if s.Parent().IsRemote() && !s.SpanContext().IsSampled() { // the caller's span is not exported either
		stored.parent = trace.SpanID{}
	}
	stored.failed, stored.failure = failure(s.Status().Code, s.Status().Description)
	for _, e := range s.Events() {
		stored.events = append(stored.events, SpanEvent{Name: e.Name, Time: e.Time, Attributes: texts(e.Attributes)})
	}
	for _, l := range s.Links() {
		stored.links = append(stored.links, SpanLink{Trace: l.SpanContext.TraceID().String(), Span: l.SpanContext.SpanID().String()})
	}
	p.traces.add(s.SpanContext().TraceID(), &stored)
}

func (memoryProcessor) Shutdown(context.Context) error   { return nil }
func (memoryProcessor) ForceFlush(context.Context) error { return nil }
