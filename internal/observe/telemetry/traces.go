package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/observe/telemetry/params"
)

// Limits for one trace. A long trace loses its latest spans, but not its first, which
// say what it is about.
const (
	maxSpans      = 400
	maxEvents     = 50
	maxLinks      = 128
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

// leastPrefix is how much of a trace's id is enough to name it.
const leastPrefix = 4

// Get returns a trace with those of its spans that the principal of ctx sees, in the order
// they began. The beginning of the id is enough if no other trace that they see has it.
func (t *Traces) Get(ctx context.Context, id string) (Trace, bool) {
	if t == nil || len(id) < leastPrefix {
		return Trace{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gather()
	var found storedTrace
	matches := 0
	for i := range t.ring {
		if !strings.HasPrefix(t.ring[i].id.String(), strings.ToLower(id)) {
			continue
		}
		if seen, ok := t.ring[i].visible(principal.Of(ctx)); ok {
			found = seen
			matches++
		}
	}
	if matches != 1 {
		return Trace{}, false
	}
	return found.whole(), true
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
	attributes = params.Expand(attributes)
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

// JSON returns a trace with the spans that the principal of ctx sees. It returns
// fault.NotFound if it is not stored, or not theirs.
func (t *Traces) JSON(ctx context.Context, id string) (json.RawMessage, error) {
	found, ok := t.Get(ctx, id)
	if !ok {
		return nil, fault.New(fault.NotFound, "no trace %q", id).
			WithHint("the id has 32 hex digits, of which the first that no other trace has are enough; only the latest traces are stored, see hud.recent_traces")
	}
	if found.Spans == nil {
		found.Spans = []Span{}
	}
	return json.Marshal(found)
}

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
	owner      principal.Owner
	attributes [][]attribute.KeyValue // in the lists in which they were set
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
		Error: s.failure, Failed: s.failed, Attributes: texts(slices.Concat(append([][]attribute.KeyValue{ownerAttributes(s.owner)}, s.attributes...)...)), Events: s.events, Links: s.links,
	}
	if s.parent.IsValid() {
		shown.Parent = s.parent.String()
	}
	return shown
}

// maxTools limits how many tools are listed for a trace.
const maxTools = 20

// calledTools returns the full names of the tools that were called in a trace, in the
// order of their first call. The tool that the request itself names is omitted unless
// its full name differs, because it is the name of the trace.
func calledTools(k *storedTrace) (names []string) {
	named := map[trace.SpanID]bool{} // spans whose tool is already listed
	for _, s := range k.sorted() {
		tool, space := s.toolName()
		if tool == "" || s.kind == trace.SpanKindServer && space == "" || s.kind == trace.SpanKindClient && named[s.parent] {
			continue
		}
		named[s.id] = true
		if space != "" {
			tool = space + "." + tool
		}
		if "tools/call "+tool != k.name && !slices.Contains(names, tool) {
			names = append(names, tool)
		}
	}
	return names[:min(len(names), maxTools)]
}

// toolName returns the tool of a span, and its namespace.
func (s *storedSpan) toolName() (tool, space string) {
	var namespace, upstream string
	for _, list := range s.attributes {
		for _, a := range list {
			switch a.Key {
			case "gen_ai.tool.name":
				tool = a.Value.AsString()
			case "mcp.namespace":
				namespace = a.Value.AsString()
			case "luanette.upstream":
				upstream = a.Value.AsString()
			}
		}
	}
	return tool, cmp.Or(namespace, upstream)
}

// memoryProcessor stores the spans of the SDK in memory too, while they are exported.
type memoryProcessor struct{ traces *Traces }

func (memoryProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

func (p memoryProcessor) OnEnd(s sdktrace.ReadOnlySpan) {
	stored := storedSpan{
		id: s.SpanContext().SpanID(), parent: s.Parent().SpanID(), name: s.Name(), kind: s.SpanKind(),
		start: s.StartTime(), took: s.EndTime().Sub(s.StartTime()), owner: ownerIn(s.Attributes()), attributes: [][]attribute.KeyValue{s.Attributes()},
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
