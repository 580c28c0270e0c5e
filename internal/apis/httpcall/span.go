package httpcall

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
)

// headerCarrier writes trace context into headers.
type headerCarrier http.Header

// Get implements OpenTelemetry's TextMapCarrier.
func (h headerCarrier) Get(key string) string { return http.Header(h).Get(key) }

// Set implements OpenTelemetry's TextMapCarrier.
func (h headerCarrier) Set(key, value string) { http.Header(h).Set(key, value) }

// Keys implements OpenTelemetry's TextMapCarrier.
func (h headerCarrier) Keys() (names []string) {
	for name := range h {
		names = append(names, name)
	}
	return names
}

// startSpan starts the span of one attempt, by OpenTelemetry's conventions for HTTP
// clients. The URL is without its query, which may have secrets.
func (c *Client) startSpan(ctx context.Context, r Request, resends int) (context.Context, trace.Span) {
	if c.env.Tracer == nil {
		return ctx, nil
	}
	name := r.Method
	attributes := []attribute.KeyValue{
		attribute.String("http.request.method", r.Method), attribute.String("server.address", r.URL.Hostname()),
		attribute.Int("server.port", portOf(r.URL)), attribute.String("url.full", r.URL.Scheme+"://"+r.URL.Host+r.URL.EscapedPath()),
		attribute.String("luanette.upstream", c.env.Name),
	}
	if r.Template != "" {
		name += " " + r.Template
		attributes = append(attributes, attribute.String("url.template", r.Template))
	}
	if resends > 0 {
		attributes = append(attributes, attribute.Int("http.request.resend_count", resends))
	}
	return c.env.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
}

func portOf(u *url.URL) int {
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return port
	}
	if u.Scheme == "http" {
		return 80
	}
	return 443
}

// endSpan ends the span of an attempt when its headers have come.
func endSpan(span trace.Span, answer *http.Response, err error) {
	if span == nil {
		return
	}
	switch {
	case err != nil:
		span.SetStatus(codes.Error, err.Error())
		span.SetAttributes(attribute.String("error.type", string(fault.CodeOf(err))))
	default:
		span.SetAttributes(attribute.Int("http.response.status_code", answer.StatusCode),
			attribute.String("network.protocol.version", strconv.Itoa(answer.ProtoMajor)+"."+strconv.Itoa(answer.ProtoMinor)))
		if answer.StatusCode >= 400 {
			span.SetStatus(codes.Error, "")
			span.SetAttributes(attribute.String("error.type", strconv.Itoa(answer.StatusCode)))
		}
	}
	span.End()
}
