package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script/scripttest"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/store/kv"
	"github.com/luanette/luanette/internal/tools/results"
)

// instantClock is a clock on which waiting takes no time: it advances at once by the
// duration of the wait.
type instantClock struct{ *clock.Virtual }

func newInstantClock(start time.Time) instantClock { return instantClock{clock.NewVirtual(start)} }

func (h instantClock) Sleep(ctx context.Context, d time.Duration) error {
	h.Advance(d)
	return h.Virtual.Sleep(ctx, 0)
}

func (h instantClock) AfterFunc(d time.Duration, f func()) func() bool {
	stop := h.Virtual.AfterFunc(d, f)
	h.Advance(d)
	return stop
}

// watcher is a caller that records progress.
func watcher(progress *[]string) *tool.Caller {
	return &tool.Caller{Progress: func(p tool.Progress) {
		*progress = append(*progress, fmt.Sprintf("%g %s", p.Progress/p.Total, p.Message))
	}}
}

// fakeTools are the tools that stories call.
func fakeTools(music *hootenanny) toolbox {
	box := toolbox{
		{Space: "calc", Name: "double"}: scripttest.HandlerFor(func(_ context.Context, in struct{ N int64 }) (any, error) {
			return map[string]any{"n": 2 * in.N, "list": []int{}, "none": nil}, nil
		}),
		{Space: "calc", Name: "fail"}: scripttest.HandlerFor(func(context.Context, struct{}) (any, error) {
			return nil, errors.New("the abacus is broken")
		}),
		{Space: "calc", Name: "words"}: scripttest.HandlerFor(func(_ context.Context, in struct{ Text string }) (any, error) {
			return nil, nil
		}),
		{Space: "calc", Name: "odd-name"}: scripttest.HandlerFor(func(_ context.Context, in map[string]any) (any, error) {
			return in, nil
		}),
		{Name: "search_tools"}: scripttest.HandlerFor(func(_ context.Context, in map[string]any) (any, error) {
			return map[string]any{"tools": []any{map[string]any{"name": "calc.double", "asked": in}}, "total": 1}, nil
		}),
		{Name: "get_tool_definitions"}: scripttest.HandlerFor(func(_ context.Context, in struct {
			Names  []string
			Format string
		}) (any, error) {
			if in.Names[0] == "calc.dobule" {
				return map[string]any{"tools": []any{}, "unknown": []any{map[string]any{"name": in.Names[0], "did_you_mean": []string{"calc.double"}}}}, nil
			}
			if in.Format == "json" {
				return map[string]any{"tools": []any{map[string]any{"name": in.Names[0]}}, "unknown": []any{}}, nil
			}
			return map[string]any{"tools": []any{}, "declarations": strings.Join(in.Names, ", ") + " in " + in.Format, "unknown": []any{}}, nil
		}),
	}
	music.addTo(box)
	return box
}

// resultStore is a fake store of results.
type resultStore struct{ values []json.RawMessage }

func (s *resultStore) Read(_ context.Context, _, handle, pointer string) (json.RawMessage, error) {
	n, _ := strconv.Atoi(strings.TrimPrefix(handle, "$r"))
	if n < 1 || n > len(s.values) {
		return nil, fault.New(fault.NotFound, "no result %s", handle).WithHint("stored: $r1 to $r%d", len(s.values))
	}
	if pointer != "" {
		inner, _ := rawjson.Get(s.values[n-1], pointer[1:])
		return inner, nil
	}
	return s.values[n-1], nil
}

func (s *resultStore) Slice(ctx context.Context, owner, handle, pointer string, skip, count int) (results.Part, error) {
	value, err := s.Read(ctx, owner, handle, pointer)
	if err != nil {
		return results.Part{}, err
	}
	items, _ := rawjson.Items(value)
	raw, err := json.Marshal(items[skip:min(skip+count, len(items))])
	return results.Part{Value: raw, Total: len(items)}, err
}

