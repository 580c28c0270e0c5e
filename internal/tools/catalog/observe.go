package catalog

import (
	"context"
	"encoding/json"
	"math"
	"math/bits"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/observe/history"
	"github.com/luanette/luanette/internal/observe/telemetry/duration"
	"github.com/luanette/luanette/internal/observe/telemetry/params"
)

// CallStarted is published when a tool call begins.
type CallStarted struct {
	Call      uint64 `json:"call"` // the same in tool.call_ended
	Namespace string `json:"namespace"`
	Tool      string `json:"tool"`
	Caller    string `json:"caller,omitempty"`
	Depth     int    `json:"depth"` // 1 for a call from outside, 2 for one made by a tool …
}

// EventType is "tool.call_started".
func (CallStarted) EventType() string { return "tool.call_started" }

// EventKey is the namespace.
func (e CallStarted) EventKey() string { return e.Namespace }

// CallEnded is published when a tool call has ended.
type CallEnded struct {
	Call       uint64        `json:"call"`
	Namespace  string        `json:"namespace"`
	Tool       string        `json:"tool"`
	Caller     string        `json:"caller,omitempty"`
	Depth      int           `json:"depth"`
	Duration   time.Duration `json:"-"`
	DurationMS float64       `json:"duration_ms"`
	ErrorType  string        `json:"error_type,omitempty"` // a fault's code, or "tool_error"; empty on success
	Error      string        `json:"error,omitempty"`
	Asked      bool          `json:"asked,omitempty"` // it needed approval: the call that follows the decision has events of its own
}

// EventType is "tool.call_ended".
func (CallEnded) EventType() string { return "tool.call_ended" }

// EventKey is the namespace.
func (e CallEnded) EventKey() string { return e.Namespace }

// Changed is published when the exposed tools have changed.
type Changed struct {
	Hash  string `json:"hash"`
	Tools int    `json:"tools"`
}

// EventType is "catalog.changed".
func (Changed) EventType() string { return "catalog.changed" }

// toolError is the error type of a tool that ran and answered with an error.
const toolError = "tool_error"

// Observe traces a call, counts it and publishes events about it. A relayed call has
// the spans of the endpoint and of the upstream, and events only while something
// subscribes to them.
func Observe() tool.Step {
	return tool.Step{Name: "observe", Before: beginObserving, After: endObserving}
}

// observation is what is recorded of a call under way.
type observation struct {
	span    trace.Span // nil: the call is relayed
	started bool       // CallStarted was published
	forPlan bool       // it reads what a plan shows
	facts   CallEnded
}

func beginObserving(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	r := i.State.(*run)
	c := r.catalog
	r.facts = CallEnded{Call: c.calls.Add(1), Namespace: i.Call.Ref.Space, Tool: i.Call.Observed(), Depth: Depth(ctx)}
	if i.Call.Caller != nil {
		r.facts.Caller = i.Call.Caller.ID
	}
	if r.forPlan = tool.IsForPlan(ctx); r.forPlan {
		r.state.counters.inFlight.Add(1)
	} else {
		r.state.counters.begin(i.Call.Observed(), i.Began)
	}
	if i.Relayed {
		r.facts.Depth++ // LimitDepth does not count it
		r.started = c.options.Bus.HasSubscriber(CallStarted{}.EventType())
	} else {
		ctx, r.span = c.options.Tracer.Start(ctx, spanName(i.Call.Ref))
		if r.span.IsRecording() {
			r.span.SetAttributes(callAttributes(i.Call.Ref)...)
			r.span.SetAttributes(argsAttributes(ctx, i.Call.Args)...)
		}
		if r.forPlan {
			r.span.SetAttributes(attribute.Bool("luanette.for_plan", true))
		}
		r.started = c.options.Bus != nil && !r.forPlan
	}
	if r.started {
		c.options.Bus.PublishFor(principal.OwnerOf(ctx), CallStarted{Call: r.facts.Call, Namespace: r.facts.Namespace, Tool: r.facts.Tool, Caller: r.facts.Caller, Depth: r.facts.Depth})
	}
	return ctx, nil
}

