package telemetry

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Bounds of what Traces keeps of one trace. A busy one loses its latest spans,
// never its first, which tell what it was about.
const (
	spansPerTrace  = 400
	eventsPerSpan  = 50
	textPerSpan    = 2 << 10 // of one attribute's value
	attributesKept = 64
)

// Traces are the latest traces, kept in memory so that one request can be looked
// at without a collector. It is safe for concurrent use; a nil one keeps nothing.
type Traces struct {
	mu    sync.Mutex
	byID  map[trace.TraceID]*Trace
	order []trace.TraceID // a ring; the oldest is at next once it is full
	next  int
	keep  int
}

// newTraces keeps the given number of traces, or none.
func newTraces(keep int) *Traces {
	if keep <= 0 {
		return nil
	}
	return &Traces{byID: make(map[trace.TraceID]*Trace), keep: keep}
}

// Trace is what one request made us do.
type Trace struct {
	ID       string        `json:"trace_id"`
	Name     string        `json:"name"` // of the span that all others are under
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration_ns"`
	Failed   bool          `json:"failed"`
	Count    int           `json:"span_count"`      // those no longer kept included
	Tools    []string      `json:"tools,omitempty"` // that were called on the way, each once
	Spans    []Span        `json:"spans,omitempty"`
}

// Span is one step of a trace.
type Span struct {
	ID         string            `json:"span_id"`
	Parent     string            `json:"parent_id,omitempty"`
	Name       string            `json:"name"`
	Kind       string            `json:"kind"`
	Start      time.Time         `json:"start"`
	Duration   time.Duration     `json:"duration_ns"`
	Error      string            `json:"error,omitempty"`
	Failed     bool              `json:"failed,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Events     []SpanEvent       `json:"events,omitempty"`

	// These become ID, Parent and Attributes when somebody looks: every request
	// makes spans, and few of them are ever looked at.
	id, parent trace.SpanID
	raw        []attribute.KeyValue
}

// SpanEvent is something that happened in the course of a span.
type SpanEvent struct {
	Name       string            `json:"name"`
	Time       time.Time         `json:"time"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

// List returns the latest traces without their spans, the newest first.
func (t *Traces) List(limit int) []Trace {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Trace, 0, len(t.byID))
	for _, kept := range t.byID {
		head := *kept
		head.Tools, head.Spans = called(kept), nil
		list = append(list, head)
	}
	slices.SortFunc(list, func(a, b Trace) int { return b.Start.Compare(a.Start) })
	return list[:min(limit, len(list))]
}

// Get returns a trace with its spans in the order they began.
func (t *Traces) Get(id string) (Trace, bool) {
	parsed, err := trace.TraceIDFromHex(id)
	if t == nil || err != nil {
		return Trace{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, found := t.byID[parsed]
	if !found {
		return Trace{}, false
	}
	whole := *kept
	whole.Tools = called(kept)
	whole.Spans = slices.Clone(kept.Spans)
	for i := range whole.Spans {
		whole.Spans[i].spell()
	}
	slices.SortStableFunc(whole.Spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return whole, true
}

// spell writes out what was kept as it came.
func (s *Span) spell() {
	s.ID, s.Attributes = s.id.String(), texts(s.raw)
	if s.parent.IsValid() {
		s.Parent = s.parent.String()
	}
}

// add keeps a span that has ended.
func (t *Traces) add(id trace.TraceID, s Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, found := t.byID[id]
	if !found {
		kept = &Trace{ID: id.String(), Name: s.Name, Start: s.Start, Spans: make([]Span, 0, 2)} // most have no more
		t.byID[id] = kept
		t.makeRoom(id)
	}
	kept.Count++
	kept.Failed = kept.Failed || s.Failed
	end := kept.Start.Add(kept.Duration)
	if !s.Start.After(kept.Start) { // who encloses the others began before them and ends last
		kept.Name, kept.Start = s.Name, s.Start
	}
	if own := s.Start.Add(s.Duration); own.After(end) {
		end = own
	}
	kept.Duration = end.Sub(kept.Start)
	if len(kept.Spans) < spansPerTrace {
		kept.Spans = append(kept.Spans, s)
	}
}

// makeRoom gives a new trace its place, which was the oldest's.
func (t *Traces) makeRoom(id trace.TraceID) {
	if len(t.order) < t.keep {
		t.order = append(t.order, id)
		return
	}
	delete(t.byID, t.order[t.next])
	t.order[t.next] = id
	t.next = (t.next + 1) % t.keep
}

// texts are attributes as people read them.
func texts(attributes []attribute.KeyValue) map[string]string {
	if len(attributes) == 0 {
		return nil
	}
	texts := make(map[string]string, len(attributes))
	for _, a := range attributes[:min(attributesKept, len(attributes))] {
		text := a.Value.String()
		if len(text) > textPerSpan {
			text = text[:textPerSpan] + "…"
		}
		texts[string(a.Key)] = text
	}
	return texts
}

// failure is what a status says of a failed span.
func failure(code codes.Code, description string) (failed bool, text string) {
	if code != codes.Error {
		return false, ""
	}
	return true, description
}
