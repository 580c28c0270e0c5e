package telemetry

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Propagator carries traces between programs: W3C trace context and baggage.
//
// While spans are only stored in memory, it injects the span of the caller, if the
// trace came from one, in place of ours: a span that is never exported would be
// missing between the caller's and the upstream's in every trace viewer.
func Propagator() propagation.TextMapPropagator { return propagator{} }

type propagator struct{}

var w3c = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// callerKey is the context key of the caller's span context.
type callerKey struct{}

func (propagator) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	ctx = w3c.Extract(ctx, carrier)
	if caller := trace.SpanContextFromContext(ctx); caller.IsRemote() {
		ctx = context.WithValue(ctx, callerKey{}, caller)
	}
	return ctx
}

func (propagator) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() && !span.SpanContext().IsSampled() {
		caller, ok := ctx.Value(callerKey{}).(trace.SpanContext)
		if ok && caller.TraceID() == span.SpanContext().TraceID() {
			ctx = trace.ContextWithSpanContext(ctx, caller)
		}
	}
	w3c.Inject(ctx, carrier)
}

func (propagator) Fields() []string { return w3c.Fields() }

// Extract returns ctx with the trace of a request's headers, if there is one.
func Extract(ctx context.Context, h http.Header) context.Context {
	return Propagator().Extract(ctx, propagation.HeaderCarrier(h))
}

// Inject writes the trace of ctx into the headers of a request.
func Inject(ctx context.Context, h http.Header) {
	Propagator().Inject(ctx, propagation.HeaderCarrier(h))
}

// ExtractMeta returns ctx with the trace in an MCP request's _meta, from its keys
// traceparent, tracestate and baggage.
func ExtractMeta(ctx context.Context, meta map[string]any) context.Context {
	return Propagator().Extract(ctx, metaCarrier(meta))
}

// InjectMeta writes the trace of ctx into meta and returns it. If meta is nil and
// there is a trace, it makes a new map.
func InjectMeta(ctx context.Context, meta map[string]any) map[string]any {
	found := metaCarrier{}
	Propagator().Inject(ctx, found)
	if meta == nil && len(found) > 0 {
		meta = make(map[string]any, len(found))
	}
	for k, v := range found {
		meta[k] = v
	}
	return meta
}

// metaCarrier is a JSON object; only strings are read.
type metaCarrier map[string]any

func (m metaCarrier) Get(key string) string {
	s, _ := m[key].(string)
	return s
}

func (m metaCarrier) Set(key, value string) { m[key] = value }

func (m metaCarrier) Keys() []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}
