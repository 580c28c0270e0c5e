package telemetry

import (
	"context"
	"errors"
	"fmt"
	"sync"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

var errGivenUp = errors.New("the collector did not accept it in time")

// exportDelivery sends one signal. It logs errors as warnings instead of returning
// them to the SDK, which would pass each of them to a global handler that prints it.
// The records are lost either way. A delivery can be given up, so that a hanging
// export does not outlive Shutdown.
type exportDelivery struct {
	signal   string
	complain *exportWarnings
	up       chan struct{} // closed when given up
	once     sync.Once
}

func newDelivery(signal string, complain *exportWarnings) *exportDelivery {
	return &exportDelivery{signal: signal, complain: complain, up: make(chan struct{})}
}

// try sends, unless the delivery is given up.
func (d *exportDelivery) try(ctx context.Context, send func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-d.up:
			cancel(errGivenUp)
		case <-ctx.Done():
		}
	})
	err := send(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	if err != nil {
		d.complain.warn(d.signal, err)
	}
	cancel(nil)
	watch.Wait()
	return nil
}

// end runs the shutdown of an SDK provider to its end. The provider does not get ctx,
// because it would leave its work to goroutines when ctx is done. Instead the delivery
// is given up then, and the remaining exports fail at once.
func (d *exportDelivery) end(ctx context.Context, shutdown func(context.Context) error) error {
	stop := context.AfterFunc(ctx, func() { d.once.Do(func() { close(d.up) }) })
	defer stop()
	return shutdown(context.WithoutCancel(ctx))
}

type spanDelivery struct {
	sdktrace.SpanExporter
	*exportDelivery
	arguments bool // whether the arguments of calls are sent
}

func (d spanDelivery) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return d.try(ctx, func(ctx context.Context) error { return d.SpanExporter.ExportSpans(ctx, masked(spans, d.arguments)) })
}

type metricDelivery struct {
	sdkmetric.Exporter
	*exportDelivery
}

func (d metricDelivery) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	return d.try(ctx, func(ctx context.Context) error { return d.Exporter.Export(ctx, m) })
}

type logDelivery struct {
	sdklog.Exporter
	*exportDelivery
}

func (d logDelivery) Export(ctx context.Context, records []sdklog.Record) error {
	return d.try(ctx, func(ctx context.Context) error { return d.Exporter.Export(ctx, records) })
}
