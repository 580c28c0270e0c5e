package job_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/jobs/job"
)

// Each job that ended has a span that says how, even if it never ran.
func TestOutcomesAreTraced(t *testing.T) {
	t.Parallel()
	spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	bus := event.New(event.BusOptions{})
	q := open(t, database(t), newStage(), job.Options{
		Events: bus, Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("t"),
		Meter: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("t"),
	})
	defer shut(t, q)
	events := bus.Subscribe(event.Options{Types: []string{"job.finished"}})
	defer events.Close()
	late := submit(t, q, job.Spec{Name: "late", Source: "read:a", Delay: time.Hour})
	if _, err := q.Cancel(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	want := map[string]job.State{
		late: job.Cancelled,
		submit(t, q, job.Spec{Name: "good", Source: "read:a"}):                job.Complete,
		submit(t, q, job.Spec{Name: "bad", Source: "fail:password=hunter2x"}): job.Failed,
	}
	for range want {
		if _, err := events.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ended := spans.Ended()
	if len(ended) != len(want) {
		t.Fatalf("%d spans", len(ended))
	}
	for _, span := range ended {
		set := attribute.NewSet(span.Attributes()...)
		id, _ := set.Value("job.id")
		status, _ := set.Value("job.status")
		if state := want[id.AsString()]; status.AsString() != string(state) || (span.Status().Code == codes.Error) != (state == job.Failed) {
			t.Errorf("%s: status %s (%v), want %s", span.Name(), status.AsString(), span.Status(), state)
		}
		if span.Name() == "job bad" && span.Status().Description != "failed: password=[redacted]" {
			t.Errorf("the description is %q", span.Status().Description)
		}
		if span.EndTime().Before(span.StartTime()) {
			t.Errorf("%s ended at %v before %v", span.Name(), span.EndTime(), span.StartTime())
		}
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	if points := all.ScopeMetrics[0].Metrics[0].Data.(metricdata.Histogram[float64]).DataPoints; len(points) != len(want) {
		t.Errorf("%d outcomes were measured", len(points))
	}
}
