package telemetry

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
)

// Propagator is how traces cross borders: W3C trace context and baggage.
func Propagator() propagation.TextMapPropagator {
	return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
}

// Extract returns ctx with the trace that the headers of a request tell of, if
// they do.
func Extract(ctx context.Context, h http.Header) context.Context {
	return Propagator().Extract(ctx, propagation.HeaderCarrier(h))
}

// Inject writes the trace of ctx into the headers of a request.
func Inject(ctx context.Context, h http.Header) {
	Propagator().Inject(ctx, propagation.HeaderCarrier(h))
}

// ExtractMeta returns ctx with the trace that an MCP request's _meta tells of in
// its keys traceparent, tracestate and baggage.
func ExtractMeta(ctx context.Context, meta map[string]any) context.Context {
	return Propagator().Extract(ctx, metaCarrier(meta))
}

// InjectMeta writes the trace of ctx into meta and returns it; a nil meta is made
// if there is something to write.
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

// metaCarrier is a JSON object; what is not a string is not for us.
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
