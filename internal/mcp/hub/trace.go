package hub

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	silent "go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/observe/telemetry/duration"
)

// instruments are what the hub measures, by the semantic conventions for MCP.
type instruments struct {
	on        bool
	operation *duration.Histogram[operationKind]
	session   *duration.Histogram[sessionKind]
}

func newInstruments(meter metric.Meter) instruments {
	return instruments{
		on: meter != nil,
		operation: duration.New[operationKind](meter, duration.Options{
			Name: "mcp.server.operation.duration", Description: "How long a request took, from its receipt to its answer", Boundaries: duration.MCP,
		}),
		session: duration.New[sessionKind](meter, duration.Options{
			Name: "mcp.server.session.duration", Description: "How long a session lasted", Boundaries: duration.MCP,
		}),
	}
}

// operationKind is what the durations of requests are told apart by.
type operationKind struct{ method, name, version, network, failure, code string }

// Attributes are those of the semantic conventions.
func (k operationKind) Attributes() []attribute.KeyValue {
	list := duration.Texts("mcp.method.name", k.method, "mcp.protocol.version", k.version, "network.transport", k.network,
		"error.type", k.failure, "rpc.response.status_code", k.code)
	return appendSubject(list, k.method, k.name)
}

// sessionKind is what the durations of sessions are told apart by.
type sessionKind struct{ version string }

// Attributes are those of the semantic conventions.
func (k sessionKind) Attributes() []attribute.KeyValue {
	return duration.Texts("mcp.protocol.version", k.version)
}

// kind is that of a request which ended in err. Names of methods and tools that do not
// exist are left out: a client can make any number of them.
func (req *request) kind(failure string, err error) operationKind {
	k := operationKind{method: req.method, name: req.name, version: req.version, network: req.network, failure: failure}
	if err == nil {
		return k
	}
	k.code = failure
	switch wire.ErrorFrom(err).Code {
	case wire.CodeMethodNotFound, wire.CodeInvalidRequest, wire.CodeHeaderMismatch:
		k.method, k.name = "_OTHER", ""
	case wire.CodeUnsupportedRevision:
		k.name, k.version = "", ""
	case wire.CodeInvalidParams:
		k.name = ""
	}
	return k
}

// observe begins a request's span, as a child of the client's if there is one. finish ends
// it and records the duration.
func (h *Hub) observe(ctx context.Context, req *request) (context.Context, func(json.RawMessage, error)) {
	ctx, link := h.extract(ctx, req)
	if req.method == wire.MethodListen || h.opts.Tracer == nil && !h.metrics.on {
		return ctx, func(json.RawMessage, error) {}
	}
	var span trace.Span = silent.Span{}
	if h.opts.Tracer != nil {
		ctx, span = h.opts.Tracer.Start(ctx, req.spanName(), asServer...)
		span.SetAttributes(req.attributes()...)
		if link.IsValid() {
			span.AddLink(trace.Link{SpanContext: link})
		}
	}
	return ctx, func(result json.RawMessage, err error) {
		failure := req.failure(result, err)
		if failure != "" {
			span.SetAttributes(attribute.String("error.type", failure))
			span.SetStatus(codes.Error, failure)
		}
		if err != nil {
			span.SetAttributes(attribute.String("rpc.response.status_code", failure))
		}
		span.End()
		if h.metrics.on {
			h.metrics.operation.Record(ctx, req.kind(failure, err), time.Since(req.began))
		}
	}
}

// extract reads the client's trace context. That of _meta comes first, with a link to the
// span of the HTTP request if that belongs to another trace. Without it the parent is the
// span of the HTTP handler if it continues the headers' trace, otherwise what the headers
// say.
func (h *Hub) extract(ctx context.Context, req *request) (_ context.Context, link trace.SpanContext) {
	if h.opts.Propagator == nil {
		return ctx, link
	}
	around := trace.SpanContextFromContext(ctx)
	headers := around
	if req.header != nil {
		outer := h.opts.Propagator.Extract(ctx, propagation.HeaderCarrier(req.header))
		headers = trace.SpanContextFromContext(outer)
		if around.TraceID() != headers.TraceID() {
			ctx, around = outer, headers
		}
	}
	if rawjson.Lacks(req.meta, wire.MetaTraceParent) && rawjson.Lacks(req.meta, wire.MetaBaggage) {
		return ctx, link
	}
	inner := h.opts.Propagator.Extract(ctx, &wire.Carrier{Meta: req.meta})
	if said := trace.SpanContextFromContext(inner); said.Equal(around) || said.Equal(headers) {
		return ctx, link
	}
	return inner, around
}

func (req *request) spanName() string {
	if req.method == wire.MethodToolsCall || req.method == wire.MethodPromptsGet {
		return req.method + " " + req.name
	}
	return req.method
}

// asServer are the options of all spans: making them for each would take memory.
var asServer = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}

func (req *request) attributes() []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 6),
		attribute.String("mcp.method.name", req.method),
		attribute.String("mcp.protocol.version", req.version),
		attribute.String("network.transport", req.network))
	if resp := req.current(); resp != nil {
		attrs = append(attrs, attribute.String("jsonrpc.request.id", string(resp.id)))
	}
	return appendSubject(attrs, req.method, req.name)
}

// appendSubject adds the tool or prompt that a request is about.
func appendSubject(list []attribute.KeyValue, method, name string) []attribute.KeyValue {
	switch {
	case name == "":
	case method == wire.MethodToolsCall:
		return append(list, attribute.String("gen_ai.tool.name", name), attribute.String("gen_ai.operation.name", "execute_tool"))
	case method == wire.MethodPromptsGet:
		return append(list, attribute.String("gen_ai.prompt.name", name))
	}
	return list
}

// failure is the error.type of a request's outcome, or "".
func (req *request) failure(result json.RawMessage, err error) string {
	if err != nil {
		return strconv.FormatInt(wire.ErrorFrom(err).Code, 10)
	}
	if req.method == wire.MethodToolsCall && rawjson.GetBool(result, "isError") {
		return "tool_error"
	}
	return ""
}

// traceHeaders are the headers that carry trace context.
var traceHeaders = []string{"Traceparent", "Tracestate", "Baggage"}

// traceHeadersOf returns the headers with trace context, or nil if there are none.
func traceHeadersOf(header http.Header) http.Header {
	var found http.Header
	for _, name := range traceHeaders {
		if values := header.Values(name); len(values) > 0 {
			if found == nil {
				found = http.Header{}
			}
			found[name] = values
		}
	}
	return found
}
