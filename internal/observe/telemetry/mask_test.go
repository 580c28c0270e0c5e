package telemetry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/observe/telemetry/otlptest"
	"github.com/luanette/luanette/internal/observe/telemetry/params"
)

// leak makes a span and log lines with a secret in every place, and returns the id of the
// trace.
func leak(t *testing.T, tel *telemetry.Telemetry, secret string) string {
	t.Helper()
	ctx, span := tel.Tracer("t").Start(t.Context(), "call")
	span.SetAttributes(params.Deferred("mcp.params", json.RawMessage(`{"q":"`+secret+`","api_key":"secret of a key"}`))...)
	span.SetAttributes(attribute.String("script.params.q", secret),
		attribute.Int("mcp.params.bytes", 12), attribute.String("note", "use "+secret), attribute.String("tool", "fs.read"))
	span.RecordError(errors.New("refused: " + secret))
	span.SetStatus(codes.Error, "refused: "+secret)
	span.SetAttributes(attribute.String("request_id", "Zq8Rk2LmT4vX7wB1nC5dF9"))
	log := tel.Logger().With("with", secret, "request_id", "Zq8Rk2LmT4vX7wB1nC5dF9", "message_id", "msg_D7PNDVAKXY4TVINGKUH6ITBGT6")
	log.InfoContext(ctx, "sent "+secret, "plain", "left", "text", "key "+secret, "error", errors.New("no "+secret))
	log.WithGroup("g").WarnContext(ctx, "grouped", "inner", secret)
	span.End()
	return span.SpanContext().TraceID().String()
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	secret := "gh" + "p_" + strings.Repeat("a1B2c3D4e", 4)
	for _, arguments := range []bool{false, true} {
		sink := otlptest.Start(t)
		var stderr console
		tel := setup(t, telemetry.Options{Endpoint: sink.HTTP, Stderr: &stderr, RecentTraces: 10, Arguments: arguments})
		id := leak(t, tel, secret)
		kept, _ := tel.Traces().Get(t.Context(), id)
		if err := tel.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		exported, line := sink.AwaitSpan(t, "call"), sink.AwaitLog(t, "sent [redacted]")
		for where, text := range map[string]string{
			"span": fmt.Sprintf("%+v", exported), "log": fmt.Sprintf("%+v", sink.Logs()), "stderr": stderr.String(), "memory": fmt.Sprintf("%+v", kept),
		} {
			if strings.Contains(text, secret) || strings.Contains(text, "secret of a key") || !strings.Contains(text, "[redacted]") {
				t.Errorf("%s: %s", where, text)
			}
		}
		if _, sent := exported.Attributes["mcp.params.q"]; sent != arguments || exported.Attributes["tool"] != "fs.read" || exported.Attributes["mcp.params.bytes"] == nil {
			t.Errorf("arguments %v: exported %v", arguments, exported.Attributes)
		}
		if a := kept.Spans[0].Attributes; a["mcp.params.q"] != "[redacted]" || a["mcp.params.api_key"] != "[redacted]" || a["script.params.q"] != "[redacted]" {
			t.Errorf("in memory: %v", kept.Spans[0].Attributes)
		}
		if exported.Attributes["request_id"] != line.Attributes["request_id"] || line.Attributes["request_id"] == "[redacted]" || line.Attributes["message_id"] == "[redacted]" {
			t.Errorf("ids are masked: %v, %v", exported.Attributes, line.Attributes)
		}
		if line.Attributes["plain"] != "left" || line.TraceID != id {
			t.Errorf("log record %+v of trace %s", line, id)
		}
	}
}
