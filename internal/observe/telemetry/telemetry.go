// Package telemetry sets up OpenTelemetry traces, metrics and logs over OTLP, and logs
// for people on standard error.
// || Nothing is exported unless the standard OTEL_* variables or Options.Endpoint are
// set. Without them, spans and instruments do nothing. An unreachable collector never
// blocks the program: records that it does not accept in time are dropped, and a line
// on standard error says so, at most one per minute.
// || There is no global state: the providers belong to the Telemetry, not to the otel
// package, so one process can have several.
package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
)

// shutdownLimit is how long Shutdown waits for a collector. Tests set a longer time.
var shutdownLimit = 2 * time.Second

// Options are the options of Setup.
type Options struct {
	Service string // service.name, unless OTEL_SERVICE_NAME gives another; empty means "luanette"
	Version string // service.version; may be empty
	// Environment is deployment.environment.name, such as "production"; may be empty.
	Environment string

	// Endpoint is a collector for all three signals; empty: the OTEL_* variables
	// apply. http(s)://host:port uses HTTP. grpc://host:port, host:port and port 4317
	// use gRPC. OTEL_EXPORTER_OTLP_PROTOCOL overrides the protocol.
	Endpoint string

	LogLevel  slog.Level // the lowest level that is logged; the zero value is info
	LogFormat string     // "text" (the default) or "json"
	Stderr    io.Writer  // where logs are written; nil discards

	// Tap also gets every record that is logged; may be nil.
	Tap slog.Handler
	// RecentTraces is how many traces are stored in memory; zero means none.
	RecentTraces int
	// Arguments sends the arguments of calls to the collector, without what looks secret.
	Arguments bool
	// Scrape makes metrics available to Prometheus; see Telemetry.Metrics.
	Scrape bool
}

// Telemetry is the result of Setup. The caller of Setup shuts it down.
type Telemetry struct {
	logger    *slog.Logger
	tracers   trace.TracerProvider
	meters    metric.MeterProvider
	recent    *Traces
	scraped   *prometheus.Registry // nil: metrics are not available to Prometheus
	exporting bool
	shutdowns []func(context.Context) error
	level     *slog.LevelVar
	logs      log.LoggerProvider // nil: logs are not exported
}

// Setup creates the configured exporters and the logger. It does not connect yet, so a
// collector may start later.
func Setup(ctx context.Context, o Options) (*Telemetry, error) {
	level := new(slog.LevelVar)
	level.Set(o.LogLevel)
	console, err := newConsole(o, level)
	if err != nil {
		return nil, err
	}
	plan, err := planExport(o.Endpoint)
	if err != nil {
		return nil, err
	}
	complain := &exportWarnings{log: slog.New(console), clock: clock.Real()}
	p, err := plan.build(ctx, setup{newResource(ctx, o, complain), newTraces(o.RecentTraces), o.Scrape, o.Arguments, complain})
	if err != nil {
		return nil, err
	}
	handler := newHandler(console, p.logs)
	if o.Tap != nil {
		handler = both{handler, newTraced(o.Tap)}
	}
	return &Telemetry{
		logger:    slog.New(maskingHandler{handler}),
		recent:    p.recent,
		tracers:   p.tracers,
		meters:    p.meters,
		scraped:   p.scraped,
		exporting: len(p.shutdowns) > 0,
		shutdowns: p.shutdowns,
		level:     level,
		logs:      p.logs,
	}, nil
}

// SetLevel sets the lowest level that is logged.
func (t *Telemetry) SetLevel(level slog.Level) { t.level.Set(level) }

// Logger returns a logger that writes to Options.Stderr and, if logs are exported, to
// the collector. Records logged with a context have its trace_id and span_id.
func (t *Telemetry) Logger() *slog.Logger { return t.logger }

// Exported returns a handler that writes only to the collector, under the name of a
// package, whatever the level; nil if logs are not exported.
func (t *Telemetry) Exported(name string) slog.Handler {
	if t.logs == nil {
		return nil
	}
	return otelslog.NewHandler(name, otelslog.WithLoggerProvider(t.logs))
}

// Exporting reports whether anything is sent to a collector.
func (t *Telemetry) Exporting() bool { return t.exporting }

// Traces returns the latest traces in memory; nil if Options.RecentTraces is zero.
func (t *Telemetry) Traces() *Traces { return t.recent }

// Tracer returns a tracer with the name of a package.
func (t *Telemetry) Tracer(name string) trace.Tracer { return t.tracers.Tracer(name) }

// Meter returns a meter with the name of a package.
func (t *Telemetry) Meter(name string) metric.Meter { return t.meters.Meter(name) }

// Shutdown sends the remaining records and stops exporting. It takes at most two
// seconds, or less if ctx ends sooner. If a collector does not accept the rest, a
// warning is logged; Shutdown returns no error for it.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownLimit)
	defer cancel()
	errs := make([]error, len(t.shutdowns))
	var all sync.WaitGroup // in parallel, so that an unreachable collector delays it once
	for i, stop := range t.shutdowns {
		all.Go(func() { errs[i] = stop(ctx) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fault.Wrap(fault.Internal, err, "shut down telemetry")
	}
	return nil
}
