package hub_test

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

const (
	inMeta   = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	inHeader = "00-1af7651916cd43dd8448eb211c80319d-11f067aa0ba902b8-01"
)

func TestSpansContinueTheClientsTrace(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	reader := metric.NewManualReader()
	var within trace.SpanContext
	h := hub.New(hub.Options{
		Name: "t", Version: "1",
		Tools: tools{
			"look": func(ctx context.Context, call tool.Call) (tool.Result, error) {
				within = trace.SpanContextFromContext(ctx)
				if strings.Contains(string(call.Meta), "traceparent") {
					t.Errorf("_meta still says %s", call.Meta)
				}
				return textResult("seen"), nil
			},
			"fail": protocolTools()["fail"],
		},
		Tracer:     sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("t"),
		Meter:      metric.NewMeterProvider(metric.WithReader(reader)).Meter("t"),
		Propagator: propagation.TraceContext{},
	})
	defer h.Close(t.Context())
	c := &client{t: t, modern: true}
	header := modernHeader("look")
	header.Set("Traceparent", inHeader)
	call := strings.Replace(c.call("1", "look", ""), `"_meta":{`, `"_meta":{"traceparent":"`+inMeta+`",`, 1)
	post(t, h.Handler(), header, call)
	post(t, h.Handler(), header, c.call("2", "look", "")) // the header alone
	post(t, h.Handler(), modernHeader("fail"), c.call("3", "fail", ""))
	post(t, h.Handler(), http.Header{wire.HeaderRevision: {wire.NewestModern}, wire.HeaderMethod: {"nothing"}},
		`{"jsonrpc":"2.0","id":4,"method":"nothing","params":{"_meta":{`+c.modernMeta()+`}}}`)

	ended := spans.Ended()
	if len(ended) != 4 {
		t.Fatalf("%d spans", len(ended))
	}
	first := ended[0]
	if first.Name() != "tools/call look" || first.SpanKind() != trace.SpanKindServer {
		t.Errorf("span %q of kind %s", first.Name(), first.SpanKind())
	}
	if got := first.Parent().TraceID().String(); !strings.Contains(inMeta, got) {
		t.Errorf("the parent is of trace %s, not the one in _meta", got)
	}
	if links := first.Links(); len(links) != 1 || !strings.Contains(inHeader, links[0].SpanContext.TraceID().String()) {
		t.Errorf("links %v, want the one of the HTTP request", links)
	}
	if got := ended[1].Parent().TraceID(); !strings.Contains(inHeader, got.String()) || within.TraceID() != got {
		t.Errorf("with the header alone the trace is %s, inside %s", got, within.TraceID())
	}
	for key, want := range map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "look", "gen_ai.operation.name": "execute_tool",
		"mcp.protocol.version": "2026-07-28", "network.transport": "tcp", "jsonrpc.request.id": "1",
	} {
		if got := attributeOf(first.Attributes(), key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if got := attributeOf(ended[2].Attributes(), "error.type"); got != "tool_error" {
		t.Errorf("a failing tool has error.type %q", got)
	}
	if got := attributeOf(ended[3].Attributes(), "error.type"); got != "-32601" {
		t.Errorf("an unknown method has error.type %q", got)
	}
	checkDurations(t, reader)
}

// Where the HTTP request has a span of its own, ours is below it, unless _meta
// says otherwise.
func TestSpansNestInTheHTTPRequests(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("t")
	h := hub.New(hub.Options{
		Name: "t", Version: "1", Tools: tools{"look": func(context.Context, tool.Call) (tool.Result, error) { return textResult("seen"), nil }},
		Tracer: tracer, Propagator: propagation.TraceContext{},
	})
	defer h.Close(t.Context())
	outside := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := tracer.Start(propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header)), "POST /mcp")
		defer span.End()
		h.Handler().ServeHTTP(w, r.WithContext(ctx))
	})
	c := &client{t: t, modern: true}
	with := func(meta string) string {
		return strings.Replace(c.call("1", "look", ""), `"_meta":{`, `"_meta":{"traceparent":"`+meta+`",`, 1)
	}
	for _, test := range []struct {
		name, header, body string
		nested             bool
		links              int
	}{
		{"no context", "", c.call("1", "look", ""), true, 0},
		{"header", inHeader, c.call("1", "look", ""), true, 0},
		{"the same twice", inHeader, with(inHeader), true, 0},
		{"meta", "", with(inMeta), false, 1},
		{"both", inHeader, with(inMeta), false, 1},
	} {
		spans.Reset()
		header := modernHeader("look")
		if test.header != "" {
			header.Set("Traceparent", test.header)
		}
		post(t, outside, header, test.body)
		ended := spans.Ended()
		if len(ended) != 2 {
			t.Fatalf("%s: %d spans", test.name, len(ended))
		}
		call, request := ended[0], ended[1].SpanContext()
		if nested := call.Parent().Equal(request); nested != test.nested {
			t.Errorf("%s: nested is %v", test.name, nested)
		}
		if links := call.Links(); len(links) != test.links || test.links == 1 && !links[0].SpanContext.Equal(request) {
			t.Errorf("%s: links %v", test.name, links)
		}
	}
}

func attributeOf(attrs []attribute.KeyValue, key string) string {
	for _, a := range attrs {
		if string(a.Key) == key {
			return a.Value.AsString()
		}
	}
	return ""
}

func checkDurations(t *testing.T, reader metric.Reader) {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	count := map[string]uint64{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		if m.Name != "mcp.server.operation.duration" {
			continue
		}
		for _, point := range m.Data.(metricdata.Histogram[float64]).DataPoints {
			count[attributeOf(point.Attributes.ToSlice(), "mcp.method.name")+" "+attributeOf(point.Attributes.ToSlice(), "gen_ai.tool.name")] += point.Count
		}
	}
	if want := (map[string]uint64{"tools/call look": 2, "tools/call fail": 1, "_OTHER ": 1}); !maps.Equal(count, want) {
		t.Errorf("measured %v, want %v", count, want)
	}
}

func TestTraceContextIsRelayedWithoutPropagator(t *testing.T) {
	t.Parallel()
	var meta string
	h := hub.New(hub.Options{Name: "t", Version: "1", Tools: tools{"look": func(_ context.Context, call tool.Call) (tool.Result, error) {
		meta = string(call.Meta)
		return textResult("seen"), nil
	}}})
	defer h.Close(t.Context())
	c := &client{t: t, modern: true}
	post(t, h.Handler(), modernHeader("look"), strings.Replace(c.call("1", "look", ""), `"_meta":{`, `"_meta":{"traceparent":"`+inMeta+`","progressToken":1,`, 1))
	if meta != `{"traceparent":"`+inMeta+`"}` {
		t.Errorf("the tool sees %s", meta)
	}
}
