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
	maxSpans      = 400
	maxEvents     = 50
	maxText       = 2 << 10 // of one attribute's value
	maxAttributes = 64
)

// Traces are the latest traces, kept in memory so that one request can be looked
// at without a collector. It is safe for concurrent use; a nil one keeps nothing.
type Traces struct {
	mu     sync.Mutex
	ended  []ended // the latest spans, which are not in the ring yet
	ring   []storedTrace
	next   int                   // the place of the oldest, once the ring is full
	places map[trace.TraceID]int // in the ring
	keep   int
}

// newTraces keeps the given number of traces, or none.
func newTraces(keep int) *Traces {
	if keep <= 0 {
		return nil
	}
	return &Traces{ended: make([]ended, 0, endedAtOnce), places: make(map[trace.TraceID]int), keep: keep}
}

// endedAtOnce is how many spans are put into the ring together. Each by itself would
// find nothing of it in the processor's caches.
const endedAtOnce = 64

// ended is a span that has ended, and the trace it is of.
type ended struct {
	of   trace.TraceID
	span *storedSpan
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
	t.gather()
	list := make([]Trace, len(t.ring))
	for i := range t.ring {
		list[i] = t.ring[i].head()
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
	t.gather()
	place, found := t.places[parsed]
	if !found {
		return Trace{}, false
	}
	return t.ring[place].whole(), true
}

// add keeps a span that has ended, which nobody changes any more.
func (t *Traces) add(id trace.TraceID, s *storedSpan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended = append(t.ended, ended{id, s}); len(t.ended) == endedAtOnce {
		t.gather()
	}
}

// gather puts the latest spans into the ring; mu is held.
func (t *Traces) gather() {
	for _, e := range t.ended {
		place, found := t.places[e.of]
		if !found {
			place = t.makeRoom()
			t.places[e.of] = place
			t.ring[place].begin(e.of, e.span)
		}
		t.ring[place].take(e.span)
	}
	clear(t.ended)
	t.ended = t.ended[:0]
}

// makeRoom is the place of a new trace, which was the oldest's.
func (t *Traces) makeRoom() (place int) {
	if len(t.ring) < t.keep {
		t.ring = append(t.ring, storedTrace{})
		return len(t.ring) - 1
	}
	place, t.next = t.next, (t.next+1)%t.keep
	delete(t.places, t.ring[place].id)
	return place
}

// texts are attributes as people read them.
func texts(attributes []attribute.KeyValue) map[string]string {
	if len(attributes) == 0 {
		return nil
	}
	texts := make(map[string]string, len(attributes))
	for _, a := range attributes[:min(maxAttributes, len(attributes))] {
		text := a.Value.String()
		if len(text) > maxText {
			text = text[:maxText] + "…"
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
