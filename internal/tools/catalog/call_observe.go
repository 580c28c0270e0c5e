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
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/observe/history"
	"github.com/luanette/luanette/internal/observe/telemetry/duration"
	"github.com/luanette/luanette/internal/observe/telemetry/params"
)

// CallStarted is published when a tool call begins.
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
	r.facts = CallEnded{Call: c.calls.Add(1), Namespace: i.Call.Ref.Space, Tool: i.Call.Ref.Name, Depth: Depth(ctx)}
	if i.Call.Caller != nil {
		r.facts.Caller = i.Call.Caller.ID
	}
	if r.forPlan = tool.IsForPlan(ctx); r.forPlan {
		r.state.counters.inFlight.Add(1)
	} else {
		r.state.counters.begin(i.Call.Ref.Name, i.Began)
	}
	if i.Relayed {
		r.facts.Depth++ // LimitDepth does not count it
		r.started = c.bus.HasSubscriber(CallStarted{}.EventType())
	} else {
		ctx, r.span = c.tracer.Start(ctx, spanName(i.Call.Ref), trace.WithSpanKind(trace.SpanKindInternal))
		if r.span.IsRecording() {
			r.span.SetAttributes(callAttributes(ctx, i.Call)...)
		}
		if r.forPlan {
			r.span.SetAttributes(attribute.Bool("luanette.for_plan", true))
		}
		r.started = c.bus != nil && !r.forPlan
	}
	if r.started {
		c.bus.PublishFor(principal.OwnerOf(ctx), CallStarted{Call: r.facts.Call, Namespace: r.facts.Namespace, Tool: r.facts.Tool, Caller: r.facts.Caller, Depth: r.facts.Depth})
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
	if r.started || !r.forPlan && r.catalog.bus.HasSubscriber(CallEnded{}.EventType()) {
		r.facts.Duration, r.facts.DurationMS = i.Took, float64(i.Took.Microseconds())/1000
		r.facts.ErrorType, r.facts.Error, r.facts.Asked = kind, text, i.Asked
		r.catalog.bus.PublishFor(principal.OwnerOf(ctx), r.facts)
	}
}

// remember adds a call to the history that every reader may see.
func (c *Catalog) remember(i *tool.Invocation, failed bool) {
	if ref := i.Call.Ref; ref.Space != "" && (c.private == nil || !c.private(ref.Space)) {
		c.history.Record(history.Call{Server: ref.Space, Tool: ref.Name, Took: i.Took, Failed: failed, Bytes: len(i.Result.Raw)})
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