func (s *resultStore) Put(_ context.Context, _, _ string, value json.RawMessage) (results.Stored, error) {
	s.values = append(s.values, value)
	return results.Stored{Handle: fmt.Sprintf("$r%d", len(s.values))}, nil
}

func (s *resultStore) List(context.Context, string) (all []results.Stored, err error) {
	for i, v := range s.values {
		all = append(all, results.Stored{Handle: fmt.Sprintf("$r%d", i+1), Source: "script", Size: int64(len(v))})
	}
	return all, nil
}

// openKV opens a store of values in a new database.
func openKV(t testing.TB) *kv.Store {
	t.Helper()
	s, err := kv.Open(t.Context(), dbtest.Open(t, dbtest.In(t, t.TempDir())))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instantJobs are jobs that have ended when they have started. Their ids count from 1.
type instantJobs struct {
	runner *Runner
	ended  []host.JobResult
}

func (j *instantJobs) NewID(string) string { return fmt.Sprintf("job-%d", len(j.ended)+1) }

func (j *instantJobs) Start(ctx context.Context, _, _ string, n host.NewJob) error {
	outcome, err := j.runner.Run(ctx, Request{Source: n.Source, Language: n.Language, Params: n.Params, Main: true})
	result := host.JobResult{State: "complete", Value: outcome.Result}
	if err != nil {
		result = host.JobResult{State: "error", Error: err.Error()}
	}
	j.ended = append(j.ended, result)
	return nil
}

func (*instantJobs) ChangedFile(context.Context, string, string) (host.ChangedFile, error) {
	return host.ChangedFile{}, nil
}

func (j *instantJobs) Result(_ context.Context, id string) (host.JobResult, error) {
	for i, result := range j.ended {
		if id == fmt.Sprintf("job-%d", i+1) {
			return result, nil
		}
	}
	return host.JobResult{}, fault.New(fault.NotFound, "no job %s", id)
}

// traces records the spans and metrics of a run.
type traces struct {
	spans   *tracetest.SpanRecorder
	metrics *sdkmetric.ManualReader
}

func newTraces() *traces {
	return &traces{tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()}
}

func (r *traces) tracer() trace.Tracer {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans), sdktrace.WithIDGenerator(sameIDs{}))
	return provider.Tracer("")
}

func (r *traces) meter() metric.Meter {
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.metrics)).Meter("")
}

// sameIDs gives every trace and span the same id.
type sameIDs struct{}

func (sameIDs) NewIDs(context.Context) (trace.TraceID, trace.SpanID) {
	return trace.TraceID{0xa1, 15: 1}, trace.SpanID{0xb2, 7: 2}
}

func (sameIDs) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	return trace.SpanID{0xb2, 7: 3}
}

// text returns all of it, one line each.
func (r *traces) text(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, span := range r.spans.Ended() {
		fmt.Fprintf(&out, "span %s%s\n", span.Name(), listed(span.Attributes()))
		for _, event := range span.Events() {
			fmt.Fprintf(&out, "event %s%s\n", event.Name, listed(event.Attributes))
		}
	}
	var data metricdata.ResourceMetrics
	if err := r.metrics.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			for _, point := range m.Data.(metricdata.Histogram[float64]).DataPoints {
				fmt.Fprintf(&out, "metric %s count=%d sum=%g%s\n", m.Name, point.Count, point.Sum, listed(point.Attributes.ToSlice()))
			}
		}
	}
	return out.String()
}

func listed(attributes []attribute.KeyValue) string {
	attributes = slices.SortedFunc(slices.Values(attributes), func(a, b attribute.KeyValue) int {
		return strings.Compare(string(a.Key), string(b.Key))
	})
	var out strings.Builder
	for _, a := range attributes {
		fmt.Fprintf(&out, " %s=%s", a.Key, a.Value.String())
	}
	return out.String()
}
