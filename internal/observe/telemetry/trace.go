package telemetry

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// storedTrace is a trace in the memory of Traces, where another takes its place later. It
// is written out, as a Trace, when somebody looks: every request makes spans, and few
// of them are ever looked at.
type storedTrace struct {
	id     trace.TraceID
	name   string
	start  time.Time
	took   time.Duration
	failed bool
	count  int
	spans  []*storedSpan
}

// storedSpan is a span that is storedTrace.
type storedSpan struct {
	id, parent trace.SpanID
	name       string
	kind       trace.SpanKind
	start      time.Time
	took       time.Duration
	failed     bool
	failure    string
	attributes []attribute.KeyValue
	events     []SpanEvent
}

// begin puts a trace in the place of another, of which nothing stays but the room for
// as many spans as most have.
func (k *storedTrace) begin(id trace.TraceID, first *storedSpan) {
	const most = 8
	spans := k.spans[:0]
	clear(k.spans)
	if cap(spans) > most {
		spans = nil
	}
	*k = storedTrace{id: id, name: first.name, start: first.start, spans: spans}
}

// take adds a storedSpan that has ended.
func (k *storedTrace) take(s *storedSpan) {
	k.count++
	k.failed = k.failed || s.failed
	end := k.start.Add(k.took)
	if !s.start.After(k.start) { // who encloses the others began before them and ends last
		k.name, k.start = s.name, s.start
	}
	if own := s.start.Add(s.took); own.After(end) {
		end = own
	}
	k.took = end.Sub(k.start)
	if len(k.spans) < maxSpans {
		k.spans = append(k.spans, s)
	}
}

// sorted are the spans in the order they began.
func (k *storedTrace) sorted() []*storedSpan {
	return slices.SortedStableFunc(slices.Values(k.spans), func(a, b *storedSpan) int { return a.start.Compare(b.start) })
}

// head is the trace without its spans.
func (k *storedTrace) head() Trace {
	return Trace{
		ID: k.id.String(), Name: k.name, Start: k.start, Duration: k.took,
		Failed: k.failed, Count: k.count, Tools: called(k),
	}
}

// whole is the trace.
func (k *storedTrace) whole() Trace {
	t := k.head()
	for _, s := range k.sorted() {
		t.Spans = append(t.Spans, s.span())
	}
	return t
}

func (s *storedSpan) span() Span {
	shown := Span{
		ID: s.id.String(), Name: s.name, Kind: s.kind.String(), Start: s.start, Duration: s.took,
		Error: s.failure, Failed: s.failed, Attributes: texts(s.attributes), Events: s.events,
	}
	if s.parent.IsValid() {
		shown.Parent = s.parent.String()
	}
	return shown
}
