package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
)

// exported hands spans that are exported to the traces in memory as well.
type exported struct{ traces *Traces }

func (exported) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

func (e exported) OnEnd(s sdktrace.ReadOnlySpan) {
	kept := step{
		id: s.SpanContext().SpanID(), parent: s.Parent().SpanID(), name: s.Name(), kind: s.SpanKind(),
		start: s.StartTime(), took: s.EndTime().Sub(s.StartTime()), attributes: s.Attributes(),
	}
	kept.failed, kept.failure = failure(s.Status().Code, s.Status().Description)
	for _, e := range s.Events() {
		kept.events = append(kept.events, SpanEvent{Name: e.Name, Time: e.Time, Attributes: texts(e.Attributes)})
	}
	e.traces.add(s.SpanContext().TraceID(), &kept)
}

func (exported) Shutdown(context.Context) error   { return nil }
func (exported) ForceFlush(context.Context) error { return nil }

// recorder is the provider when nothing is exported but traces are kept in
// memory. As idProvider's, its spans have the identity of the caller's span to the
// outside.
type recorder struct {
	embedded.TracerProvider
	traces *Traces
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return recordingTracer{provider: r}
}

type recordingTracer struct {
	noop.Tracer
	provider *recorder
}

// Start begins a span under that of ctx, or a trace.
func (t recordingTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(options...)
	s := t.begin(ctx, config.NewRoot())
	s.name, s.kind, s.start, s.attributes = name, config.SpanKind(), config.Timestamp(), config.Attributes()
	if s.start.IsZero() {
		s.start = time.Now()
	}
	return trace.ContextWithSpan(ctx, s), s
}

// begin makes a span that has its place in a trace.
func (t recordingTracer) begin(ctx context.Context, root bool) *recordedSpan {
	outer := trace.SpanFromContext(ctx)
	s := &recordedSpan{provider: t.provider, outside: outer.SpanContext(), step: step{id: newSpanID()}}
	if parent, ours := outer.(*recordedSpan); ours && !root {
		s.parent = parent.id
	}
	if root || !s.outside.IsValid() {
		s.outside = trace.NewSpanContext(trace.SpanContextConfig{TraceID: newTraceID(), SpanID: s.id})
	}
	return s
}

// Start begins a span as the tracer's own Start does. Every call makes some, and as
// options attributes are copied twice: where nobody but us keeps them they are taken
// over as they are, so nobody may change them afterwards.
func Start(ctx context.Context, tracer trace.Tracer, kind trace.SpanKind, name string, attributes []attribute.KeyValue, links ...trace.Link) (context.Context, trace.Span) {
	ours, ok := tracer.(recordingTracer)
	if !ok {
		return tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...), trace.WithLinks(links...))
	}
	s := ours.begin(ctx, false)
	s.name, s.kind, s.start, s.attributes = name, kind, time.Now(), attributes
	return trace.ContextWithSpan(ctx, s), s
}

// recordedSpan is a span under way. Once it has ended its step, which the traces in
// memory keep as it is, does not change any more.
type recordedSpan struct {
	embedded.Span
	provider *recorder
	outside  trace.SpanContext // what others are told

	mu sync.Mutex
	step
	ended bool
}

func (s *recordedSpan) SpanContext() trace.SpanContext       { return s.outside }
func (s *recordedSpan) TracerProvider() trace.TracerProvider { return s.provider }
func (s *recordedSpan) AddLink(trace.Link)                   {}

// IsRecording reports whether what is told to the span will be seen.
func (s *recordedSpan) IsRecording() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended
}

// change applies f while the span is under way.
func (s *recordedSpan) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		f()
	}
}

func (s *recordedSpan) SetName(name string) { s.change(func() { s.name = name }) }

func (s *recordedSpan) SetStatus(code codes.Code, description string) {
	s.change(func() { s.failed, s.failure = failure(code, description) })
}

func (s *recordedSpan) SetAttributes(attributes ...attribute.KeyValue) {
	s.change(func() {
		if room := attributesKept - len(s.attributes); room > 0 {
			s.attributes = append(s.attributes, attributes[:min(room, len(attributes))]...)
		}
	})
}

func (s *recordedSpan) AddEvent(name string, options ...trace.EventOption) {
	config := trace.NewEventConfig(options...)
	s.change(func() {
		if len(s.events) < eventsPerSpan {
			s.events = append(s.events, SpanEvent{Name: name, Time: config.Timestamp(), Attributes: texts(config.Attributes())})
		}
	})
}

func (s *recordedSpan) RecordError(err error, options ...trace.EventOption) {
	if err != nil {
		s.AddEvent("exception", append(options, trace.WithAttributes(attribute.String("exception.message", err.Error())))...)
	}
}

// End hands the span to the traces in memory.
func (s *recordedSpan) End(options ...trace.SpanEndOption) {
	config := trace.NewSpanEndConfig(options...)
	took := time.Since(s.start) // which asks one clock, where the time of day asks two
	if end := config.Timestamp(); !end.IsZero() {
		took = end.Sub(s.start)
	}
	s.change(func() {
		s.ended, s.took = true, took
		s.provider.traces.add(s.outside.TraceID(), &s.step)
	})
}