func endObserving(ctx context.Context, i *tool.Invocation) {
	r := i.State.(*run)
	kind, text := outcome(i.Result, i.Err)
	hidden := kind != "" && argsHidden(ctx)
	if text = redact.Text(text); hidden {
		text = kind
	}
	r.endSpan(ctx, kind, text, hidden)
	if i.Asked || r.forPlan { // neither waiting for a decision nor our own reads say anything about the tool
		r.state.counters.drop()
	} else {
		r.state.counters.end(i.Took, kind != "")
		r.catalog.durations.Record(ctx, callKind{r.facts.Namespace, r.facts.Tool, kind}, i.Took)
		r.catalog.remember(i, kind != "")
	}
	if r.started || !r.forPlan && r.catalog.options.Bus.HasSubscriber(CallEnded{}.EventType()) {
		r.facts.Duration, r.facts.DurationMS = i.Took, float64(i.Took.Microseconds())/1000
		r.facts.ErrorType, r.facts.Error, r.facts.Asked = kind, text, i.Asked
		r.catalog.options.Bus.PublishFor(principal.OwnerOf(ctx), r.facts)
	}
}

// remember adds a call to the history that every reader may see.
func (c *Catalog) remember(i *tool.Invocation, failed bool) {
	if ref := i.Call.Ref; ref.Space != "" && (c.options.Private == nil || !c.options.Private(ref.Space)) {
		c.options.History.Record(history.Call{Server: ref.Space, Tool: i.Call.Observed(), Took: i.Took, Failed: failed, Bytes: len(i.Result.Raw)})
	}
}

// endSpan records what went wrong, if anything.
func (r *run) endSpan(ctx context.Context, kind, text string, hidden bool) {
	if r.span == nil {
		if r.Err != nil { // a refused call has no span of the upstream that names it
			trace.SpanFromContext(ctx).SetAttributes(attribute.String("mcp.namespace", r.Call.Ref.Space))
		}
		return
	}
	if r.Asked {
		r.span.SetAttributes(attribute.Bool("luanette.asked", true))
	}
	if kind != "" {
		r.span.SetAttributes(attribute.String("error.type", kind))
		if r.Err != nil && !hidden {
			r.span.RecordError(r.Err)
		}
		r.span.SetStatus(codes.Error, text)
	}
	r.span.End()
}

func spanName(ref tool.Ref) string {
	if ref.Space == "" {
		return "luanette.tool." + ref.Name
	}
	return "luanette.mcp." + ref.Space + "." + ref.Name
}

func callAttributes(ref tool.Ref) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("mcp.namespace", ref.Space),
		attribute.String("mcp.tool", ref.Name),
		attribute.String("mcp.method.name", "tools/call"),
		attribute.String("gen_ai.tool.name", ref.Name),
		attribute.String("gen_ai.operation.name", "execute_tool"),
	}
}

func argsAttributes(ctx context.Context, args json.RawMessage) []attribute.KeyValue {
	if argsHidden(ctx) {
		return []attribute.KeyValue{attribute.Int("mcp.params.bytes", len(args))}
	}
	return params.Deferred("mcp.params", args)
}

// argsHidden tells whether arguments and results must not appear in traces.
func argsHidden(ctx context.Context) bool {
	scope := tool.ScopeOf(ctx)
	return scope != nil && scope.HideArgs
}

// outcome is what went wrong, if anything: an error's code, or toolError. Only a result
// that may be an error is parsed.
func outcome(result tool.Result, err error) (kind, text string) {
	switch {
	case err != nil:
		return string(fault.CodeOf(err)), err.Error()
	case rawjson.GetBool(result.Raw, "isError"):
		return toolError, toolErrorText(result)
	default:
		return "", ""
	}
}

// toolErrorText is the beginning of the text of a failed tool.
func toolErrorText(result tool.Result) string {
	view, err := result.View()
	if err != nil {
		return ""
	}
	return redact.Cut(view.Text(), 500)
}

// callKind is what the durations of calls are told apart by.
type callKind struct{ namespace, tool, failure string }

