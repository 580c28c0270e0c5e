package otlptest

import (
	"encoding/hex"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

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

func at(nanos uint64) time.Time { return time.Unix(0, int64(nanos)).UTC() } //nolint:gosec // until the year 2262
