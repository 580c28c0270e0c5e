package telemetry

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	nometric "go.opentelemetry.io/otel/metric/noop"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
)

// providers create traces, metrics and logs. Without an exporter, meters does nothing
// and logs is nil.
type providers struct {
	recent    *Traces
	scraped   *prometheus.Registry // nil: not scraped
	tracers   trace.TracerProvider
	meters    metric.MeterProvider
	logs      log.LoggerProvider
	shutdowns []func(context.Context) error
}

// setup is what the providers are made of.
type setup struct {
	resource  *resource.Resource
	recent    *Traces
	scrape    bool // metrics are available to Prometheus
	arguments bool // the arguments of calls are exported
	complain  *exportWarnings
}

// build creates the providers. If one fails, those created before are shut down.
func (p plan) build(ctx context.Context, s setup) (_ *providers, err error) {
	built := &providers{recent: s.recent, tracers: idProvider{}, meters: nometric.NewMeterProvider()}
	if s.recent != nil {
		built.tracers = newMemoryProvider(s.recent)
	}
	steps := []func() error{
		func() error { return built.addTraces(ctx, p.traces, s) },
		func() error { return built.addMetrics(ctx, p.metrics, s) },
		func() error { return built.addLogs(ctx, p.logs, s.resource, s.complain) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			for _, stop := range built.shutdowns {
				err = errors.Join(err, stop(ctx))
			}
			return nil, fault.Wrap(fault.Config, err, "set up telemetry").
				WithHint("check the OTEL_* variables and the OTLP endpoint")
		}
	}
	return built, nil
}

func (p *providers) atShutdown(d *exportDelivery, shutdown func(context.Context) error) {
	p.shutdowns = append(p.shutdowns, func(ctx context.Context) error { return d.end(ctx, shutdown) })
}

func (p *providers) addTraces(ctx context.Context, r route, s setup) error {
	if r.none() {
		return nil
	}
	exporter, err := newSpanExporter(ctx, r)
	if err != nil {
		return err
	}
	d := newDelivery("traces", s.complain)
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(s.resource), sdktrace.WithIDGenerator(ids{}), sdktrace.WithSpanProcessor(inheritor{}), sdktrace.WithBatcher(spanDelivery{exporter, d, s.arguments})}
	if p.recent != nil {
		options = append(options, sdktrace.WithSpanProcessor(memoryProcessor{p.recent}))
	}
	tp := sdktrace.NewTracerProvider(options...)
	p.tracers = tp
	p.atShutdown(d, tp.Shutdown)
	return nil
}

func newSpanExporter(ctx context.Context, r route) (sdktrace.SpanExporter, error) {
	switch {
	case r.protocol == "grpc" && r.endpoint != "":
		return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(r.endpoint))
	case r.protocol == "grpc":
		return otlptracegrpc.New(ctx)
	case r.endpoint != "":
		return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(r.endpoint))
	default:
		return otlptracehttp.New(ctx)
	}
}

// addMetrics makes one provider of all instruments, which are read by a collector, by
// Prometheus or by both.
func (p *providers) addMetrics(ctx context.Context, r route, s setup) error {
	options := []sdkmetric.Option{sdkmetric.WithResource(s.resource)}
	d := newDelivery("metrics", s.complain)
	if !r.none() {
		exporter, err := newMetricExporter(ctx, r)
		if err != nil {
			return err
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricDelivery{exporter, d})))
	}
	if s.scrape {
		reader, err := p.addScraped()
		if err != nil {
			return err
		}
		options = append(options, sdkmetric.WithReader(reader))
	}
	if len(options) == 1 {
		return nil
	}
	mp := sdkmetric.NewMeterProvider(options...)
	p.meters = mp
	if !r.none() {
		p.atShutdown(d, mp.Shutdown)
	}
	return observeProcess(mp.Meter("process"))
}

func newMetricExporter(ctx context.Context, r route) (sdkmetric.Exporter, error) {
	switch {
	case r.protocol == "grpc" && r.endpoint != "":
		return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpointURL(r.endpoint))
	case r.protocol == "grpc":
		return otlpmetricgrpc.New(ctx)
	case r.endpoint != "":
		return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(r.endpoint))
	default:
		return otlpmetrichttp.New(ctx)
	}
}

func (p *providers) addLogs(ctx context.Context, r route, res *resource.Resource, complain *exportWarnings) error {
	if r.none() {
		return nil
	}
	exporter, err := newLogExporter(ctx, r)
	if err != nil {
		return err
	}
	d := newDelivery("logs", complain)
	lp := sdklog.NewLoggerProvider(sdklog.WithResource(res),
		sdklog.WithProcessor(sdklog.NewBatchProcessor(logDelivery{exporter, d})))
	p.logs = lp
	p.atShutdown(d, lp.Shutdown)
	return nil
}

func newLogExporter(ctx context.Context, r route) (sdklog.Exporter, error) {
	switch {
	case r.protocol == "grpc" && r.endpoint != "":
		return otlploggrpc.New(ctx, otlploggrpc.WithEndpointURL(r.endpoint))
	case r.protocol == "grpc":
		return otlploggrpc.New(ctx)
	case r.endpoint != "":
		return otlploghttp.New(ctx, otlploghttp.WithEndpointURL(r.endpoint))
	default:
		return otlploghttp.New(ctx)
	}
}

// newResource describes this process. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
// come last and override the rest.
func newResource(ctx context.Context, o Options, complain *exportWarnings) *resource.Resource {
	if o.Service == "" {
		o.Service = "luanette"
	}
	self := []attribute.KeyValue{attribute.String("service.name", o.Service)}
	if o.Version != "" {
		self = append(self, attribute.String("service.version", o.Version))
	}
	if o.Environment != "" {
		self = append(self, attribute.String("deployment.environment.name", o.Environment))
	}
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(self...), resource.WithFromEnv())
	if err != nil {
		complain.warn("resource", err) // res has the attributes that were detected
	}
	return res
}
