package grpcapi

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// startSpan starts the span of one attempt, by OpenTelemetry's conventions for RPC clients.
func (c *exchange) startSpan(ctx context.Context, resends int) (spanned context.Context, end func(error)) {
	if c.env.Tracer == nil {
		return ctx, func(error) {}
	}
	port, _ := strconv.Atoi(c.endpoint.Port()) // the endpoint always has one
	attributes := []attribute.KeyValue{
		attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", string(c.method.desc.Parent().FullName())),
		attribute.String("rpc.method", string(c.method.desc.Name())), attribute.String("server.address", c.endpoint.Hostname()),
		attribute.Int("server.port", port), attribute.String("luanette.upstream", c.env.Name),
	}
	if resends > 0 {
		attributes = append(attributes, attribute.Int("rpc.grpc.resend_count", resends))
	}
	spanned, span := c.env.Tracer.Start(ctx, c.method.path[1:], trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	if c.env.Propagator != nil {
		md, _ := metadata.FromOutgoingContext(spanned) // a copy
		c.env.Propagator.Inject(spanned, carrier(md))
		spanned = metadata.NewOutgoingContext(spanned, md)
	}
	return spanned, func(err error) {
		span.SetAttributes(attribute.Int("rpc.grpc.status_code", int(status.Code(err))))
		if err != nil {
			span.SetStatus(otelcodes.Error, codeName(status.Code(err)))
		}
		span.End()
	}
}

// carrier writes trace context into metadata.
type carrier metadata.MD

// Get implements OpenTelemetry's TextMapCarrier.
func (c carrier) Get(key string) string { return strings.Join(metadata.MD(c).Get(key), ",") }

// Set implements OpenTelemetry's TextMapCarrier.
func (c carrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

// Keys implements OpenTelemetry's TextMapCarrier.
func (c carrier) Keys() []string { return slices.Collect(maps.Keys(c)) }
