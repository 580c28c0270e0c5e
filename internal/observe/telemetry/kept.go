package telemetry

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// kept is a trace in the memory of Traces, where another takes its place later. It
// is written out, as a Trace, when somebody looks: every request makes spans, and few
// of them are ever looked at.
type kept struct {
	id     trace.TraceID
	name   string
	start  time.Time
	took   time.Duration
	failed bool
	count  int
	steps  []*step
}

// step is a span that is kept.
type step struct {
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
// as many steps as most have.
func (k *kept) begin(id trace.TraceID, first *step) {
	const most = 8
	steps := k.steps[:0]
	clear(k.steps)
	if cap(steps) > most {
		steps = nil
	}
	*k = kept{id: id, name: first.name, start: first.start, steps: steps}
}

// take adds a step that has ended.
func (k *kept) take(s *step) {
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
	if len(k.steps) < spansPerTrace {
		k.steps = append(k.steps, s)
	}
}

// sorted are the steps in the order they began.
func (k *kept) sorted() []*step {
	return slices.SortedStableFunc(slices.Values(k.steps), func(a, b *step) int { return a.start.Compare(b.start) })
}

// head is the trace without its spans.
func (k *kept) head() Trace {
	return Trace{
		ID: k.id.String(), Name: k.name, Start: k.start, Duration: k.took,
		Failed: k.failed, Count: k.count, Tools: called(k),
	}
}

// whole is the trace.
func (k *kept) whole() Trace {
	t := k.head()
	for _, s := range k.sorted() {
		t.Spans = append(t.Spans, s.span())
	}
	return t
}

func (s *step) span() Span {
	shown := Span{
		ID: s.id.String(), Name: s.name, Kind: s.kind.String(), Start: s.start, Duration: s.took,
		Error: s.failure, Failed: s.failed, Attributes: texts(s.attributes), Events: s.events,
	}
	if s.parent.IsValid() {
		shown.Parent = s.parent.String()
	}
	return shown
}
