package backends_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/zmq/hootserver"
)

// answers has a tool for each kind of answer.
type answers map[string]func(context.Context, tool.Call) (tool.Result, error)

func (o answers) Tools(context.Context) ([]tool.Info, error) {
	var infos []tool.Info
	for _, name := range []string{"blocks", "code", "fault", "nothing", "object", "text", "trace"} {
		infos = append(infos, tool.Info{
			Ref: tool.Ref{Name: name}, Title: "The " + name, Description: "Answers with " + name,
			Input: json.RawMessage(`{"type":"object","properties":{"big":{"type":"integer"},"text":{"type":"string"}},"required":["text"]}`),
		})
	}
	return infos, nil
}

func (o answers) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return o[call.Ref.Name](ctx, call)
}

func newAnswers() answers {
	raw := func(text string) func(context.Context, tool.Call) (tool.Result, error) {
		return func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Raw: json.RawMessage(text)}, nil
		}
	}
	return answers{
		"text": func(_ context.Context, call tool.Call) (tool.Result, error) {
			return tool.Output("grüß dich\x00\u2028", nil)
		},
		"object": func(_ context.Context, call tool.Call) (tool.Result, error) {
			return tool.Output("the arguments", call.Args)
		},
		"nothing": raw(`{"content":[]}`),
		"blocks":  raw(`{"content":[{"type":"text","text":"dot"},{"type":"image","data":"AQI=","mimeType":"image/png"},{"type":"resource_link","uri":"a:b","name":"b"}]}`),
		"code":    raw(`{"content":[{"type":"text","text":"it did not work"}],"isError":true}`),
		"fault": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, fault.New("model_busy", "try later").WithHint("in a minute").WithDetails(map[string]int{"seconds": 60})
		},
		"trace": func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			return tool.Output(trace.SpanContextFromContext(ctx).TraceID().String(), nil)
		},
	}
}

// An MCP client gets the same answers over ZeroMQ as a direct caller.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	source := newAnswers()
	everyTool(t, source, serveSource(t, hootserver.Options{Source: source}))
}

// everyTool calls each tool of a source directly and through MCP, hub and ZeroMQ, with
// arguments made from its schema, and compares the answers.
func everyTool(t *testing.T, source tool.Source, b *hootserver.Server) {
	t.Helper()
	s := newStack(t, b.Addr(), traced{})
	infos, err := source.Tools(t.Context())
	if err != nil || len(infos) == 0 {
		t.Fatalf("%d tools, %v", len(infos), err)
	}
	listed := s.definitions()
	for _, info := range infos {
		if raw := listed[info.Name]; raw == nil {
			t.Errorf("%s is not listed", info.Name)
		} else if schema, _ := rawjson.Get(raw, "inputSchema"); !sameJSON(schema, info.Input) {
			t.Errorf("%s: its schema arrived as %s, not %s", info.Name, schema, info.Input)
		}
		args := sample(info.Input)
		got, err := s.call(info.Name, args, nil)
		if err != nil {
			t.Errorf("%s: %v", info.Name, err)
			continue
		}
		result, err := source.Call(t.Context(), tool.Call{Ref: info.Ref, Args: args, Caller: &tool.Caller{}})
		if err != nil {
			result = tool.Failure(err)
		}
		want, err := result.View()
		if err != nil {
			t.Fatal(err)
		}
		compare(t, info.Name, got, want)
	}
}

// definitions are the tools as an MCP client lists them.
func (s *stack) definitions() map[string]json.RawMessage {
	s.Helper()
	raw, err := s.client.Request(s.Context(), wire.MethodToolsList, json.RawMessage(`{}`), nil)
	if err != nil {
		s.Fatal(err)
	}
	list, _ := rawjson.Get(raw, "tools")
	items, _ := rawjson.Items(list)
	found := map[string]json.RawMessage{}
	for _, item := range items {
		name, _ := rawjson.GetText(item, "name")
		found[name] = item
	}
	return found
}

// sample returns arguments that fit a schema: the required ones, with small values.
func sample(schema json.RawMessage) json.RawMessage {
	var s struct {
		Properties map[string]struct {
			Type any
			Enum []json.RawMessage
		}
		Required []string
	}
	if json.Unmarshal(schema, &s) != nil {
		return json.RawMessage(`{}`)
	}
	args := json.RawMessage(`{}`)
	for _, key := range s.Required {
		p := s.Properties[key]
		kind, _ := p.Type.(string)
		value := map[string]string{"integer": "1", "number": "1", "boolean": "false", "array": "[]", "object": "{}"}[kind]
		switch {
		case len(p.Enum) > 0:
			value = string(p.Enum[0])
		case value == "":
			value = `"text"`
		}
		args = rawjson.Set(args, key, json.RawMessage(value))
	}
	if _, there := s.Properties["big"]; there {
		args = rawjson.Set(args, "big", json.RawMessage("9007199254740993"))
	}
	return args
}

// compare checks that two answers have the same text, data and blocks, or the same error.
func compare(t *testing.T, name string, got, want tool.View) {
	t.Helper()
	if got.IsError != want.IsError {
		t.Errorf("%s: failed is %v, want %v: %s", name, got.IsError, want.IsError, got.Text())
		return
	}
	if want.IsError {
		code, hint := faultOf(want)
		if c, h := faultOf(got); c != code || h != hint || !strings.Contains(got.Text(), want.Text()) && want.Meta != nil {
			t.Errorf("%s failed with %s (%s): %q; want %s (%s): %q", name, c, h, got.Text(), code, hint, want.Text())
		}
		return
	}
	if got.Text() != want.Text() || !sameJSON(got.Structured, want.Structured) {
		t.Errorf("%s: %q %s; want %q %s", name, got.Text(), got.Structured, want.Text(), want.Structured)
	}
	if len(want.Content) > 1 && fmt.Sprintf("%s", got.Content) != fmt.Sprintf("%s", want.Content) {
		t.Errorf("%s: blocks %s; want %s", name, got.Content, want.Content)
	}
}

// faultOf returns the code and the hint of a failure. A tool without a code gets one from
// hootserver.
func faultOf(v tool.View) (code, hint string) {
	raw, ok := rawjson.Get(v.Meta, tool.ErrorKey)
	if !ok {
		return "tool_failed", ""
	}
	code, _ = rawjson.GetText(raw, "code")
	hint, _ = rawjson.GetText(raw, "hint")
	return code, hint
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && x.String() == y.String()
}

// The trace of an MCP client continues over every hop, up to the backend's tool.
func TestOneTrace(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("test")
	how := traced{tracer, propagation.TraceContext{}}
	b := serveSource(t, hootserver.Options{Source: newAnswers(), Tracer: tracer, Propagator: how.propagator})
	s := newStack(t, b.Addr(), how)
	spans.Reset()
	view, err := s.call("trace", json.RawMessage(`{"text":"x"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[trace.SpanID]tracetest.SpanStub{}
	var at tracetest.SpanStub
	for _, span := range spans.GetSpans() {
		if span.SpanContext.TraceID().String() != view.Text() {
			continue
		}
		byID[span.SpanContext.SpanID()] = span
		if span.Name == "tool_call trace" {
			at = span
		}
	}
	var names []string
	for found := at.Name != ""; found; at, found = byID[at.Parent.SpanID()] {
		names = append(names, at.Name)
	}
	// The backend, the connection to it, the catalog, the hub, the client.
	want := "tool_call trace < tools/call trace < luanette.mcp.back.trace < tools/call trace < tools/call trace"
	if got := strings.Join(names, " < "); got != want {
		t.Errorf("the spans above the tool are %s, want %s", got, want)
	}
}
