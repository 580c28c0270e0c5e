package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/observe/telemetry/otlptest"
)

// TestTracesAreStored checks that traces are stored whether or not they are exported
// too.
func TestTracesAreStored(t *testing.T) {
	t.Parallel()
	sink := otlptest.Start(t)
	for name, endpoint := range map[string]string{"in memory only": "", "exported too": sink.HTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tel := setupInMemory(t, Options{RecentTraces: 5, Endpoint: endpoint})
			id := oneRequest(t, tel.Tracer("x"))
			whole, found := tel.Traces().Get(t.Context(), id)
			if !found || whole.Name != "request" || !whole.Failed || whole.Count != 2 {
				t.Fatalf("stored: %v %+v", found, whole)
			}
			if again, found := tel.Traces().Get(t.Context(), strings.ToUpper(id[:6])); !found || again.ID != id {
				t.Errorf("by the beginning of its id: %v %+v", found, again)
			}
			if _, found := tel.Traces().Get(t.Context(), id[:3]); found {
				t.Error("found by too little of its id")
			}
			outer, inner := whole.Spans[0], whole.Spans[1]
			if inner.Parent != outer.ID || outer.Parent != "" || outer.Attributes["tool"] != "fs.read" {
				t.Errorf("outer %+v, inner %+v", outer, inner)
			}
			if inner.Error != "no such file" || len(inner.Events) != 1 || inner.Events[0].Attributes["exception.message"] != "gone" {
				t.Errorf("the failed one: %+v", inner)
			}
			if list := tel.Traces().List(t.Context(), 10); len(list) != 1 || list[0].Spans != nil {
				t.Errorf("listed: %+v", list)
			}
		})
	}
}

func setupInMemory(t testing.TB, o Options) *Telemetry {
	t.Helper()
	tel, err := Setup(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.WithoutCancel(t.Context())) })
	return tel
}

// oneRequest makes a trace of two spans and returns its id.
func oneRequest(t *testing.T, tracer trace.Tracer) string {
	ctx, outer := tracer.Start(t.Context(), "request", trace.WithAttributes(attribute.String("tool", "fs.read")))
	_, inner := tracer.Start(ctx, "call")
	inner.RecordError(errors.New("gone"))
	inner.SetStatus(codes.Error, "no such file")
	inner.End()
	inner.SetName("too late")
	outer.End()
	return outer.SpanContext().TraceID().String()
}

func TestTheOldestTraceIsReplaced(t *testing.T) {
	t.Parallel()
	tel := setupInMemory(t, Options{RecentTraces: 3})
	for i := range 5 {
		ctx, span := tel.Tracer("x").Start(t.Context(), fmt.Sprint(i))
		for range (5 - i) * 3 { // the earlier traces were larger
			_, inner := tel.Tracer("x").Start(ctx, "within "+fmt.Sprint(i))
			inner.End()
		}
		span.End()
	}
	var names []string
	for _, stored := range tel.Traces().List(t.Context(), 10) {
		names = append(names, stored.Name)
		whole, _ := tel.Traces().Get(t.Context(), stored.ID)
		for _, span := range whole.Spans {
			if len(whole.Spans) != stored.Count || span.Name != stored.Name && span.Name != "within "+stored.Name {
				t.Errorf("trace %s of %d spans has %s", stored.Name, stored.Count, span.Name)
			}
		}
	}
	if got := fmt.Sprint(names); got != "[4 3 2]" {
		t.Errorf("stored %s", got)
	}
}

// TestUpstreamsSeeTheCallersSpan checks that upstreams get the caller's span, not
// ours, while nothing is exported.
func TestUpstreamsSeeTheCallersSpan(t *testing.T) {
	t.Parallel()
	tel := setupInMemory(t, Options{RecentTraces: 3})
	caller := trace.NewSpanContext(trace.SpanContextConfig{TraceID: newTraceID(), SpanID: newSpanID(), TraceFlags: trace.FlagsSampled, Remote: true})
	header := http.Header{}
	Inject(trace.ContextWithRemoteSpanContext(t.Context(), caller), header)
	want := header.Get("Traceparent")
	ctx, outer := tel.Tracer("x").Start(Extract(t.Context(), header), "outer")
	ctx, inner := tel.Tracer("x").Start(ctx, "inner")
	sent := http.Header{}
	if Inject(ctx, sent); sent.Get("Traceparent") != want {
		t.Errorf("the upstream gets %q, want %q", sent.Get("Traceparent"), want)
	}
	ctx, root := tel.Tracer("x").Start(ctx, "root", trace.WithNewRoot())
	if Inject(ctx, sent); !strings.Contains(sent.Get("Traceparent"), root.SpanContext().TraceID().String()) || !strings.HasSuffix(sent.Get("Traceparent"), "-00") {
		t.Errorf("with a new root the upstream gets %q", sent.Get("Traceparent"))
	}
	inner.End()
	outer.End()
	whole, found := tel.Traces().Get(t.Context(), caller.TraceID().String())
	if !found || len(whole.Spans) != 2 || whole.Spans[0].Parent != "" || whole.Spans[1].Parent != whole.Spans[0].ID {
		t.Errorf("stored: %v %+v", found, whole)
	}
}

func BenchmarkSpanInMemory(b *testing.B) {
	tel := setupInMemory(b, Options{RecentTraces: 200})
	tracer := tel.Tracer("x")
	b.ReportAllocs()
	for b.Loop() {
		_, span := tracer.Start(b.Context(), "x", trace.WithAttributes(attribute.String("tool", "fs.read")))
		span.End()
	}
}
