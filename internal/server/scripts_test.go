package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/observe/telemetry/otlptest"
)

// echoServer serves one tool, echo, over MCP. It sends spans to the sink, and progress to
// the caller.
func echoServer(t *testing.T, name string, sink *otlptest.Sink) (url string) {
	t.Helper()
	tel, err := telemetry.Setup(t.Context(), telemetry.Options{Service: name, Endpoint: sink.HTTP, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	h := hub.New(hub.Options{
		Name: name, Version: "1", Tools: echoTool{},
		Tracer: tel.Tracer("hub"), Meter: tel.Meter("hub"), Propagator: telemetry.Propagator(),
	})
	server := httptest.NewServer(h.Handler())
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
		server.Close()
		if err := tel.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return server.URL
}

type echoTool struct{}

func (echoTool) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{
		Ref: tool.Ref{Name: "echo"}, Description: "Returns its argument",
		Input: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
	}}, nil
}

func (echoTool) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	if call.Caller != nil && call.Caller.Progress != nil {
		call.Caller.Progress(tool.Progress{Progress: 500, Total: 1000})
	}
	var in struct{ Text string }
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return tool.Result{}, err
	}
	return tool.Output(in.Text, in)
}

// mcpClient is a client of the protocol version with sessions.
type mcpClient struct {
	t      *testing.T
	url    string
	header http.Header
}

func connect(t *testing.T, url string) *mcpClient {
	t.Helper()
	c := &mcpClient{t, url + "/mcp", http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}}
	r, _ := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	c.header.Set("Mcp-Session-Id", r.Get("Mcp-Session-Id"))
	c.header.Set("Mcp-Protocol-Version", "2025-06-18")
	c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// post sends one message and returns the header and body of the response.
func (c *mcpClient) post(body string) (http.Header, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header = c.header.Clone()
	resp, err := httpjsontest.Client.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		c.t.Fatalf("%s: %s %s %v", body, resp.Status, text, err)
	}
	return resp.Header, string(text)
}

// call calls a tool, asks for its progress, and returns the body of the response.
func (c *mcpClient) call(name string, args any) string {
	c.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		c.t.Fatal(err)
	}
	_, text := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + string(raw) + `,"_meta":{"progressToken":1}}}`)
	return text
}

