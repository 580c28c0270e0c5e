// Package otlptest is a collector for tests. It receives OTLP over HTTP and gRPC on
// loopback addresses and returns the records as plain Go values.
package otlptest

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// awaitTimeout is how long Await waits: far longer than any delivery takes, so that a
// test fails only if one is lost.
const awaitTimeout = 30 * time.Second

// Sink is a running collector.
type Sink struct {
	HTTP string // the endpoint for OTLP over HTTP, "http://127.0.0.1:port"
	GRPC string // the endpoint for OTLP over gRPC, "grpc://127.0.0.1:port"

	mu      sync.Mutex
	spans   []Span
	metrics []Metric
	logs    []Log
	changed chan struct{} // closed and replaced when something arrives
}

// Start starts a collector that stops at the end of the test.
func Start(t testing.TB) *Sink {
	t.Helper()
	s := &Sink{changed: make(chan struct{})}
	web := httptest.NewServer(s.routes())
	t.Cleanup(web.Close)
	s.HTTP = web.URL

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start OTLP sink: %v", err)
	}
	server := grpc.NewServer()
	s.register(server)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		served.Wait()
	})
	s.GRPC = "grpc://" + listener.Addr().String()
	return s
}

// Spans returns the received spans, in order of arrival.
func (s *Sink) Spans() []Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spans)
}

// Metrics returns the received metrics, in order of arrival.
func (s *Sink) Metrics() []Metric {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.metrics)
}

// Logs returns the received log records, in order of arrival.
func (s *Sink) Logs() []Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.logs)
}

// AwaitSpan waits for a span of that name. The program sends batches every few
// seconds, and at Shutdown.
func (s *Sink) AwaitSpan(t testing.TB, name string) Span {
	t.Helper()
	return await(t, s, s.Spans, "span", name, func(v Span) string { return v.Name })
}

// AwaitMetric waits for a metric of that name.
func (s *Sink) AwaitMetric(t testing.TB, name string) Metric {
	t.Helper()
	return await(t, s, s.Metrics, "metric", name, func(v Metric) string { return v.Name })
}

// AwaitLog waits for a log record with that text.
func (s *Sink) AwaitLog(t testing.TB, body string) Log {
	t.Helper()
	return await(t, s, s.Logs, "log record", body, func(v Log) string { return v.Body })
}

func await[T any](t testing.TB, s *Sink, arrived func() []T, kind, want string, name func(T) string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
	defer cancel()
	for {
		changed := s.change()
		all := arrived()
		if i := slices.IndexFunc(all, func(v T) bool { return name(v) == want }); i >= 0 {
			return all[i]
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("no %s %q arrived; there are: %s", kind, want, list(all, name))
		}
	}
}

func list[T any](all []T, name func(T) string) string {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = fmt.Sprintf("%q", name(v))
	}
	return strings.Join(names, ", ")
}

// change returns a channel that is closed when something more arrives.
func (s *Sink) change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// add stores received records and wakes the waiting callers.
func (s *Sink) add(spans []Span, metrics []Metric, logs []Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans = append(s.spans, spans...)
	s.metrics = append(s.metrics, metrics...)
	s.logs = append(s.logs, logs...)
	close(s.changed)
	s.changed = make(chan struct{})
}

// The three services, for gRPC and for HTTP.

type traceService struct {
	collecttraces.UnimplementedTraceServiceServer
	*Sink
}

func (s traceService) Export(_ context.Context, r *collecttraces.ExportTraceServiceRequest) (*collecttraces.ExportTraceServiceResponse, error) {
	s.add(spansOf(r.GetResourceSpans()), nil, nil)
	return &collecttraces.ExportTraceServiceResponse{}, nil
}

type metricService struct {
	collectmetrics.UnimplementedMetricsServiceServer
	*Sink
}

func (s metricService) Export(_ context.Context, r *collectmetrics.ExportMetricsServiceRequest) (*collectmetrics.ExportMetricsServiceResponse, error) {
	s.add(nil, metricsOf(r.GetResourceMetrics()), nil)
	return &collectmetrics.ExportMetricsServiceResponse{}, nil
}

type logService struct {
	collectlogs.UnimplementedLogsServiceServer
	*Sink
}

func (s logService) Export(_ context.Context, r *collectlogs.ExportLogsServiceRequest) (*collectlogs.ExportLogsServiceResponse, error) {
	s.add(nil, nil, logsOf(r.GetResourceLogs()))
	return &collectlogs.ExportLogsServiceResponse{}, nil
}

func (s *Sink) register(server *grpc.Server) {
	collecttraces.RegisterTraceServiceServer(server, traceService{Sink: s})
	collectmetrics.RegisterMetricsServiceServer(server, metricService{Sink: s})
	collectlogs.RegisterLogsServiceServer(server, logService{Sink: s})
}

func (s *Sink) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/traces", receive(traceService{Sink: s}.Export))
	mux.Handle("POST /v1/metrics", receive(metricService{Sink: s}.Export))
	mux.Handle("POST /v1/logs", receive(logService{Sink: s}.Export))
	return mux
}

// message is a protobuf message whose pointer is P.
type message[T any] interface {
	*T
	proto.Message
}

// receive returns an HTTP handler of a service's one method.
func receive[T any, P message[T], R proto.Message](export func(context.Context, P) (R, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := P(new(T))
		if err := decode(r, request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := export(r.Context(), request)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		raw, err := proto.Marshal(answer)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(raw) // the client may have disconnected
	})
}

