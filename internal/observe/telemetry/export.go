package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

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
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
)

// signal is one of the three exported signals, with the names that differ between
// them.
type signal struct {
	env  string // as in OTEL_TRACES_EXPORTER and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
	path string // path at HTTP collectors
}

var (
	traces  = signal{"TRACES", "v1/traces"}
	metrics = signal{"METRICS", "v1/metrics"}
	logs    = signal{"LOGS", "v1/logs"}
)

// plan says how each signal is exported.
type plan struct {
	traces, metrics, logs route
}

// route is how one signal is exported. The zero value means not at all.
type route struct {
	protocol string // "grpc", "http/protobuf" or "" for none
	endpoint string // a URL, or "" where the exporter reads the OTEL_* variables itself
}

func (r route) none() bool { return r.protocol == "" }

// planExport decides by the endpoint and the OTEL_* variables. The exporters read most
// variables themselves; this function reads only those that select the exporter. (The
// contrib package for this can write to standard output, which is reserved for
// protocols, and reports errors globally.)
func planExport(endpoint string) (p plan, err error) {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return plan{}, nil
	}
	for s, r := range map[signal]*route{traces: &p.traces, metrics: &p.metrics, logs: &p.logs} {
		if *r, err = routeOf(s, endpoint); err != nil {
			return plan{}, err
		}
	}
	return p, nil
}

func routeOf(s signal, endpoint string) (route, error) {
	chosen, err := chosenExporter(s, endpoint)
	if err != nil || !chosen {
		return route{}, err
	}
	protocol, variable := protocolOf(s)
	if endpoint != "" {
		base, guess, err := parseEndpoint(endpoint)
		if err != nil {
			return route{}, err
		}
		if protocol == "" {
			protocol = guess
		}
		endpoint = base.String()
		if protocol != "grpc" {
			endpoint = base.JoinPath(s.path).String()
		}
	}
	switch protocol {
	case "":
		protocol = "http/protobuf" // the specification's default
	case "grpc", "http/protobuf":
	default:
		return route{}, fault.New(fault.Config, "%s: unknown protocol %q", variable, protocol).
			WithHint("use grpc or http/protobuf")
	}
	return route{protocol: protocol, endpoint: endpoint}, nil
}

// chosenExporter reports whether s is exported: if its exporter is set, or, if none is
// set, whether there is an endpoint.
func chosenExporter(s signal, endpoint string) (bool, error) {
	variable := "OTEL_" + s.env + "_EXPORTER"
	switch name := env(variable); name {
	case "otlp":
		return true, nil
	case "none":
		return false, nil
	case "":
		return endpoint != "" || env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
			env("OTEL_EXPORTER_OTLP_"+s.env+"_ENDPOINT") != "", nil
	default:
		return false, fault.New(fault.Config, "%s: unknown exporter %q", variable, name).
			WithHint("use otlp or none; standard output is reserved for protocols, so there is no console exporter")
	}
}

// protocolOf returns the protocol that a variable sets, if any, and the variable.
func protocolOf(s signal) (protocol, variable string) {
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_" + s.env + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := env(variable); protocol != "" {
			return protocol, variable
		}
	}
	return "", ""
}

// parseEndpoint parses Options.Endpoint. It returns the http or https URL, and the
// protocol that the endpoint implies.
func parseEndpoint(endpoint string) (base *url.URL, protocol string, err error) {
	text := endpoint
	if !strings.Contains(text, "://") {
		text = "grpc://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return nil, "", badEndpoint(endpoint)
	}
	switch u.Scheme {
	case "grpc":
		u.Scheme = "http"
		protocol = "grpc"
	case "http", "https":
		protocol = "http/protobuf"
	default:
		return nil, "", badEndpoint(endpoint)
	}
	if u.Port() == "4317" {
		protocol = "grpc"
	}
	if u.Port() == "" && protocol == "grpc" {
		u.Host = net.JoinHostPort(u.Hostname(), "4317")
	}
	if _, err := url.Parse(u.String()); err != nil { // the host may still be invalid
		return nil, "", badEndpoint(endpoint)
	}
	return u, protocol, nil
}

func badEndpoint(endpoint string) error {
	return fault.New(fault.Config, "OTLP endpoint %q is not an address", endpoint).
		WithHint("use http://host:4318 for HTTP, or grpc://host:4317 for gRPC")
}

// env reads the environment of the process, because the exporters do. Reading it from
// elsewhere could give other values than theirs.
func env(name string) string { return os.Getenv(name) } //nolint:forbidigo // see above

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
		built.tracers = memoryProvider{recent: s.recent}
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

// warnInterval is how often a failing export is logged.
const warnInterval = time.Minute

// exportWarnings logs failing exports, only on the console: the first at once, then at
// most one per minute.
type exportWarnings struct {
	log   *slog.Logger
	clock clock.Clock

	mu         sync.Mutex
	next       time.Time // no warning before this time
	suppressed int       // warnings suppressed since the last one
}

// warn logs that a signal was not delivered.
func (c *exportWarnings) warn(signal string, err error) {
	if suppressed, now := c.due(); now {
		c.log.Warn("telemetry is not delivered", "signal", signal, KeyError, err, "unmentioned", suppressed)
	}
}

// due reports whether a warning may be logged now, and how many were suppressed since
// the last one.
func (c *exportWarnings) due() (suppressed int, now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.clock.Now()
	if t.Before(c.next) {
		c.suppressed++
		return 0, false
	}
	suppressed, c.suppressed, c.next = c.suppressed, 0, t.Add(warnInterval)
	return suppressed, true
}
