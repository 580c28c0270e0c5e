package duration_test

import (
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/luanette/luanette/internal/observe/telemetry/duration"
)

type kind struct{ tool, failure string }

func (k kind) Attributes() []attribute.KeyValue {
	return duration.Texts("tool", k.tool, "error.type", k.failure)
}

func TestRecord(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	h := duration.New[kind](sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(0)).Meter("t"),
		duration.Options{Name: "x.duration", Boundaries: duration.MCP})
	for range 2 {
		h.Record(t.Context(), kind{"a", ""}, time.Second)
	}
	h.Record(t.Context(), kind{"a", "timeout"}, 3*time.Second)
	for i := range 3000 { // more than are kept
		h.Record(t.Context(), kind{"n" + strconv.Itoa(i), ""}, time.Second)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	m := all.ScopeMetrics[0].Metrics[0]
	points := m.Data.(metricdata.Histogram[float64]).DataPoints
	if m.Unit != "s" || len(points) != 3002 {
		t.Fatalf("%d kinds in %s", len(points), m.Unit)
	}
	for _, p := range points {
		tool, _ := p.Attributes.Value("tool")
		failure, failed := p.Attributes.Value("error.type")
		if tool.AsString() == "a" && !failed && (p.Count != 2 || p.Sum != 2) || failed && (failure.AsString() != "timeout" || p.Sum != 3) {
			t.Errorf("%s: %d calls in %v s", p.Attributes.Encoded(attribute.DefaultEncoder()), p.Count, p.Sum)
		}
	}
}

func TestNoMeter(t *testing.T) {
	t.Parallel()
	h := duration.New[kind](nil, duration.Options{Name: "x"})
	h.Record(t.Context(), kind{}, time.Second)
	if h.Enabled(t.Context()) {
		t.Error("a histogram without a meter records")
	}
}

func BenchmarkRecord(b *testing.B) {
	h := duration.New[kind](sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())).Meter("t"), duration.Options{Name: "x", Boundaries: duration.MCP})
	b.ReportAllocs()
	for b.Loop() {
		h.Record(b.Context(), kind{"fs.read", ""}, time.Millisecond)
	}
}
