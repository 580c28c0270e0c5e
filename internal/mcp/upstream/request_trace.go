package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/observe/telemetry"
)

// spanLabel is what the spans of a request are called, and say.
type spanLabel struct {
	name       string
	attributes []attribute.KeyValue
}

// spanLabel is that of requests of a method, about what if that is not empty.
func (c *connection) spanLabel(method, what string) *spanLabel {
	label := &spanLabel{name: method, attributes: append(make([]attribute.KeyValue, 0, 4),
		attribute.String("mcp.method.name", method), attribute.String("luanette.upstream", c.name))}
	if what != "" {
		label.name += " " + what
		label.attributes = target(label.attributes, method, what)
	}
	label.attributes = slices.Clip(label.attributes) // many spans may have them
	return label
}

// startSpan begins the client span of a request, which is to tell the server of it; nil
// where nobody traces.
func (c *connection) startSpan(ctx context.Context, r *request) (context.Context, trace.Span) {
	if c.opts.Tracer == nil {
		return ctx, nil
	}
	if r.label == nil {
		r.label = c.spanLabel(r.method, r.about)
	}
	ctx, span := telemetry.Start(ctx, c.opts.Tracer, trace.SpanKindClient, r.label.name, r.label.attributes)
	if c.opts.Propagator != nil {
		c.opts.Propagator.Inject(ctx, &r.trace)
	}
	return ctx, span
}

// endSpan ends the span of a request with its outcome.
func (r *request) endSpan(span trace.Span, err error) {
	switch {
	case span == nil:
		return
	case err != nil:
		span.SetStatus(codes.Error, err.Error())
		span.SetAttributes(attribute.String("error.type", errorType(err)))
	case r.failed:
		span.SetStatus(codes.Error, "the tool failed")
		span.SetAttributes(attribute.String("error.type", "tool_error"))
	}
	span.End()
}

// target adds what a request is about.
func target(attributes []attribute.KeyValue, method, what string) []attribute.KeyValue {
	switch method {
	case wire.MethodToolsCall:
		return append(attributes, attribute.String("gen_ai.tool.name", what), attribute.String("gen_ai.operation.name", "execute_tool"))
	case wire.MethodPromptsGet:
		return append(attributes, attribute.String("gen_ai.prompt.name", what))
	case wire.MethodResourcesRead:
		return append(attributes, attribute.String("mcp.resource.uri", what))
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

// traceContext is what a request tells the server of the trace it belongs to. It has
// the shape of OpenTelemetry's TextMapCarrier.
type traceContext [len(traceKeys)]string

var traceKeys = [...]string{wire.MetaTraceParent, wire.MetaTraceState, wire.MetaBaggage}

// Get is the text under key, or "".
func (c *traceContext) Get(key string) string {
	if i := slices.Index(traceKeys[:], key); i >= 0 {
		return c[i]
	}
	return ""
}

// Set puts text under key. Other keys than those of W3C are none of MCP's.
func (c *traceContext) Set(key, text string) {
	if i := slices.Index(traceKeys[:], key); i >= 0 {
		c[i] = text
	}
}

// Keys lists what is there.
func (c *traceContext) Keys() []string {
	return slices.DeleteFunc(slices.Clone(traceKeys[:]), func(key string) bool { return c.Get(key) == "" })
}

// says tells whether the caller's own text under a key is replaced: ours is part of
// the same trace, and the one does not fit the other.
func (c *traceContext) says(key []byte) bool {
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

// headers says it in headers too, for servers that look there; without a trace of ours
// what the caller's meta tells.
func (c *traceContext) headers(meta json.RawMessage) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for i, key := range traceKeys {
			text := c[i]
			if c[0] == "" && !rawjson.Lacks(meta, key) {
				text, _ = rawjson.GetText(meta, key)
			}
			if text != "" && wire.EncodeHeader(text) == text && !yield(key, text) {
				return
			}
		}
	}
}
