package catalog_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/observe/telemetry/params"
	"github.com/luanette/luanette/internal/tools/catalog"
)

func TestCallsAreSpanned(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("test")
	var c *catalog.Catalog
	outer := func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		return c.Call(ctx, call("b", "inner", `{"n":1}`))
	}
	m := newMemory().with("a", "outer", "", outer).
		with("b", "inner", "", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Failure(fault.New(fault.NotFound, "no such note")), nil
		}).
		with("b", "gone", "", fail(fault.Unavailable))
	c = open(catalog.Options{Tracer: tracer}, m)
	_, _ = c.Call(t.Context(), call("a", "outer", `{"path":"x","api_key":"s3cret"}`))
	_, _ = c.Call(t.Context(), call("b", "gone", ""))
	all := spans.Ended()
	if len(all) != 3 {
		t.Fatalf("%d spans, want 3", len(all))
	}
	inner, outerSpan, gone := all[0], all[1], all[2]
	if inner.Name() != "luanette.mcp.b.inner" || outerSpan.Name() != "luanette.mcp.a.outer" {
		t.Errorf("names %q, %q", inner.Name(), outerSpan.Name())
	}
	if inner.Parent().SpanID() != outerSpan.SpanContext().SpanID() {
		t.Error("the inner call's span is not the outer one's child")
	}
	want := map[attribute.Key]string{
		"mcp.namespace": "a", "mcp.tool": "outer", "mcp.params": `{"api_key":"[redacted]","path":"x"}`,
		"mcp.params.api_key": "[redacted]", "mcp.params.path": "x",
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "outer", "gen_ai.operation.name": "execute_tool",
		"error.type": "tool_error",
	}
	for _, a := range params.Expand(outerSpan.Attributes()) {
		if w, ok := want[a.Key]; !ok || a.Value.AsString() != w {
			t.Errorf("attribute %s = %q, want %q", a.Key, a.Value.AsString(), w)
		}
		delete(want, a.Key)
	}
	if len(want) > 0 {
		t.Errorf("attributes missing: %v", want)
	}
	if !strings.Contains(inner.Status().Description, "no such note") || len(gone.Events()) != 1 {
		t.Errorf("inner status %+v, events of the failed one %+v", inner.Status(), gone.Events())
	}
}

func TestCallsArePublished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := event.New(event.BusOptions{})
		sub := bus.Subscribe(event.Options{Types: []string{"tool.*"}})
		defer sub.Close()
		slow := func(ctx context.Context, call tool.Call) (tool.Result, error) {
			time.Sleep(250 * time.Millisecond)
			return fail(fault.Upstream)(ctx, call)
		}
		c := open(catalog.Options{Bus: bus}, newMemory().with("a", "x", "", slow))
		made := call("a", "x", "")
		made.Caller = &tool.Caller{ID: "ada"}
		_, _ = c.Call(t.Context(), made)
		first, _ := sub.Poll()
		second, _ := sub.Poll()
		if want := (catalog.CallStarted{Call: 1, Namespace: "a", Tool: "x", Caller: "ada", Depth: 1}); first.Data != want {
			t.Errorf("first event %+v, want %+v", first.Data, want)
		}
		want := catalog.CallEnded{
			Call: 1, Namespace: "a", Tool: "x", Caller: "ada", Depth: 1, Duration: 250 * time.Millisecond, DurationMS: 250,
			ErrorType: "upstream_error", Error: "call a.x: broken",
		}
		if second.Data != want {
			t.Errorf("second event %+v, want %+v", second.Data, want)
		}
		if first.Type != "tool.call_started" || second.Type != "tool.call_ended" {
			t.Errorf("types %s, %s", first.Type, second.Type)
		}
	})
}

func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory().with("a", "bad", `{"required":["n"]}`, nil)
		m.with("a", "sleep", "", func(_ context.Context, call tool.Call) (tool.Result, error) {
			var in struct{ MS int }
			_ = json.Unmarshal(call.Args, &in)
			time.Sleep(time.Duration(in.MS) * time.Millisecond)
			return tool.Output("slept", nil)
		})
		c := open(catalog.Options{}, m)
		for i := range 100 {
			args, _ := json.Marshal(map[string]int{"ms": i + 1})
			if _, err := c.Call(t.Context(), tool.Call{Ref: ref("a", "sleep"), Args: args}); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = c.Call(t.Context(), call("a", "bad", ""))
		s, ok := c.Stats(t.Context(), "a")
		if !ok || s.Calls != 101 || s.Errors != 1 || s.LastTool != "bad" || s.Max != 100*time.Millisecond {
			t.Errorf("stats = %+v", s)
		}
		for want, got := range map[time.Duration]time.Duration{
			50 * time.Millisecond: s.P50, 90 * time.Millisecond: s.P90, 99 * time.Millisecond: s.P99,
		} {
			if got < want || got > want*5/4 {
				t.Errorf("quantile %v, want about %v", got, want)
			}
		}
		if _, ok := c.Stats(t.Context(), "nowhere"); ok {
			t.Error("stats of a namespace that does not exist")
		}
	})
}

func TestCallsAreMetered(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	meter := metric.NewMeterProvider(metric.WithReader(reader)).Meter("test")
	c := open(catalog.Options{Meter: meter}, newMemory().with("a", "x", "", nil))
	for range 3 {
		_, _ = c.Call(t.Context(), call("a", "x", ""))
	}
	var found metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &found); err != nil {
		t.Fatal(err)
	}
	m := found.ScopeMetrics[0].Metrics[0]
	points := m.Data.(metricdata.Histogram[float64]).DataPoints
	if m.Name != "luanette.tool.call.duration" || m.Unit != "s" || len(points) != 1 || points[0].Count != 3 {
		t.Errorf("metric %s (%s): %+v", m.Name, m.Unit, points)
	}
}