// eval runs code, which must succeed, and returns its result as JSON.
func (c *mcpClient) eval(code string, params map[string]any) string {
	c.t.Helper()
	args := map[string]any{"code": code}
	if params != nil {
		args["params"] = params
	}
	text := c.call("lua_eval", args)
	var answer struct {
		Result struct {
			IsError           bool
			Content           []struct{ Text string }
			StructuredContent struct{ Result json.RawMessage }
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.TrimPrefix(lines[len(lines)-1], "data: ")
	if err := json.Unmarshal([]byte(last), &answer); err != nil || answer.Result.IsError {
		c.t.Fatalf("%v: %s", err, text)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, answer.Result.StructuredContent.Result); err != nil {
		c.t.Fatalf("%v: %s", err, text)
	}
	return compact.String()
}

// TestScriptTrace checks that the spans of a client's call, the script and its upstreams form
// one trace.
func TestScriptTrace(t *testing.T) {
	t.Parallel()
	sink := otlptest.Start(t)
	file := configtest.WriteFile(t, "[upstreams.left]\nurl = \""+echoServer(t, "left", sink)+"/mcp\"\n[upstreams.right]\nurl = \""+echoServer(t, "right", sink)+"/mcp\"\n")
	url, srv := start(t, config.Sources{File: file, Flags: map[string]string{"telemetry.otlp_endpoint": sink.HTTP, "telemetry.arguments": "true"}})
	srv.upstreams.AwaitAttempt(t.Context(), "left")
	srv.upstreams.AwaitAttempt(t.Context(), "right")
	srv.catalog.Refresh(t.Context())

	client := connect(t, url)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	client.header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	client.eval(`function main(params)
		log.warn("about to call")
		otel.set_attribute("processing.style", params.style)
		otel.event("halfway", { notes = 128 })
		otel.record_metric("notes.generated", 256, { instrument = "piano" })
		return { mcp.left.echo { text = "a" }.text, mcp.right.echo { text = "b" }.text }
	end`, map[string]any{"style": "jazz"})

	run := sink.AwaitSpan(t, "luanette.script.execute")
	for key, want := range map[string]any{
		"script.name": "script", "script.params.style": "jazz", "processing.style": "jazz",
	} {
		if run.Attributes[key] != want {
			t.Errorf("attribute %s is %v, want %v", key, run.Attributes[key], want)
		}
	}
	for _, key := range []string{"script.hash", "script.creator"} {
		if text, _ := run.Attributes[key].(string); text == "" {
			t.Errorf("the run's span has no %s", key)
		}
	}
	if !slices.Contains(run.Events, "halfway") {
		t.Errorf("events %q", run.Events)
	}
	checkAncestors(t, sink, run, "luanette.tool.lua_eval", "tools/call lua_eval", "POST /mcp")
	if run.TraceID != trace {
		t.Errorf("the run is in trace %s", run.TraceID)
	}
	for _, name := range []string{"left", "right"} {
		call := awaitSpanOf(t, sink, name, "tools/call echo")
		checkAncestors(t, sink, call, "tools/call echo", "luanette.mcp."+name+".echo", "luanette.script.execute", "luanette.tool.lua_eval", "tools/call lua_eval", "POST /mcp")
		if call.TraceID != trace {
			t.Errorf("the call at %s is in trace %s", name, call.TraceID)
		}
		own := sink.AwaitSpan(t, "luanette.mcp."+name+".echo")
		if own.Attributes["mcp.namespace"] != name || own.Attributes["mcp.tool"] != "echo" {
			t.Errorf("the call of %s has %v", name, own.Attributes)
		}
	}
	if record := sink.AwaitLog(t, "about to call"); record.TraceID != trace || record.SpanID != run.SpanID || record.Severity != "WARN" {
		t.Errorf("log %+v", record)
	}
}

// TestSpansOfAJob checks that the calls of a job carry its id and the hash of its script.
func TestSpansOfAJob(t *testing.T) {
	t.Parallel()
	sink := otlptest.Start(t)
	file := configtest.WriteFile(t, "[upstreams.left]\nurl = \""+echoServer(t, "left", sink)+"/mcp\"\n")
	url, srv := start(t, config.Sources{File: file, Flags: map[string]string{"telemetry.otlp_endpoint": sink.HTTP}})
	srv.upstreams.AwaitAttempt(t.Context(), "left")
	client := keyClient{t, url, ""}
	stored := client.call("script_store", `{"content":"function main() return mcp.left.echo { text = 'a' }.text end"}`)
	hash := regexp.MustCompile(`[0-9a-f]{64}`).FindString(stored)
	id := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).FindString(client.call("lua_execute", `{"script_hash":"`+hash+`"}`))
	for _, name := range []string{"luanette.script.execute", "luanette.mcp.left.echo"} {
		if span := sink.AwaitSpan(t, name); id == "" || span.Attributes["job.id"] != id || span.Attributes["script.hash"] != hash {
			t.Errorf("%s of job %s has %v", name, id, span.Attributes)
		}
	}
}

// checkAncestors waits until the ancestors of a span have arrived, and checks their names.
func checkAncestors(t *testing.T, sink *otlptest.Sink, span otlptest.Span, names ...string) {
	t.Helper()
	clocktest.Await(t, func() bool { return slices.Equal(ancestors(sink, span), names) },
		func() string {
			return fmt.Sprintf("the ancestors of %s are %q, want %q", span.Name, ancestors(sink, span), names)
		})
}

// ancestors returns the names of a span's ancestors that have arrived, nearest first.
func ancestors(sink *otlptest.Sink, span otlptest.Span) []string {
	byID := map[string]otlptest.Span{}
	for _, one := range sink.Spans() {
		byID[one.SpanID] = one
	}
	var names []string
	for one, ok := byID[span.ParentID]; ok; one, ok = byID[one.ParentID] {
		names = append(names, one.Name)
	}
	return names
}

// awaitSpanOf waits for a span of a service.
func awaitSpanOf(t *testing.T, sink *otlptest.Sink, service, name string) (found otlptest.Span) {
	t.Helper()
	clocktest.Await(t, func() bool {
		i := slices.IndexFunc(sink.Spans(), func(s otlptest.Span) bool {
			return s.Name == name && s.Resource["service.name"] == service
		})
		if i >= 0 {
			found = sink.Spans()[i]
		}
		return i >= 0
	})
	return found
}

// TestProgressOfScripts checks that a client gets the progress of its script, and not that
// of the tools which the script calls.
func TestProgressOfScripts(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, "[upstreams.left]\nurl = \""+echoServer(t, "left", otlptest.Start(t))+"/mcp\"\n")
	url, srv := start(t, config.Sources{File: file})
	srv.upstreams.AwaitAttempt(t.Context(), "left")
	srv.catalog.Refresh(t.Context())
	text := connect(t, url).call("lua_eval", map[string]string{"code": `progress(0.5, "half") return mcp.left.echo{text = "x"}`})
	if strings.Contains(text, `"progress":500`) || !strings.Contains(text, `"message":"half"`) || !strings.Contains(text, `"message":"Complete"`) {
		t.Errorf("the client received %s", text)
	}
}

