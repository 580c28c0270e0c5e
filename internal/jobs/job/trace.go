package job

import (
	"cmp"
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/redact"
)

// Traces connects jobs with the traces that they come from.
type Traces interface {
	// Origin returns the span of ctx as text, or "".
	Origin(ctx context.Context) string
	// Join returns the context of a run, and the id of its trace: that of the origin if
	// the job starts at once, otherwise its own, with a link.
	Join(ctx context.Context, job, origin string, atOnce bool) (context.Context, string)
}

// noTraces is used where there are none.
type noTraces struct{}

func (noTraces) Origin(context.Context) string { return "" }

func (noTraces) Join(ctx context.Context, _, _ string, _ bool) (context.Context, string) {
	return ctx, ""
}

// atOnce reports whether the job's run is part of what its submitter is doing: it is not
// delayed, and no earlier process has run it.
func (j Job) atOnce() bool { return !j.resumed && !j.Due.After(j.Created) }

// traced returns the context of a run of j.
func (q *Queue) traced(ctx context.Context, j Job) context.Context {
	ctx, _ = q.options.Traces.Join(ctx, j.ID, j.origin, j.atOnce())
	return ctx
}

// traceID returns the id of the trace of a run of j.
func (q *Queue) traceID(ctx context.Context, j Job) string {
	_, id := q.options.Traces.Join(ctx, j.ID, j.origin, j.atOnce())
	return id
}

// newDurations returns the histogram of the durations of jobs.
func newDurations(m metric.Meter) metric.Float64Histogram {
	const name = "luanette.job.duration"
	if m == nil {
		m = noop.Meter{}
	}
	h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription("how long jobs took from their start to their end, waits included"),
		metric.WithExplicitBucketBoundaries(0.01, 0.1, 1, 10, 60, 600, 3600, 6*3600, 24*3600))
	if err != nil {
		h, _ = noop.Meter{}.Float64Histogram(name) // never fails
	}
	return h
}

// recordOutcome adds a span to the trace of an ended job that says how it ended, also if
// it never ran or ended in another process than it began in.
func (q *Queue) recordOutcome(ctx context.Context, j Job) {
	ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{}) // not that of who cancelled it
	began := j.Started
	if began.IsZero() {
		began = j.Created
	}
	joined, id := q.options.Traces.Join(ctx, j.ID, j.origin, true)
	if id != j.TraceID { // its latest run began later than its submitter
		joined, _ = q.options.Traces.Join(ctx, j.ID, j.origin, false)
	}
	status := attribute.String("job.status", string(j.State))
	_, span := q.options.Tracer.Start(joined, strings.TrimSpace("job "+j.Name), trace.WithTimestamp(began), trace.WithAttributes(
		attribute.String("job.id", j.ID), status, attribute.String("job.name", j.Name), attribute.String("script.hash", j.Hash)))
	if j.Error != nil {
		span.SetAttributes(attribute.String("error.type", string(j.Error.Code)))
		span.SetStatus(codes.Error, redact.Cut(redact.Text(j.Error.Message), 500))
	}
	span.End(trace.WithTimestamp(cmp.Or(j.Finished, began)))
	q.durations.Record(joined, max(j.Finished.Sub(began).Seconds(), 0), metric.WithAttributes(status))
}