func decode(r *http.Request, into proto.Message) error {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = unzipped
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return proto.Unmarshal(raw, into)
}

// Span is a received span. Ids are hex; ParentID is empty for a root.
type Span struct {
	Name       string
	TraceID    string
	SpanID     string
	ParentID   string
	Kind       string // "server", "client", "internal", "producer" or "consumer"
	Start, End time.Time
	Failed     bool   // the status is error
	Status     string // its message
	Attributes map[string]any
	Events     []string // their names
	Scope      string   // the tracer's name
	Resource   map[string]any
}

// Metric is a received metric, with its points at that time.
type Metric struct {
	Name     string
	Unit     string
	Points   []Point
	Scope    string // the meter's name
	Resource map[string]any
}

// Point is one value of a metric. For a histogram, Value is the sum and Count the
// number of its values.
type Point struct {
	Attributes map[string]any
	Value      float64
	Count      uint64
}

// Log is a received log record. Ids are hex, and empty outside of a trace.
type Log struct {
	Body       string
	Severity   string
	TraceID    string
	SpanID     string
	Attributes map[string]any
	Resource   map[string]any
}

var kinds = map[tracepb.Span_SpanKind]string{
	tracepb.Span_SPAN_KIND_INTERNAL: "internal",
	tracepb.Span_SPAN_KIND_SERVER:   "server",
	tracepb.Span_SPAN_KIND_CLIENT:   "client",
	tracepb.Span_SPAN_KIND_PRODUCER: "producer",
	tracepb.Span_SPAN_KIND_CONSUMER: "consumer",
}

func spansOf(resources []*tracepb.ResourceSpans) (all []Span) {
	for _, r := range resources {
		about := attributes(r.GetResource().GetAttributes())
		for _, scope := range r.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				span := spanOf(s)
				span.Scope, span.Resource = scope.GetScope().GetName(), about
				all = append(all, span)
			}
		}
	}
	return all
}

func spanOf(s *tracepb.Span) Span {
	span := Span{
		Name:       s.GetName(),
		TraceID:    hex.EncodeToString(s.GetTraceId()),
		SpanID:     hex.EncodeToString(s.GetSpanId()),
		ParentID:   hex.EncodeToString(s.GetParentSpanId()),
		Kind:       kinds[s.GetKind()],
		Start:      at(s.GetStartTimeUnixNano()),
		End:        at(s.GetEndTimeUnixNano()),
		Failed:     s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
		Status:     s.GetStatus().GetMessage(),
		Attributes: attributes(s.GetAttributes()),
	}
	for _, e := range s.GetEvents() {
		span.Events = append(span.Events, e.GetName())
	}
	return span
}

func metricsOf(resources []*metricspb.ResourceMetrics) (all []Metric) {
	for _, r := range resources {
		about := attributes(r.GetResource().GetAttributes())
		for _, scope := range r.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				all = append(all, Metric{
					Name: m.GetName(), Unit: m.GetUnit(), Points: pointsOf(m),
					Scope: scope.GetScope().GetName(), Resource: about,
				})
			}
		}
	}
	return all
}

func pointsOf(m *metricspb.Metric) (points []Point) {
	numbers := append(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()...) // one of them is empty
	for _, p := range numbers {
		value := p.GetAsDouble()
		if whole, ok := p.GetValue().(*metricspb.NumberDataPoint_AsInt); ok {
			value = float64(whole.AsInt)
		}
		points = append(points, Point{Attributes: attributes(p.GetAttributes()), Value: value, Count: 1})
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		points = append(points, Point{Attributes: attributes(p.GetAttributes()), Value: p.GetSum(), Count: p.GetCount()})
	}
	return points
}

func logsOf(resources []*logspb.ResourceLogs) (all []Log) {
	for _, r := range resources {
		about := attributes(r.GetResource().GetAttributes())
		for _, scope := range r.GetScopeLogs() {
			for _, l := range scope.GetLogRecords() {
				all = append(all, Log{
					Body:       l.GetBody().GetStringValue(),
					Severity:   l.GetSeverityText(),
					TraceID:    hex.EncodeToString(l.GetTraceId()),
					SpanID:     hex.EncodeToString(l.GetSpanId()),
					Attributes: attributes(l.GetAttributes()),
					Resource:   about,
				})
			}
		}
	}
	return all
}

func attributes(pairs []*commonpb.KeyValue) map[string]any {
	m := make(map[string]any, len(pairs))
	for _, p := range pairs {
		m[p.GetKey()] = plain(p.GetValue())
	}
	return m
}

// plain converts v to a string, bool, int64, float64, []byte, []any, map[string]any or
// nil.
func plain(v *commonpb.AnyValue) any {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_BoolValue:
		return v.BoolValue
	case *commonpb.AnyValue_IntValue:
		return v.IntValue
	case *commonpb.AnyValue_DoubleValue:
		return v.DoubleValue
	case *commonpb.AnyValue_BytesValue:
		return v.BytesValue
	case *commonpb.AnyValue_KvlistValue:
		return attributes(v.KvlistValue.GetValues())
	case *commonpb.AnyValue_ArrayValue:
		list := make([]any, len(v.ArrayValue.GetValues()))
		for i, e := range v.ArrayValue.GetValues() {
			list[i] = plain(e)
		}
		return list
	default:
		return nil
	}
}

func at(nanos uint64) time.Time { return time.Unix(0, int64(nanos)).UTC() } // until the year 2262
