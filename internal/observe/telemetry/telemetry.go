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
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
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

// Attribute keys that several packages use, in logs and in spans, so that one search
// finds all entries about a thing.
const (
	KeyTraceID  = "trace_id"
	KeySpanID   = "span_id"
	KeyError    = "error"
	KeyTool     = "tool"     // in the form space.name
	KeyUpstream = "upstream" // its namespace
	KeyScript   = "script"   // its hash
	KeyJob      = "job"      // its id
	KeySession  = "session"  // shortened: the whole handle is a secret
	KeyTook     = "took"     // a duration

	KeyPrincipal = "luanette.principal" // whose a span is
	KeyOrg       = "luanette.org"
	KeyPerson    = "luanette.person" // for whom a principal acts in a chat
)

// ownerAttributes says whose a span is. Spans of the local owner have none: where nobody
// else is, everything is theirs.
func ownerAttributes(o principal.Owner) []attribute.KeyValue {
	if o == (principal.Owner{ID: principal.LocalID}) {
		return nil
	}
	list := append(make([]attribute.KeyValue, 0, 3), attribute.String(KeyPrincipal, o.ID))
	if o.Org != "" {
		list = append(list, attribute.String(KeyOrg, o.Org))
	}
	if o.Person != "" {
		list = append(list, attribute.String(KeyPerson, o.Person))
	}
	return list
}

// ownerIn returns whose a span with these attributes is.
func ownerIn(attributes []attribute.KeyValue) (o principal.Owner) {
	for _, a := range attributes {
		switch a.Key {
		case KeyPrincipal:
			o.ID = a.Value.AsString()
		case KeyOrg:
			o.Org = a.Value.AsString()
		case KeyPerson:
			o.Person = a.Value.AsString()
		}
	}
	return o
}

// Reserved reports whether an attribute says whose a span is: scripts cannot set it.
func Reserved(key string) bool { return key == KeyPrincipal || key == KeyOrg || key == KeyPerson }

// visible returns the trace as a principal sees it: without the spans of others. The id of a
// trace can come from a client, so that a trace may have spans of several owners. ok is
// false if nothing is left.
func (k *storedTrace) visible(who principal.Principal) (seen storedTrace, ok bool) {
	if who.SeesAll() {
		return *k, true
	}
	for _, s := range k.spans {
		if !who.Sees(s.owner) {
			continue
		}
		if !ok {
			seen, ok = storedTrace{id: k.id, name: s.name, start: s.start}, true
		}
		seen.take(s)
	}
	return seen, ok
}

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

type inheritedKey struct{}

// WithAttributes returns a context whose spans all have these attributes: a search for a
// job finds its calls, not only its run.
func WithAttributes(ctx context.Context, all ...attribute.KeyValue) context.Context {
	return context.WithValue(ctx, inheritedKey{}, all)
}

// inherited returns the attributes that a span gets from its context.
func inherited(ctx context.Context) []attribute.KeyValue {
	all, _ := ctx.Value(inheritedKey{}).([]attribute.KeyValue)
	return all
}

// inheritor gives spans of the SDK what they inherit, and their owner.
type inheritor struct{}

func (inheritor) OnStart(ctx context.Context, s sdktrace.ReadWriteSpan) {
	s.SetAttributes(inherited(ctx)...)
	s.SetAttributes(ownerAttributes(principal.OwnerOf(ctx))...)
}

func (inheritor) OnEnd(sdktrace.ReadOnlySpan)      {}
func (inheritor) Shutdown(context.Context) error   { return nil }
func (inheritor) ForceFlush(context.Context) error { return nil }

// idProvider is used when nothing is exported. Its spans record nothing but have real
// ids, so that log lines, scripts and upstreams can still correlate requests. If the
// context already has a span, that one is used: a span of ours would be missing in
// every trace viewer.
type idProvider struct{ noop.TracerProvider }

func (idProvider) Tracer(string, ...trace.TracerOption) trace.Tracer { return idTracer{} }

type idTracer struct{ noop.Tracer }

// Start returns the span of ctx, or begins a trace.
func (idTracer) Start(ctx context.Context, _ string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	root := len(options) > 0 && isRoot(options)
	if !root && trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, trace.SpanFromContext(ctx)
	}
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceIDOf(ctx), SpanID: newSpanID()}))
	return ctx, trace.SpanFromContext(ctx)
}

// ids makes the ids of the SDK's spans.
type ids struct{}

// NewIDs returns the ids of the first span of a trace.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	return traceIDOf(ctx), newSpanID()
}

// NewSpanID returns the id of a further span.
func (ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return newSpanID() }

type traceIDKey struct{}

// WithTraceID makes a UUID the id of the trace that begins in ctx, so that it can be found
// by what it is about. Any other text changes nothing.
func WithTraceID(ctx context.Context, uuid string) context.Context {
	id, err := trace.TraceIDFromHex(TraceID(uuid))
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, traceIDKey{}, id)
}

// TraceID returns the id of the trace of a UUID.
func TraceID(uuid string) string { return strings.ReplaceAll(uuid, "-", "") }

func traceIDOf(ctx context.Context) trace.TraceID {
	if id, ok := ctx.Value(traceIDKey{}).(trace.TraceID); ok {
		return id
	}
	return newTraceID()
}

func newTraceID() (id trace.TraceID) {
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64()|1) // never all zero
	return id
}

func newSpanID() (id trace.SpanID) {
	binary.NativeEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

func isRoot(options []trace.SpanStartOption) bool {
	config := trace.NewSpanStartConfig(options...)
	return config.NewRoot()
}

// Propagator carries traces between programs: W3C trace context and baggage.
//
// While spans are only stored in memory, it injects the span of the caller, if the
// trace came from one, in place of ours: a span that is never exported would be
// missing between the caller's and the upstream's in every trace viewer.
func Propagator() propagation.TextMapPropagator { return propagator{} }

type propagator struct{}

var w3c = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// callerKey is the context key of the caller's span context.
type callerKey struct{}

func (propagator) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	ctx = w3c.Extract(ctx, carrier)
	if caller := trace.SpanContextFromContext(ctx); caller.IsRemote() {
		ctx = context.WithValue(ctx, callerKey{}, caller)
	}
	return ctx
}

func (propagator) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() && !span.SpanContext().IsSampled() {
		caller, ok := ctx.Value(callerKey{}).(trace.SpanContext)
		if ok && caller.TraceID() == span.SpanContext().TraceID() {
			ctx = trace.ContextWithSpanContext(ctx, caller)
		}
	}
	w3c.Inject(ctx, carrier)
}

func (propagator) Fields() []string { return w3c.Fields() }

// Extract returns ctx with the trace of a request's headers, if there is one.
func Extract(ctx context.Context, h http.Header) context.Context {
	return Propagator().Extract(ctx, propagation.HeaderCarrier(h))
}

// Inject writes the trace of ctx into the headers of a request.
func Inject(ctx context.Context, h http.Header) {
	Propagator().Inject(ctx, propagation.HeaderCarrier(h))
}
