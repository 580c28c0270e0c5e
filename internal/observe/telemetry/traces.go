package telemetry

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/core/principal"
)

// Limits for one trace. A long trace loses its latest spans, but not its first, which
// say what it is about.
const (
	maxSpans      = 400
	maxEvents     = 50
	maxText       = 2 << 10 // of the value of one attribute
	maxAttributes = 64
)

// Traces stores the latest traces in memory, so that a request can be inspected
// without a collector. It is safe for concurrent use; a nil one stores nothing.
type Traces struct {
	mu     sync.Mutex
	ended  []ended // the latest spans, not yet in the ring
	ring   []storedTrace
	next   int                   // index of the oldest trace, once the ring is full
	places map[trace.TraceID]int // index in the ring
	keep   int
}

// newTraces returns a store for the given number of traces, or nil.
func newTraces(keep int) *Traces {
	if keep <= 0 {
		return nil
	}
	return &Traces{ended: make([]ended, 0, endedAtOnce), places: make(map[trace.TraceID]int), keep: keep}
}

// endedAtOnce is how many spans are moved into the ring together. Moving each one
// alone would miss the processor's caches.
const endedAtOnce = 64

// ended is a span that has ended, and the id of its trace.
type ended struct {
	of   trace.TraceID
	span *storedSpan
}

// Trace describes the work of one request.
type Trace struct {
	ID       string        `json:"trace_id"`
	Name     string        `json:"name"` // of the root span
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration_ns"`
	Failed   bool          `json:"failed"`
	Count    int           `json:"span_count"`      // spans that are no longer stored included
	Tools    []string      `json:"tools,omitempty"` // the called tools, each once
	Spans    []Span        `json:"spans,omitempty"`
}

// Span is one operation of a trace.
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
	Links      []SpanLink        `json:"links,omitempty"`
}

// SpanLink is a span of another trace that a span comes from.
type SpanLink struct {
	Trace string `json:"trace_id"`
	Span  string `json:"span_id"`
}

// SpanEvent is an event within a span.
type SpanEvent struct {
	Name       string            `json:"name"`
	Time       time.Time         `json:"time"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

// List returns the latest traces that the principal of ctx sees, without their spans, the
// newest first.
func (t *Traces) List(ctx context.Context, limit int) []Trace {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gather()
	who := principal.Of(ctx)
	list := make([]Trace, 0, len(t.ring))
	for i := range t.ring {
		if seen, ok := t.ring[i].visible(who); ok {
			list = append(list, seen.head())
		}
	}
	slices.SortFunc(list, func(a, b Trace) int { return b.Start.Compare(a.Start) })
	return list[:min(limit, len(list))]
}

// Get returns a trace with those of its spans that the principal of ctx sees, in the order
// they began.
func (t *Traces) Get(ctx context.Context, id string) (Trace, bool) {
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
	seen, ok := t.ring[place].visible(principal.Of(ctx))
	if !ok {
		return Trace{}, false
	}
	return seen.whole(), true
}

// add stores a span that has ended; it must not change any more.
func (t *Traces) add(id trace.TraceID, s *storedSpan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended = append(t.ended, ended{id, s}); len(t.ended) == endedAtOnce {
		t.gather()
	}
}

// gather moves the latest spans into the ring; mu is held.
func (t *Traces) gather() {
	for _, e := range t.ended {
		place, found := t.places[e.of]
		if !found {
			place = t.nextPlace()
			t.places[e.of] = place
			t.ring[place].begin(e.of, e.span)
		}
		t.ring[place].take(e.span)
	}
	clear(t.ended)
	t.ended = t.ended[:0]
}

// nextPlace returns the index for a new trace. It replaces the oldest one.
func (t *Traces) nextPlace() (place int) {
	if len(t.ring) < t.keep {
		t.ring = append(t.ring, storedTrace{})
		return len(t.ring) - 1
	}
	place, t.next = t.next, (t.next+1)%t.keep
	delete(t.places, t.ring[place].id)
	return place
}

// texts returns attributes as strings.
func texts(attributes []attribute.KeyValue) map[string]string {
	if len(attributes) == 0 {
		return nil
	}
	texts := make(map[string]string, len(attributes))
	for _, a := range attributes[:min(maxAttributes, len(attributes))] {
		a, _ = maskValue(a)
		text := a.Value.String()
		if len(text) > maxText {
			text = text[:maxText] + "…"
		}
		texts[string(a.Key)] = text
	}
	return texts
}

// failure reports whether a status is an error, and its text.
func failure(code codes.Code, description string) (failed bool, text string) {
	if code != codes.Error {
		return false, ""
	}
	return true, redact.Text(description)
}
