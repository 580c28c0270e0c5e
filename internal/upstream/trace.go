package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/telemetry"
	"github.com/luanette/luanette/internal/wire"
)

// trace begins the client span of a request and writes its context into the
// request's _meta. What it returns ends the span with the request's outcome.
func (k *keeper) trace(ctx context.Context, r *request, what string) (context.Context, func(json.RawMessage, error)) {
	if k.opts.Tracer == nil {
		return ctx, func(json.RawMessage, error) {}
	}
	attributes := append(make([]attribute.KeyValue, 0, 4),
		attribute.String("mcp.method.name", r.method), attribute.String("luanette.upstream", k.name))
	name := r.method
	if what != "" {
		name += " " + what
		attributes = target(attributes, r.method, what)
	}
	ctx, span := telemetry.Start(ctx, k.opts.Tracer, trace.SpanKindClient, name, attributes)
	if k.opts.Propagator != nil {
		carrier := wire.Carrier{Meta: r.meta}
		k.opts.Propagator.Inject(ctx, &carrier)
		r.meta = carrier.Meta
	}
	return ctx, func(result json.RawMessage, err error) {
		switch {
		case err != nil:
			span.SetStatus(codes.Error, err.Error())
			span.SetAttributes(attribute.String("error.type", errorType(err)))
		case r.method == wire.MethodToolsCall && wire.GetBool(result, "isError"):
			span.SetStatus(codes.Error, "the tool failed")
			span.SetAttributes(attribute.String("error.type", "tool_error"))
		}
		span.End()
	}
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
