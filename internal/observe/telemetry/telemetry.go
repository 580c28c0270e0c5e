// Package telemetry lets the program be watched: OpenTelemetry traces, metrics
// and logs over OTLP, and logs for people on standard error.
//
// Nothing is exported unless the standard OTEL_* variables or Options.Endpoint
// ask for it; then spans and instruments are real, otherwise they do nothing. A
// collector that is away never holds anything up: what it does not take in time
// is dropped, and a line on standard error says so, at most one per minute.
//
// There is no global state: the providers belong to the Telemetry, not to the
// otel package, so several of them live side by side in one process.
package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
)

// shutdownLimit is the longest that Shutdown lets a collector take. Tests let theirs
// take longer.
var shutdownLimit = 2 * time.Second

// Options say who we are and where things go.
type Options struct {
	Service string // service.name, unless OTEL_SERVICE_NAME gives another; empty means "luanette"
	Version string // service.version; may be empty
	// Environment is deployment.environment.name, such as "production"; may be empty.
	Environment string

	// Endpoint is a collector, for all three signals; empty leaves it to the OTEL_*
	// variables. http(s)://host:port speaks HTTP, grpc://host:port or host:port
	// gRPC, as does port 4317; OTEL_EXPORTER_OTLP_PROTOCOL overrides.
	Endpoint string

	LogLevel  slog.Level // below it nothing is logged; the zero value is info
	LogFormat string     // "text" (the default) or "json"
	Stderr    io.Writer  // where logs are written; nil means nowhere

	// Tap gets every record that is logged, beside Stderr and the collector; nil
	// means nobody does.
	Tap slog.Handler
	// RecentTraces is how many traces are kept in memory; zero keeps none.
	RecentTraces int
}

// Telemetry is what Setup has built. Whoever set it up shuts it down.
type Telemetry struct {
	logger    *slog.Logger
	tracers   trace.TracerProvider
	meters    metric.MeterProvider
	recent    *Traces
	exporting bool
	shutdowns []func(context.Context) error
	level     *slog.LevelVar
}

// Setup builds the exporters that are asked for and the logger. It does not
// connect to anything yet, so a collector may come later.
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
	p, err := plan.build(ctx, newResource(ctx, o, complain), newTraces(o.RecentTraces), complain)
	if err != nil {
		return nil, err
	}
	handler := newHandler(console, p.logs)
	if o.Tap != nil {
		handler = both{handler, newTraced(o.Tap)}
	}
	return &Telemetry{
		logger:    slog.New(handler),
		recent:    p.recent,
		tracers:   p.tracers,
		meters:    p.meters,
		exporting: len(p.shutdowns) > 0,
		shutdowns: p.shutdowns,
		level:     level,
	}, nil
}

// SetLevel changes below which level nothing is logged.
func (t *Telemetry) SetLevel(level slog.Level) { t.level.Set(level) }

// Logger writes to Options.Stderr and, when logs are exported, to the collector.
// Records logged with a context carry its trace_id and span_id.
func (t *Telemetry) Logger() *slog.Logger { return t.logger }

// Exporting tells whether anything is sent to a collector.
func (t *Telemetry) Exporting() bool { return t.exporting }

// Traces are the latest ones, kept in memory; nil unless Options.RecentTraces
// asked for them.
func (t *Telemetry) Traces() *Traces { return t.recent }

// Tracer makes spans in the name of a package.
func (t *Telemetry) Tracer(name string) trace.Tracer { return t.tracers.Tracer(name) }

// Meter makes instruments in the name of a package.
func (t *Telemetry) Meter(name string) metric.Meter { return t.meters.Meter(name) }

// Handler traces and measures the requests that next serves; the trace of a
// caller that sends one is continued. Spans are named by method and route. While
// nothing is exported a request has no span of its own, for nobody would see more
// in it than in those of what it asks for.
func (t *Telemetry) Handler(next http.Handler) http.Handler {
	if t.exporting {
		return otelhttp.NewHandler(next, "http", t.http()...)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["Traceparent"]) > 0 {
			r = r.WithContext(Propagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
		}
		next.ServeHTTP(w, r)
	})
}

// Transport traces and measures requests made through base, and tells the other
// side which trace they belong to. A nil base means http.DefaultTransport.
func (t *Telemetry) Transport(base http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(base, t.http()...)
}

func (t *Telemetry) http() []otelhttp.Option {
	return []otelhttp.Option{
		otelhttp.WithTracerProvider(t.tracers),
		otelhttp.WithMeterProvider(t.meters),
		otelhttp.WithPropagators(Propagator()),
	}
}

// Shutdown delivers what is still held back and stops exporting. It takes at
// most two seconds, or less if ctx ends sooner. A collector that does not take
// the rest is complained about like any other time; it is no error of ours.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownLimit)
	defer cancel()
	errs := make([]error, len(t.shutdowns))
	var all sync.WaitGroup // side by side, so that a dead collector costs its time once
	for i, stop := range t.shutdowns {
		all.Go(func() { errs[i] = stop(ctx) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fault.Wrap(fault.Internal, err, "shut down telemetry")
	}
	return nil
}
