package telemetry_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/observe/telemetry/otlptest"
)

func TestMain(m *testing.M) {
	telemetry.SetShutdownLimit(clocktest.Timeout)
	goleak.VerifyTestMain(clocktest.Settled(m))
}

// console collects standard error; handlers may write concurrently.
type console struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

func setup(t *testing.T, o telemetry.Options) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.Setup(t.Context(), o)
	if err != nil {
		t.Fatalf("Setup: %v", err)
	}
	return tel
}

// request serves one HTTP request through tel's handler and transport, writes a log
// line and increments a counter in it, and shuts tel down.
func request(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	counter, err := tel.Meter("test").Int64Counter("tea.cups")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /tea/{kind}", func(w http.ResponseWriter, r *http.Request) {
		tel.Logger().InfoContext(r.Context(), "request served", telemetry.KeyTool, "pot")
		counter.Add(r.Context(), 3)
	})
	server := httptest.NewServer(tel.Handler(mux))
	defer server.Close()
	client := server.Client()
	ctx, span := tel.Tracer("test").Start(t.Context(), "client", trace.WithSpanKind(trace.SpanKindClient))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/tea/green", nil)
	if err != nil {
		t.Fatal(err)
	}
	telemetry.Inject(ctx, r.Header)
	res, err := client.Do(r)
	span.End()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// wantAll checks that the request of that name is in the sink with its trace,
// log line and metrics.
func wantAll(t *testing.T, sink *otlptest.Sink) {
	t.Helper()
	served := sink.AwaitSpan(t, "GET /tea/{kind}")
	called := sink.AwaitSpan(t, "client")
	if served.Kind != "server" || called.Kind != "client" || served.TraceID != called.TraceID || served.ParentID != called.SpanID {
		t.Errorf("the server's span %+v is not the child of the client's %+v", served, called)
	}
	if served.Resource["service.name"] != "service" || served.Resource["service.version"] != "1.2.3" {
		t.Errorf("resource %v, want service 1.2.3", served.Resource)
	}
	line := sink.AwaitLog(t, "request served")
	if line.TraceID != served.TraceID || line.SpanID != served.SpanID || line.Attributes["tool"] != "pot" {
		t.Errorf("log record %+v does not belong to the server's span %+v", line, served)
	}
	if cups := sink.AwaitMetric(t, "tea.cups"); len(cups.Points) != 1 || cups.Points[0].Value != 3 {
		t.Errorf("metric %+v, want 3", cups)
	}
	sink.AwaitMetric(t, "http.server.request.duration")
}

func TestRequestReachesTheCollector(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"http", "grpc", "bare address"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			sink := otlptest.Start(t)
			endpoint := map[string]string{
				"http": sink.HTTP, "grpc": sink.GRPC, "bare address": strings.TrimPrefix(sink.GRPC, "grpc://"),
			}[protocol]
			tel := setup(t, telemetry.Options{Service: "service", Version: "1.2.3", Endpoint: endpoint})
			request(t, tel)
			wantAll(t, sink)
		})
	}
}

func TestStandardVariables(t *testing.T) { // not parallel: it sets the environment
	for _, protocol := range []string{"", "http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			sink := otlptest.Start(t)
			endpoint := sink.HTTP
			if protocol == "grpc" {
				endpoint = "http" + strings.TrimPrefix(sink.GRPC, "grpc")
			}
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			t.Setenv("OTEL_SERVICE_NAME", "service")
			request(t, setup(t, telemetry.Options{Service: "overridden", Version: "1.2.3"}))
			wantAll(t, sink)
		})
	}
}

func TestOneSignalCanBeOff(t *testing.T) {
	sink := otlptest.Start(t)
	t.Setenv("OTEL_LOGS_EXPORTER", "none")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	request(t, setup(t, telemetry.Options{Endpoint: sink.HTTP}))
	sink.AwaitSpan(t, "GET /tea/{kind}")
	if logs, metrics := sink.Logs(), sink.Metrics(); len(logs)+len(metrics) != 0 {
		t.Errorf("logs %v and metrics %v arrived although they are off", logs, metrics)
	}
}

