// Package otlptest is a collector for tests. It receives OTLP over HTTP and gRPC on
// loopback addresses and returns the records as plain Go values.
package otlptest

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
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
