package telemetry

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// storedTrace is a trace in the ring of Traces; a later trace reuses its memory. It is
// converted to a Trace only when it is read, because every request makes spans and few
// of them are ever read.
type storedTrace struct {
	id     trace.TraceID
	name   string
	start  time.Time
	took   time.Duration
	failed bool
	count  int
	spans  []*storedSpan
}

// storedSpan is a span of a storedTrace.
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
	links      []SpanLink
}

// begin reuses k for another trace. It keeps only the capacity for the spans of a
// usual trace.
func (k *storedTrace) begin(id trace.TraceID, first *storedSpan) {
	const most = 8
	spans := k.spans[:0]
	clear(k.spans)
	if cap(spans) > most {
		spans = nil
	}
	*k = storedTrace{id: id, name: first.name, start: first.start, spans: spans}
}

// take adds a span that has ended.
func (k *storedTrace) take(s *storedSpan) {
	k.count++
	k.failed = k.failed || s.failed
	end := k.start.Add(k.took)
	if !s.start.After(k.start) { // the outermost span begins first and ends last
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

// sorted returns the spans in the order they began.
func (k *storedTrace) sorted() []*storedSpan {
	return slices.SortedStableFunc(slices.Values(k.spans), func(a, b *storedSpan) int { return a.start.Compare(b.start) })
}

// head returns the trace without its spans.
func (k *storedTrace) head() Trace {
	return Trace{
		ID: k.id.String(), Name: k.name, Start: k.start, Duration: k.took,
		Failed: k.failed, Count: k.count, Tools: calledTools(k),
	}
}

// whole returns the trace with its spans.
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
		Error: s.failure, Failed: s.failed, Attributes: texts(s.attributes), Events: s.events, Links: s.links,
	}
	if s.parent.IsValid() {
		shown.Parent = s.parent.String()
	}
	return shown
}