func TestNothingIsExportedByDefault(t *testing.T) {
	tests := map[string]map[string]string{
		"nothing set": {},
		"disabled":    {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
	}
	for name, env := range tests {
		t.Run(name, func(t *testing.T) {
			for k, v := range env {
				t.Setenv(k, v)
			}
			tel := setup(t, telemetry.Options{})
			_, span := tel.Tracer("test").Start(t.Context(), "unseen")
			if span.IsRecording() || span.SpanContext().IsSampled() {
				t.Error("a span is recorded although nothing is exported")
			}
			request(t, tel)
		})
	}
}

// TestTraceIsPropagatedByDefault checks that a trace is propagated even when nothing is
// exported.
func TestTraceIsPropagatedByDefault(t *testing.T) {
	t.Parallel()
	tel := setup(t, telemetry.Options{})
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	onward := http.Header{}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Traceparent", parent)
	tel.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { telemetry.Inject(r.Context(), onward) })).ServeHTTP(httptest.NewRecorder(), r)
	if tp := onward.Get("Traceparent"); tp != parent {
		t.Errorf("traceparent %q, want %q", tp, parent)
	}
}

func TestSetupRefuses(t *testing.T) {
	tests := map[string]struct {
		env     map[string]string
		options telemetry.Options
		want    string
	}{
		"console exporter": {map[string]string{"OTEL_TRACES_EXPORTER": "console"}, telemetry.Options{}, "OTEL_TRACES_EXPORTER"},
		"protocol": {map[string]string{"OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"},
			telemetry.Options{}, "OTEL_EXPORTER_OTLP_PROTOCOL"},
		"endpoint":        {nil, telemetry.Options{Endpoint: "ftp://host"}, "ftp://host"},
		"endpoint colons": {nil, telemetry.Options{Endpoint: "::"}, "not an address"},
		"no host":         {nil, telemetry.Options{Endpoint: "http://"}, "not an address"},
		"log format":      {nil, telemetry.Options{LogFormat: "xml"}, "xml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			_, err := telemetry.Setup(t.Context(), tt.options)
			if fault.CodeOf(err) != fault.Config || fault.HintOf(err) == "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Setup = %v, want invalid_config with a hint and %q", err, tt.want)
			}
		})
	}
}

// TestUnreachableCollector covers a closed port, and a server that accepts connections
// and never responds.
func TestUnreachableCollector(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"http://", "grpc://"} {
		for kind, listen := range map[string]func(*testing.T) string{"closed port": closedPort, "hanging server": hangingServer} {
			t.Run(protocol+kind, func(t *testing.T) {
				t.Parallel()
				var stderr console
				tel := setup(t, telemetry.Options{Endpoint: protocol + listen(t), Stderr: &stderr})
				counter, err := tel.Meter("test").Int64Counter("n")
				if err != nil {
					t.Fatal(err)
				}
				for range 10_000 { // several times the size of the export queue
					ctx, span := tel.Tracer("test").Start(t.Context(), "work")
					counter.Add(ctx, 1)
					tel.Logger().InfoContext(ctx, "working")
					span.End()
				}
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if err := tel.Shutdown(ctx); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
				if n := strings.Count(stderr.String(), "telemetry is not delivered"); n != 1 {
					t.Errorf("%d warnings on standard error, want one", n)
				}
				if n := strings.Count(stderr.String(), "\n"); n != 10_001 {
					t.Errorf("%d lines on standard error, want the program's own and the warning", n)
				}
			})
		}
	}
}

// closedPort is the address of a closed port.
func closedPort(*testing.T) string { return netguardtest.ReservedAddress() }

// hangingServer returns an address that accepts connections and sends nothing.
func hangingServer(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts the connections
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func TestRefusingCollectorIsLoggedOnce(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not today", http.StatusForbidden)
	}))
	defer refusing.Close()
	var stderr console
	tel := setup(t, telemetry.Options{Endpoint: refusing.URL, Stderr: &stderr, LogFormat: "json"})
	request(t, tel) // its log line is the first on standard error
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], "telemetry is not delivered") || !strings.Contains(lines[1], "403") {
		t.Errorf("standard error:\n%s\nwant the log line and one complaint", stderr.String())
	}
}

func BenchmarkSpan(b *testing.B) {
	endpoints := map[string]string{"none": "", "dead collector": "http://127.0.0.1:1"}
	for name, endpoint := range endpoints {
		b.Run(name, func(b *testing.B) {
			tel, err := telemetry.Setup(b.Context(), telemetry.Options{Endpoint: endpoint})
			if err != nil {
				b.Fatal(err)
			}
			tracer := tel.Tracer("bench")
			b.ReportAllocs()
			for b.Loop() {
				_, span := tracer.Start(b.Context(), "work", trace.WithSpanKind(trace.SpanKindInternal))
				span.End()
			}
			ctx, cancel := context.WithCancel(b.Context())
			cancel()
			_ = tel.Shutdown(ctx)
		})
	}
}