// Attributes are the full name of the tool, and what went wrong.
func (k callKind) Attributes() []attribute.KeyValue {
	return duration.Texts("mcp.namespace", k.namespace, "gen_ai.tool.name", k.tool, "error.type", k.failure)
}

func newDurations(m metric.Meter) *duration.Histogram[callKind] {
	return duration.New[callKind](m, duration.Options{Name: "luanette.tool.call.duration", Description: "how long tools took to answer", Boundaries: duration.MCP})
}

// Stats counts the calls of one namespace.
type Stats struct {
	Namespace string        `json:"namespace"`
	Calls     uint64        `json:"calls"`     // finished
	Errors    uint64        `json:"errors"`    // calls that failed or answered with an error
	InFlight  int           `json:"in_flight"` // running and waiting
	Waiting   int           `json:"waiting"`   // for the namespace's limit
	LastTool  string        `json:"last_tool,omitempty"`
	LastCall  time.Time     `json:"last_call,omitzero"`
	P50       time.Duration `json:"p50"` // durations are exact to an eighth
	P90       time.Duration `json:"p90"`
	P99       time.Duration `json:"p99"`
	Max       time.Duration `json:"max"`
	Open      bool          `json:"open"`              // the circuit breaker refuses calls
	RetryAt   time.Time     `json:"retry_at,omitzero"` // when a call is tried, if Open
}

// Stats returns the statistics of a namespace, "" for our own tools; ok is false when
// there is none of that name.
func (c *Catalog) Stats(ctx context.Context, namespace string) (stats Stats, ok bool) {
	v := c.view.Load()
	if v.namespaces[namespace] == nil {
		v = c.refresh(ctx)
	}
	s := v.namespaces[namespace]
	if s == nil {
		return Stats{}, false
	}
	return s.state.stats(), true
}

// counters count one namespace's calls.
type counters struct {
	calls    atomic.Uint64
	errors   atomic.Uint64
	inFlight atomic.Int64
	lastTool atomic.Pointer[string]
	lastCall atomic.Int64 // in Unix nanoseconds
	took     histogram
}

func (c *counters) begin(tool string, at time.Time) {
	c.inFlight.Add(1)
	c.lastCall.Store(at.UnixNano())
	if last := c.lastTool.Load(); last == nil || *last != tool {
		name := strings.Clone(tool) // does not keep the whole message in memory
		c.lastTool.Store(&name)
	}
}

func (c *counters) end(took time.Duration, failed bool) {
	c.inFlight.Add(-1)
	c.calls.Add(1)
	if failed {
		c.errors.Add(1)
	}
	c.took.add(took)
}

// drop forgets a call that has begun and does not count.
func (c *counters) drop() { c.inFlight.Add(-1) }

// histogram counts durations in buckets, four to each power of two of
// microseconds: 1 µs to 2 hours in 132 of them.
type histogram struct {
	buckets [132]atomic.Uint64
	longest atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	h.buckets[bucketOf(d)].Add(1)
	for {
		longest := h.longest.Load()
		if int64(d) <= longest || h.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// bucketOf takes the position of the highest bit and the two bits after it.
func bucketOf(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0)) + 4 // the first buckets are one µs wide
	high := bits.Len64(us) - 1
	return min((high-2)*4+int(us>>(high-2)&3), len(histogram{}.buckets)-1)
}

// bucketTop is the longest duration a bucket counts.
func bucketTop(bucket int) time.Duration {
	high, low := bucket/4, uint64(bucket%4)
	return time.Duration((4+low+1)<<high-4) * time.Microsecond
}

// quantiles are the durations that the given shares of calls did not exceed.
func (h *histogram) quantiles(shares ...float64) []time.Duration {
	var counts [len(histogram{}.buckets)]uint64
	total := uint64(0)
	for i := range counts {
		counts[i] = h.buckets[i].Load()
		total += counts[i]
	}
	found := make([]time.Duration, len(shares))
	for i, share := range shares {
		rank, seen := uint64(math.Ceil(share*float64(total))), uint64(0)
		for b, n := range counts {
			if seen += n; n > 0 && seen >= rank {
				found[i] = min(bucketTop(b), time.Duration(h.longest.Load()))
				break
			}
		}
	}
	return found
}
