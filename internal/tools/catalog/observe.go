package catalog

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/observe/telemetry/params"
)

// CallStarted tells that a tool is being called.
type CallStarted struct {
	Call      uint64 `json:"call"` // the same in CallEnded
	Namespace string `json:"namespace"`
	Tool      string `json:"tool"`
	Caller    string `json:"caller,omitempty"`
	Depth     int    `json:"depth"` // 1 for a call from outside, 2 for one made by a tool …
}

// EventType is "tool.call_started".
func (CallStarted) EventType() string { return "tool.call_started" }

// EventKey is the namespace.
func (e CallStarted) EventKey() string { return e.Namespace }

// CallEnded tells how a call went.
type CallEnded struct {
	Call       uint64        `json:"call"`
	Namespace  string        `json:"namespace"`
	Tool       string        `json:"tool"`
	Caller     string        `json:"caller,omitempty"`
	Depth      int           `json:"depth"`
	Duration   time.Duration `json:"-"`
	DurationMS float64       `json:"duration_ms"`
	ErrorType  string        `json:"error_type,omitempty"` // a fault's code, or "tool_error"; empty when it went well
	Error      string        `json:"error,omitempty"`
}

// EventType is "tool.call_ended".
func (CallEnded) EventType() string { return "tool.call_ended" }

// EventKey is the namespace.
func (e CallEnded) EventKey() string { return e.Namespace }

// Changed tells that the exposed tools are others than before.
type Changed struct {
	Hash  string `json:"hash"`
	Tools int    `json:"tools"`
}

// EventType is "catalog.changed".
func (Changed) EventType() string { return "catalog.changed" }

// toolError is the error type of a tool that ran and answered with an error.
const toolError = "tool_error"

// observed counts a call, tells the bus of it and spans it.
func (c *Catalog) observed(tracer trace.Tracer) station {
	return func(next handler) handler {
		return func(ctx context.Context, e *entry, call tool.Call) (tool.Result, error) {
			ctx, span := tracer.Start(ctx, spanName(call.Ref), trace.WithSpanKind(trace.SpanKindInternal))
			defer span.End()
			if span.IsRecording() {
				span.SetAttributes(callAttributes(ctx, call)...)
			}
			w := c.watch(ctx, e, call)
			defer w.broken() //nolint:contextcheck // it only counts
			result, err := next(ctx, e, call)
			kind, text := outcome(result, err)
			if kind != "" {
				span.SetAttributes(attribute.String("error.type", kind))
				if argsHidden(ctx) {
					text = kind
				} else if err != nil {
					span.RecordError(err)
				}
				span.SetStatus(codes.Error, text)
			}
			w.end(ctx, kind, text)
			return result, err
		}
	}
}

func spanName(ref tool.Ref) string {
	if ref.Space == "" {
		return "luanette.tool." + ref.Name
	}
	return "luanette.mcp." + ref.Space + "." + ref.Name
}

func callAttributes(ctx context.Context, call tool.Call) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String("mcp.namespace", call.Ref.Space),
		attribute.String("mcp.tool", call.Ref.Name),
		attribute.String("mcp.method.name", "tools/call"),
		attribute.String("gen_ai.tool.name", call.Ref.Name),
		attribute.String("gen_ai.operation.name", "execute_tool"),
	}
	if argsHidden(ctx) {
		return append(attributes, attribute.Int("mcp.params.bytes", len(call.Args)))
	}
	attributes = append(attributes, attribute.String("mcp.params", redact.JSON(call.Args)))
	return append(attributes, params.Attributes("mcp.params", call.Args)...)
}

// argsHidden tells whether arguments and answers are nobody's business.
func argsHidden(ctx context.Context) bool {
	scope := tool.ScopeOf(ctx)
	return scope != nil && scope.HideArgs
}

// outcome names what went wrong, if anything: an error's code, or toolError. A
// result is taken apart only when it may be an error.
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

// toolErrorText is the beginning of what a failed tool answered.
func toolErrorText(result tool.Result) string {
	view, err := result.View()
	if err != nil {
		return ""
	}
	return redact.Cut(view.Text(), 500)
}

// observation is one call under way, as seen by counters and bus.
type observation struct {
	catalog *Catalog
	gear    *namespaceState
	began   time.Time
	ended   bool
	facts   CallEnded
}

func (c *Catalog) watch(ctx context.Context, e *entry, call tool.Call) *observation {
	w := c.begin(e.state, call)
	w.facts.Depth = Depth(ctx)
	w.start()
	return &w
}

// begin counts a call. How deep it is, is for whoever tells the bus to say.
func (c *Catalog) begin(g *namespaceState, call tool.Call) observation {
	w := observation{catalog: c, gear: g, began: time.Now(), facts: CallEnded{
		Call: c.calls.Add(1), Namespace: call.Ref.Space, Tool: call.Ref.Name,
	}}
	if call.Caller != nil {
		w.facts.Caller = call.Caller.ID
	}
	w.gear.counters.begin(call.Ref.Name, w.began)
	return w
}

// start tells the bus.
func (w *observation) start() {
	w.publish(CallStarted{
		Call: w.facts.Call, Namespace: w.facts.Namespace, Tool: w.facts.Tool,
		Caller: w.facts.Caller, Depth: w.facts.Depth,
	})
}

func (w *observation) end(ctx context.Context, kind, text string) {
	took := w.count(ctx, kind)
	w.facts.Duration, w.facts.DurationMS = took, float64(took.Microseconds())/1000
	w.facts.ErrorType, w.facts.Error = kind, text
	w.publish(w.facts)
}

// count takes note of a call that has ended.
func (w *observation) count(ctx context.Context, kind string) (took time.Duration) {
	w.ended = true
	took = time.Since(w.began)
	w.gear.counters.end(took, kind != "")
	w.catalog.meters.record(ctx, &w.facts, took, kind)
	return took
}

// broken ends a call that left by a panic, so that it is not counted for ever.
func (w *observation) broken() {
	if !w.ended {
		w.end(context.Background(), string(fault.Internal), "broken off")
	}
}

func (w *observation) publish(p event.Payload) {
	if w.catalog.bus != nil {
		w.catalog.bus.Publish(p)
	}
}

// meters record calls for OpenTelemetry.
type meters struct {
	took metric.Float64Histogram // nil: nobody wants to know
}

func newMeters(m metric.Meter) *meters {
	if m == nil {
		return &meters{}
	}
	took, err := m.Float64Histogram("luanette.tool.call.duration", metric.WithUnit("s"),
		metric.WithDescription("how long tools took to answer"))
	if err != nil {
		return &meters{}
	}
	return &meters{took}
}

func (m *meters) record(ctx context.Context, facts *CallEnded, took time.Duration, kind string) {
	if m.took == nil || !m.took.Enabled(ctx) {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.String("mcp.namespace", facts.Namespace), attribute.String("gen_ai.tool.name", facts.Tool),
	}
	if kind != "" {
		attributes = append(attributes, attribute.String("error.type", kind))
	}
	m.took.Record(ctx, took.Seconds(), metric.WithAttributes(attributes...))
}
