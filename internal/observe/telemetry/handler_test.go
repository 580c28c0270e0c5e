package telemetry_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/observe/telemetry/otlptest"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

// inTrace returns a context within the trace above.
func inTrace(t *testing.T) context.Context {
	return telemetry.Extract(t.Context(), http.Header{"Traceparent": {"00-" + traceID + "-" + spanID + "-01"}})
}

// logged returns the one JSON line that write logs, without its time.
func logged(t *testing.T, level slog.Level, write func(*slog.Logger)) string {
	t.Helper()
	var stderr console
	tel := setup(t, telemetry.Options{Stderr: &stderr, LogFormat: "json", LogLevel: level})
	write(tel.Logger())
	if stderr.String() == "" {
		return ""
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(stderr.String()), &line); err != nil {
		t.Fatalf("%v in %s", err, stderr.String())
	}
	delete(line, "time")
	raw, _ := json.Marshal(line) // sorted by key
	return string(raw)
}

func TestLogger(t *testing.T) {
	t.Parallel()
	ids := `"span_id":"` + spanID + `","trace_id":"` + traceID + `"`
	tests := map[string]struct {
		level slog.Level
		write func(*slog.Logger)
		want  string
	}{
		"without a trace": {0, func(l *slog.Logger) { l.Info("hello", "n", 1) },
			`{"level":"INFO","msg":"hello","n":1}`},
		"with a trace": {0, func(l *slog.Logger) { l.InfoContext(inTrace(t), "hello", "n", 1) },
			`{"level":"INFO","msg":"hello","n":1,` + ids + `}`},
		"ids stay outside of groups": {0, func(l *slog.Logger) {
			l.With("a", 1).WithGroup("g").With("b", 2).WithGroup("").WithGroup("h").InfoContext(inTrace(t), "hello", "n", 3)
		}, `{"a":1,"g":{"b":2,"h":{"n":3}},"level":"INFO","msg":"hello",` + ids + `}`},
		"groups without a trace": {0, func(l *slog.Logger) { l.WithGroup("g").Info("hello", "n", 1) },
			`{"g":{"n":1},"level":"INFO","msg":"hello"}`},
		"below the level":      {0, func(l *slog.Logger) { l.Debug("hello") }, ``},
		"debug when asked for": {slog.LevelDebug, func(l *slog.Logger) { l.Debug("hello") }, `{"level":"DEBUG","msg":"hello"}`},
		"secrets":              {0, func(l *slog.Logger) { l.Info("hello", "key", secret.New("sesame")) }, `{"key":"[hidden]","level":"INFO","msg":"hello"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := logged(t, tt.level, tt.write); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestLoggersDoNotShare checks that loggers derived from one logger do not share
// attributes.
func TestLoggersDoNotShare(t *testing.T) {
	t.Parallel()
	var stderr console
	root := setup(t, telemetry.Options{Stderr: &stderr}).Logger().WithGroup("g")
	a, b := root.With("from", "a"), root.With("from", "b")
	a.InfoContext(inTrace(t), "hello")
	b.InfoContext(inTrace(t), "hello")
	out := stderr.String()
	if strings.Count(out, "g.from=a") != 1 || strings.Count(out, "g.from=b") != 1 {
		t.Errorf("logged:\n%s", out)
	}
}

func TestExportedLogsHideSecrets(t *testing.T) {
	t.Parallel()
	sink := otlptest.Start(t)
	tel := setup(t, telemetry.Options{Endpoint: sink.HTTP})
	tel.Logger().With("key", secret.New("sesame")).WithGroup("g").InfoContext(inTrace(t), "hello", "n", 1)
	tel.Logger().Debug("not exported either")
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	line := sink.AwaitLog(t, "hello")
	if line.Attributes["key"] != secret.Hidden || line.TraceID != traceID || line.Severity != "INFO" {
		t.Errorf("arrived: %+v", line)
	}
	if n := len(sink.Logs()); n != 1 {
		t.Errorf("%d records arrived, want 1", n)
	}
}
