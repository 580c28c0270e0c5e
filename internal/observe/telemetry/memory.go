package telemetry

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"

	"github.com/luanette/luanette/internal/core/principal"
)

// memoryProvider is used when nothing is exported. Its spans are only stored in memory,
// as records that become text when somebody looks (docs/decisions/015-spans.md). They
// lack the sampled flag, which would promise upstreams that they are exported.
type memoryProvider struct {
	embedded.TracerProvider
	recent *Traces
}

func (p memoryProvider) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return memoryTracer{recent: p.recent}
}

type memoryTracer struct {
	embedded.Tracer
	recent *Traces
}

// Start starts a span as a child of that of ctx. A span of the caller outside is not
// stored, so that it is the parent only in the ids that are passed on.
func (t memoryTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(options...)
	var parent trace.SpanContext
	if !config.NewRoot() {
		parent = trace.SpanContextFromContext(ctx)
	}
	id := parent.TraceID()
	if !id.IsValid() {
		id = traceIDOf(ctx)
	}
	s := &memorySpan{recent: t.recent, context: trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: newSpanID(), TraceFlags: parent.TraceFlags() &^ trace.FlagsSampled, TraceState: parent.TraceState(),
	})}
	s.id, s.name, s.kind, s.start = s.context.SpanID(), name, trace.ValidateSpanKind(config.SpanKind()), config.Timestamp()
	if s.start.IsZero() {
		s.start = time.Now()
	}
	if !parent.IsRemote() {
		s.parent = parent.SpanID()
	}
	s.owner, s.attributes = principal.OwnerOf(ctx), s.few[:0]
	s.SetAttributes(config.Attributes()...)
	s.SetAttributes(inherited(ctx)...)
	for _, l := range config.Links() {
		s.AddLink(l)
	}
	return trace.ContextWithSpan(ctx, s), s
}

// memorySpan is a span that is stored in memory when it ends.
type memorySpan struct {
	embedded.Span
	recent  *Traces
	context trace.SpanContext

	mu    sync.Mutex
	ended bool
	code  codes.Code
	set   int                     // how many attributes
	few   [4][]attribute.KeyValue // memory for the attributes of most spans
	storedSpan
}

func (s *memorySpan) SpanContext() trace.SpanContext { return s.context }

func (s *memorySpan) TracerProvider() trace.TracerProvider { return memoryProvider{recent: s.recent} }

func (s *memorySpan) IsRecording() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended
}

// change makes a change, unless the span has ended.
func (s *memorySpan) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		do()
	}
}

func (s *memorySpan) SetName(name string) { s.change(func() { s.name = name }) }

// SetAttributes stores the list itself, which many spans may share: it must not change.
func (s *memorySpan) SetAttributes(list ...attribute.KeyValue) {
	s.change(func() {
		if list = list[:min(len(list), maxAttributes-s.set)]; len(list) > 0 {
			s.attributes, s.set = append(s.attributes, list), s.set+len(list)
		}
	})
}

// SetStatus sets the status. As in the specification, OK is final and an error is not unset.
func (s *memorySpan) SetStatus(code codes.Code, description string) {
	s.change(func() {
		if code >= s.code {
			s.code = code
			s.failed, s.failure = failure(code, description)
		}
	})
}

func (s *memorySpan) RecordError(err error, options ...trace.EventOption) {
	if err != nil {
		s.AddEvent("exception", append(options, trace.WithAttributes(
			attribute.String("exception.type", fmt.Sprintf("%T", err)), attribute.String("exception.message", err.Error())))...)
	}
}

func (s *memorySpan) AddEvent(name string, options ...trace.EventOption) {
	config := trace.NewEventConfig(options...)
	s.change(func() {
		if len(s.events) == maxEvents {
			s.events = slices.Delete(s.events, 0, 1) // the latest say what went wrong
		}
		s.events = append(s.events, SpanEvent{Name: name, Time: config.Timestamp(), Attributes: texts(config.Attributes())})
	})
}

func (s *memorySpan) AddLink(l trace.Link) {
	if !l.SpanContext.IsValid() {
		return
	}
	s.change(func() {
		if len(s.links) < maxLinks {
			s.links = append(s.links, SpanLink{Trace: l.SpanContext.TraceID().String(), Span: l.SpanContext.SpanID().String()})
		}
	})
}

// End stores the span.
func (s *memorySpan) End(options ...trace.SpanEndOption) {
	config := trace.NewSpanEndConfig(options...)
	at := config.Timestamp()
	s.mu.Lock()
	again := s.ended
	if s.ended = true; !again && at.IsZero() {
		s.took = time.Since(s.start)
	} else if !again {
		s.took = at.Sub(s.start)
	}
	s.mu.Unlock()
	if !again {
		s.recent.add(s.context.TraceID(), &s.storedSpan)
	}
}
