package telemetry

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	gometrics "runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/observe/telemetry/duration"
)

// Handler traces and measures the requests that next serves, by the semantic conventions
// for HTTP servers. It continues the trace of the caller, if the request has one. Spans
// are named by method and route. While nothing is exported, a request has no span of its
// own, because the spans of its calls already show everything.
//
// It is not otelhttp, because that adds 1.8 MB of response writers to the binary.
func (t *Telemetry) Handler(next http.Handler) http.Handler {
	h := &requestHandler{next: next, durations: duration.New[requestKind](t.Meter("http"), duration.Options{
		Name: "http.server.request.duration", Description: "Duration of HTTP server requests.", Boundaries: duration.HTTP,
	})}
	if t.exporting {
		h.tracer = t.Tracer("http")
	}
	return h
}

// requestHandler is what Handler returns.
type requestHandler struct {
	next      http.Handler
	tracer    trace.Tracer // nil: requests have no span
	durations *duration.Histogram[requestKind]
}

func (h *requestHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.tracer != nil || len(r.Header["Traceparent"]) > 0 {
		r = r.WithContext(Propagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
	}
	if h.tracer == nil && !h.durations.Enabled(r.Context()) {
		h.next.ServeHTTP(w, r)
		return
	}
	began, out := time.Now(), &countingWriter{ResponseWriter: w}
	defer func() { //nolint:contextcheck // r has it
		h.durations.Record(r.Context(), requestKind{methodOf(r), schemeOf(r), versionOf(r), routePath(r), out.statusCode()}, time.Since(began))
	}()
	if h.tracer == nil {
		h.next.ServeHTTP(out, r)
		return
	}
	ctx, span := h.tracer.Start(r.Context(), methodOf(r), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(requestAttributes(r)...))
	defer span.End()
	r = r.WithContext(ctx)
	h.next.ServeHTTP(out, r)
	endRequest(span, r, out)
}

// requestAttributes are those that are known before a request is served. The query may
// contain secrets and is left out.
func requestAttributes(r *http.Request) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("http.request.method", methodOf(r)),
		attribute.String("url.scheme", schemeOf(r)),
		attribute.String("url.path", r.URL.Path),
		attribute.String("server.address", hostOf(r.Host)),
		attribute.String("client.address", hostOf(r.RemoteAddr)),
		attribute.String("network.protocol.version", versionOf(r)),
		attribute.String("user_agent.original", r.UserAgent()),
	}
}

// endRequest adds to a span what is known when its request is served.
func endRequest(span trace.Span, r *http.Request, out *countingWriter) {
	status := out.statusCode()
	span.SetAttributes(attribute.Int("http.response.status_code", status), attribute.Int64("http.response.body.size", out.written))
	if route := routePath(r); route != "" {
		span.SetName(methodOf(r) + " " + route)
		span.SetAttributes(attribute.String("http.route", route))
	}
	if status >= http.StatusInternalServerError {
		span.SetAttributes(attribute.String("error.type", strconv.Itoa(status)))
		span.SetStatus(codes.Error, http.StatusText(status))
	}
}

// methodOf returns the method of a request. Unknown ones are not told apart: clients
// could make any number of them.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return r.Method
	}
	return "_OTHER"
}

// routePath returns the pattern that served a request, without method and host.
func routePath(r *http.Request) string {
	if at := strings.IndexByte(r.Pattern, '/'); at >= 0 {
		return r.Pattern[at:]
	}
	return ""
}

// hostOf returns an address without its port.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

func schemeOf(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

func versionOf(r *http.Request) string {
	if r.ProtoMajor == 1 {
		return strings.TrimPrefix(r.Proto, "HTTP/")
	}
	return strconv.Itoa(r.ProtoMajor)
}

// requestKind is what the metric tells apart. There are few: a client can choose neither
// the route nor the status, and of the methods only known ones.
type requestKind struct {
	method, scheme, version, route string
	status                         int
}

// Attributes are those of the semantic conventions.
func (k requestKind) Attributes() []attribute.KeyValue {
	failure := ""
	if k.status >= http.StatusInternalServerError {
		failure = strconv.Itoa(k.status)
	}
	return append(duration.Texts("http.request.method", k.method, "url.scheme", k.scheme, "network.protocol.version", k.version,
		"http.route", k.route, "error.type", failure), attribute.Int("http.response.status_code", k.status))
}

// countingWriter remembers the status and the size of a response. The other abilities of
// the writer are found by http.ResponseController.
type countingWriter struct {
	http.ResponseWriter
	status  int
	written int64
}

// Unwrap is for http.ResponseController.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader remembers the first final status.
func (w *countingWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.written += int64(n)
	return n, err
}

// ReadFrom lets the connection read from a file itself.
func (w *countingWriter) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, r)
	w.written += n
	return n, err
}

