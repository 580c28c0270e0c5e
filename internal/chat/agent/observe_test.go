package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
)

// observed plays a turn with a secret in every place, and returns its logs, spans and metrics.
func observed(t *testing.T, content bool) (logs string, spans []sdktrace.ReadOnlySpan, metrics metricdata.ResourceMetrics, s *fixture) {
	t.Helper()
	var log bytes.Buffer
	recorder := tracetest.NewSpanRecorder()
	reader := metric.NewManualReader()
	source := newToolSource().
		with("execute_code", "", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Output("result of the secret", map[string]any{"logs": []string{"a", "b"}})
		}).
		with("lua_eval", "", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Failure(fault.New(fault.Script, "script:3: no secret here")), nil
		}).
		with("x.a", "", answers("the secret answer"))
	s = play(t, source, `
		say "a secret word"
		use execute_code {"code":"secret()"}
		use lua_eval {"code":"secret"}
		use x__a {"q":"secret"}
		---
		status 529 overloaded_error Overloaded
		---
		say "the secret end"
	`, func(o *agent.Options) {
		o.Content = content
		o.Log = slog.New(slog.NewJSONHandler(&log, nil))
		o.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("t")
		o.Meter = metric.NewMeterProvider(metric.WithReader(reader)).Meter("t")
	})
	s.turn(t, "my secret question")
	if err := reader.Collect(t.Context(), &metrics); err != nil {
		t.Fatal(err)
	}
	return log.String(), recorder.Ended(), metrics, s
}

// TestLogs checks that the request's id is on all its log lines, with the documented names.
func TestLogs(t *testing.T) {
	t.Parallel()
	logs, _, _, _ := observed(t, false)
	fields := map[string][]string{
		"mcp_discovery_start":     {"server_count"},
		"mcp_discovery_complete":  {"tools_found", "duration_ms"},
		"claude_request":          {"iteration", "message_count"},
		"claude_response":         {"iteration", "tool_calls_count", "duration_ms"},
		"tool_execution_start":    {"tool_name", "iteration"},
		"tool_execution_complete": {"tool_name", "duration_ms", "success"},
		"tool_execution_error":    {"tool_name", "error"},
		"code_execution_start":    {"code_length"},
		"code_execution_complete": {"duration_ms", "console_logs_count"},
		"code_execution_error":    {"error", "line_number"},
	}
	seen := map[string]map[string]any{}
	for line := range strings.Lines(logs) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		name, _ := record["event"].(string)
		seen[name] = record
		for _, field := range append([]string{"request_id", "timestamp", "user_id"}, fields[name]...) {
			if _, ok := record[field]; !ok {
				t.Errorf("%s lacks %s: %s", name, field, line)
			}
		}
		if record["request_id"] != "req-1" || record["user_id"] != "anna" {
			t.Errorf("another request or user: %s", line)
		}
	}
	for name := range fields {
		if seen[name] == nil {
			t.Errorf("no %s in\n%s", name, logs)
		}
	}
	if got := seen["code_execution_complete"]["console_logs_count"]; got != 2.0 {
		t.Errorf("console_logs_count is %v, want 2", got)
	}
	if got := seen["code_execution_error"]["line_number"]; got != 3.0 {
		t.Errorf("line_number is %v, want 3", got)
	}
}

// TestNoContentInTelemetry checks that spans and logs contain neither messages nor keys unless configured.
func TestNoContentInTelemetry(t *testing.T) {
	t.Parallel()
	for _, content := range []bool{false, true} {
		logs, spans, _, _ := observed(t, content)
		text := logs
		for _, span := range spans {
			text += fmt.Sprintln(span.Name(), span.Attributes(), span.Status(), span.Events())
		}
		if strings.Contains(text, "secret") != content {
			t.Errorf("with content %v the telemetry is:\n%s", content, text)
		}
		if strings.Contains(text, llmtest.Key) {
			t.Error("the telemetry contains the key")
		}
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	_, spans, _, _ := observed(t, false)
	byID := map[string]sdktrace.ReadOnlySpan{}
	for _, span := range spans {
		byID[span.SpanContext().SpanID().String()] = span
	}
	var paths []string
	for _, span := range spans {
		path := span.Name()
		for up, ok := byID[span.Parent().SpanID().String()]; ok; up, ok = byID[up.Parent().SpanID().String()] {
			path = up.Name() + " > " + path
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	want := []string{
		"invoke_agent luanette",
		"invoke_agent luanette > iteration",
		"invoke_agent luanette > iteration",
		"invoke_agent luanette > iteration > chat claude-sonnet-5-5",
		"invoke_agent luanette > iteration > chat claude-sonnet-5-5",
		"invoke_agent luanette > iteration > execute_tool execute_code",
		"invoke_agent luanette > iteration > execute_tool lua_eval",
		"invoke_agent luanette > iteration > execute_tool x.a",
	}
	if !slices.Equal(paths, want) {
		t.Errorf("spans\n%s", strings.Join(paths, "\n"))
	}
	for _, span := range spans {
		has := map[string]bool{}
		for _, a := range span.Attributes() {
			has[string(a.Key)] = true
		}
		switch {
		case strings.HasPrefix(span.Name(), "chat "):
			for _, key := range []string{"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.finish_reasons", "gen_ai.usage.input_tokens"} {
				if !has[key] {
					t.Errorf("%s lacks %s", span.Name(), key)
				}
			}
		case strings.HasPrefix(span.Name(), "execute_tool"):
			if !has["gen_ai.tool.name"] || !has["gen_ai.tool.call.id"] || has["error.type"] != strings.HasSuffix(span.Name(), "lua_eval") {
				t.Errorf("%s has %v", span.Name(), span.Attributes())
			}
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	_, _, metrics, _ := observed(t, false)
	var names []string
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			names = append(names, m.Name)
		}
	}
	for _, want := range []string{"gen_ai.client.token.usage", "gen_ai.client.operation.duration", "luanette.chat.cost", "luanette.chat.turn.duration"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing among %v", want, names)
		}
	}
}

func TestEventsOfTurns(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	defer bus.Close()
	sub := bus.Subscribe(event.Options{})
	defer sub.Close()
	s := play(t, newToolSource(), "say ok", func(o *agent.Options) { o.Bus = bus })
	reply := s.turn(t, "go")
	var types []string
	for e := range sub.All(t.Context()) {
		types = append(types, e.Type)
		if ended, ok := e.Data.(agent.TurnEnded); ok {
			if ended.Org != "acme" || ended.User != "anna" || ended.Usage != reply.Usage || ended.Iterations != 1 {
				t.Errorf("published %+v", ended)
			}
			break
		}
	}
	if got := strings.Join(types, " "); got != "chat.turn_ended" {
		t.Errorf("published %s", got)
	}
}

// TestLogsNameTheVendor checks that requests to another vendor's model are not logged as
// Claude's.
func TestLogsNameTheVendor(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	server := llmtest.Play(t, llmtest.Step{Say: []string{"hi"}})
	model, err := llm.Open(llm.Options{Provider: "openai", Model: "m", BaseURL: server.URL + "/v1", Key: secret.New(llmtest.Key)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Options{Model: model, Log: slog.New(slog.NewJSONHandler(&logs, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Turn(t.Context(), agent.Request{Message: "hi"}, nil); err != nil {
		t.Fatal(err)
	}
	if text := logs.String(); strings.Contains(text, "claude") || !strings.Contains(text, `"event":"model_response"`) {
		t.Error(text)
	}
}
