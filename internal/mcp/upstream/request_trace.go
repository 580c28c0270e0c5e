package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// spanLabel is the name and the attributes of a request's spans.
type spanLabel struct {
	name       string
	attributes []attribute.KeyValue
	listed     bool // it is of a tool that the server lists
}

// newSpanLabel makes the label of a method's requests; about may be empty.
func newSpanLabel(upstream, method, about string) *spanLabel {
	label := &spanLabel{name: method, attributes: append(make([]attribute.KeyValue, 0, 4),
		attribute.String("mcp.method.name", method), attribute.String("luanette.upstream", upstream))}
	if about != "" {
		label.name += " " + about
		label.attributes = appendSubject(label.attributes, method, about)
	}
	label.attributes = slices.Clip(label.attributes) // spans share them
	return label
}

// startSpan starts the client span of a request, whose context the request passes
// to the server. The span is nil without a tracer.
func (c *connection) startSpan(ctx context.Context, r *request) (context.Context, trace.Span) {
	if c.opts.Tracer == nil {
		return ctx, nil
	}
	if r.label == nil {
		r.label = newSpanLabel(c.name, r.method, r.about)
	}
	ctx, span := c.opts.Tracer.Start(ctx, r.label.name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(r.label.attributes...))
	if c.opts.Propagator != nil {
		c.opts.Propagator.Inject(ctx, &r.trace)
	}
	return ctx, span
}

// endSpan ends the span of a request with its outcome, and with the server that the
// request was last sent to.
func (r *request) endSpan(span trace.Span, err error) {
	if span == nil {
		return
	}
	if s := r.sentOver; s != nil && span.IsRecording() {
		span.SetAttributes(s.spanAttributes()...)
		span.SetAttributes(attribute.String("jsonrpc.request.id", string(r.id)))
	}
	switch {
	case err != nil:
		span.SetStatus(codes.Error, err.Error())
		span.SetAttributes(attribute.String("error.type", errorType(err)))
	case r.failed:
		span.SetStatus(codes.Error, "the tool failed")
		span.SetAttributes(attribute.String("error.type", toolFailed))
	}
	span.End()
}

// toolFailed is the error.type of a tool that answered with an error.
const toolFailed = "tool_error"

// appendSubject adds the tool, prompt or resource that a request is about.
func appendSubject(attributes []attribute.KeyValue, method, about string) []attribute.KeyValue {
	switch method {
	case wire.MethodToolsCall:
		return append(attributes, attribute.String("gen_ai.tool.name", about), attribute.String("gen_ai.operation.name", "execute_tool"))
	case wire.MethodPromptsGet:
		return append(attributes, attribute.String("gen_ai.prompt.name", about))
	case wire.MethodResourcesRead:
		return append(attributes, attribute.String("mcp.resource.uri", about))
	}
	return attributes
}

func errorType(err error) string {
	var answered *wire.Error
	if errors.As(err, &answered) {
		return strconv.FormatInt(answered.Code, 10)
	}
	return string(fault.CodeOf(err))
}

// traceContext is the trace context that a request carries. It implements
// OpenTelemetry's TextMapCarrier.
type traceContext [len(traceKeys)]string

var traceKeys = [...]string{wire.MetaTraceParent, wire.MetaTraceState, wire.MetaBaggage}

// Get returns the value of a key, or "".
func (c *traceContext) Get(key string) string {
	if i := slices.Index(traceKeys[:], key); i >= 0 {
		return c[i]
	}
	return ""
}

// Set stores the value of a key. Keys other than W3C's are ignored, because MCP
// does not carry them.
func (c *traceContext) Set(key, text string) {
	if i := slices.Index(traceKeys[:], key); i >= 0 {
		c[i] = text
	}
}

// Keys lists the keys that have a value.
func (c *traceContext) Keys() []string {
	return slices.DeleteFunc(slices.Clone(traceKeys[:]), func(key string) bool { return c.Get(key) == "" })
}

// replaces reports whether the caller's value of a key is left out, because there
// is a span of ours.
func (c *traceContext) replaces(key []byte) bool {
	switch string(key) {
	case wire.MetaTraceParent, wire.MetaTraceState, wire.MetaBaggage:
		return c[0] != ""
	}
	return false
}

// append writes it as members of a _meta object.
func (c *traceContext) append(out []byte) []byte {
	for i, text := range c {
		if text != "" {
			out = rawjson.AppendText(rawjson.AppendKey(out, traceKeys[i]), text)
		}
	}
	return out
}

// headers returns it as HTTP headers as well, for servers that look there. Without
// a span of ours they carry the caller's trace context.
func (c *traceContext) headers(meta json.RawMessage) (list []Header) {
	for i, key := range traceKeys {
		text := c[i]
		if c[0] == "" && !rawjson.Lacks(meta, key) {
			text, _ = rawjson.GetText(meta, key)
		}
		if text != "" && wire.EncodeHeader(text) == text {
			list = append(list, Header{key, text})
		}
	}
	return list
}