func TestScriptsStartOnlyAllowedPrograms(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := configtest.WriteFile(t, "[scripts]\ncommands = [\"pwd\", \"env\"]\nwrite = ["+strconv.Quote(folder)+"]\nenv = [\"SHOWN\"]\n")
	env := config.Environment{"SHOWN": "yes", "SECRET": "no", "PATH": os.Getenv("PATH")}
	url, _ := start(t, config.Sources{File: file, Env: env})
	client := connect(t, url)
	if got := client.eval(`return run_command("pwd").stdout`, nil); got != strconv.Quote(folder+"\n") {
		t.Errorf("programs run in %s, want %s", got, folder)
	}
	if got := client.eval(`return run_command("env").stdout`, nil); !strings.Contains(got, "SHOWN=yes") || strings.Contains(got, "SECRET") {
		t.Errorf("programs see %s", got)
	}
	if text := client.call("lua_eval", map[string]string{"code": `return run_command("id")`}); !strings.Contains(text, "scripts.commands") {
		t.Errorf("a program that is not allowed: %s", text)
	}
}

// TestCommandPublishesForTheServer checks that a server has what a command on the same data
// folder publishes and withdraws.
func TestCommandPublishesForTheServer(t *testing.T) {
	t.Parallel()
	_, srv := start(t, config.Sources{})
	command, err := Build(t.Context(), srv.config, Options{Version: "test", Stderr: io.Discard, Env: config.Environment{}, OnDemand: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	awaitVersion := func(want int) {
		t.Helper()
		clocktest.Await(t, func() bool {
			info, _ := srv.catalog.Find(t.Context(), tool.Ref{Name: "greet"})
			return strings.Contains(string(info.Raw), fmt.Sprintf(`"version":%d`, want)) || want == 0 && info.Raw == nil
		}, func() string { return "the server has not noticed version " + strconv.Itoa(want) })
	}
	for i, answer := range []string{"one", "two"} {
		publishScript(t, command, `function describe() return {name="greet"} end function main() return "`+answer+`" end`)
		awaitVersion(i + 1)
	}
	if _, err := command.scripts.published.Unpublish(t.Context(), "greet"); err != nil {
		t.Fatal(err)
	}
	awaitVersion(0)
}
