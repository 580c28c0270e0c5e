package telemetry

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

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
