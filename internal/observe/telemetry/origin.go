package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// JobTraces connects jobs, which run in the background and perhaps in another process, with
// the traces that they come from.
type JobTraces struct{}

// Origin returns the span of ctx and that of the caller outside, as text that can be
// stored; "" if there is none.
func (JobTraces) Origin(ctx context.Context) string {
	span := parentText(ctx, trace.SpanContextFromContext(ctx))
	caller, _ := ctx.Value(callerKey{}).(trace.SpanContext)
	return strings.TrimSpace(span + " " + parentText(ctx, caller))
}

// Join returns the context of a job's run and the id of its trace. A run that begins at
// once continues the trace of its origin. A later one has a trace of its own, whose id is
// the job's, with a link to the origin.
func (JobTraces) Join(ctx context.Context, job, origin string, atOnce bool) (context.Context, string) {
	span, caller := parseOrigin(origin)
	if !span.IsValid() {
		return WithTraceID(ctx, job), TraceID(job)
	}
	if !atOnce {
		ctx = trace.ContextWithSpanContext(WithTraceID(ctx, job), trace.SpanContext{})
		return context.WithValue(ctx, linkKey{}, span), TraceID(job)
	}
	if span.Equal(caller) { // the submitter made no span of its own
		span = span.WithRemote(true)
	}
	ctx = trace.ContextWithSpanContext(ctx, span)
	if caller.IsValid() {
		ctx = context.WithValue(ctx, callerKey{}, caller.WithRemote(true))
	}
	return ctx, span.TraceID().String()
}

// Carry returns a function that makes another context part of the trace of ctx.
func Carry(ctx context.Context) func(context.Context) context.Context {
	origin := JobTraces{}.Origin(ctx)
	if origin == "" {
		return func(ctx context.Context) context.Context { return ctx }
	}
	return func(ctx context.Context) context.Context {
		ctx, _ = JobTraces{}.Join(ctx, "", origin, true)
		return ctx
	}
}

// linkKey is the context key of the span that the first span of a trace links to.
type linkKey struct{}

// AddLink links a span to the origin of its trace, if Join has set one.
func AddLink(ctx context.Context, span trace.Span) {
	if origin, ok := ctx.Value(linkKey{}).(trace.SpanContext); ok {
		span.AddLink(trace.Link{SpanContext: origin})
	}
}

func parentText(ctx context.Context, span trace.SpanContext) string {
	if !span.IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(ctx, span), carrier)
	return carrier["traceparent"]
}

// parseOrigin reads what Origin returned. What is not a span context is ignored.
func parseOrigin(text string) (span, caller trace.SpanContext) {
	first, second, _ := strings.Cut(text, " ")
	return parseParent(first), parseParent(second)
}

func parseParent(text string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": text})
	return trace.SpanContextFromContext(ctx).WithRemote(false)
}