// statusCode is 200 if the handler set none, as net/http does.
func (w *countingWriter) statusCode() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// addScraped makes the registry that Metrics shows, and the reader that fills it. Names
// follow OpenTelemetry's rules for Prometheus: mcp.server.operation.duration in seconds
// is mcp_server_operation_duration_seconds.
func (p *providers) addScraped() (sdkmetric.Reader, error) {
	p.scraped = prometheus.NewRegistry()
	return otelprometheus.New(otelprometheus.WithRegisterer(p.scraped), otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
}

// Metrics shows the current values of all instruments to Prometheus, in the format that
// the request asks for. It is nil unless Options.Scrape is set.
//
// It is not promhttp, because that adds compression libraries to the binary.
func (t *Telemetry) Metrics() func(http.ResponseWriter, *http.Request) error {
	if t.scraped == nil {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		families, err := t.scraped.Gather()
		if err != nil {
			return fault.Wrap(fault.Internal, err, "read the metrics")
		}
		format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
		w.Header().Set("Content-Type", string(format))
		encoder := expfmt.NewEncoder(w, format)
		for _, family := range families {
			if encoder.Encode(family) != nil {
				return nil //nolint:nilerr // the client is gone
			}
		}
		if end, ok := encoder.(io.Closer); ok {
			_ = end.Close() // the end mark of OpenMetrics
		}
		return nil
	}
}

// observeProcess adds instruments for this process, by the semantic conventions for
// processes and the Go runtime. Memory as the system counts it and file descriptors are
// known only where there is /proc.
func observeProcess(m metric.Meter) error {
	began := time.Now()
	var errs [5]error
	_, errs[0] = m.Float64ObservableGauge("process.uptime", metric.WithUnit("s"), metric.WithDescription("The time the process has been running."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(time.Since(began).Seconds())
			return nil
		}))
	_, errs[1] = m.Int64ObservableUpDownCounter("go.goroutine.count", metric.WithUnit("{goroutine}"), metric.WithDescription("Count of live goroutines."),
		observed(func() (int64, bool) { return int64(runtime.NumGoroutine()), true }))
	_, errs[2] = m.Int64ObservableUpDownCounter("go.memory.used", metric.WithUnit("By"), metric.WithDescription("Memory used by the Go runtime."),
		metric.WithInt64Callback(observeMemory))
	_, errs[3] = m.Int64ObservableUpDownCounter("process.memory.usage", metric.WithUnit("By"), metric.WithDescription("The amount of physical memory in use."),
		observed(residentMemory))
	_, errs[4] = m.Int64ObservableUpDownCounter("process.open_file_descriptor.count", metric.WithUnit("{file_descriptor}"),
		metric.WithDescription("Number of file descriptors in use by the process."), observed(openFiles))
	return errors.Join(errs[:]...)
}

// observed makes a callback of a function that returns a value, or false if there is none.
func observed(read func() (int64, bool)) metric.Int64ObservableOption {
	return metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		if value, ok := read(); ok {
			o.Observe(value)
		}
		return nil
	})
}

var (
	stackMemory = metric.WithAttributeSet(attribute.NewSet(attribute.String("go.memory.type", "stack")))
	otherMemory = metric.WithAttributeSet(attribute.NewSet(attribute.String("go.memory.type", "other")))
)

// observeMemory tells stacks from the rest, as the conventions do. Memory that was
// returned to the system does not count.
func observeMemory(_ context.Context, o metric.Int64Observer) error {
	samples := []gometrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
	}
	gometrics.Read(samples)
	total, released, stacks := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
	o.Observe(int64(stacks), stackMemory) // far from the limit
	o.Observe(int64(total-released-stacks), otherMemory)
	return nil
}

// residentMemory is the second number of /proc/self/statm, in pages.
func residentMemory() (int64, bool) {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}

func openFiles() (int64, bool) {
	folder, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	defer func() { _ = folder.Close() }()
	names, err := folder.Readdirnames(-1)
	return int64(len(names)), err == nil
}
