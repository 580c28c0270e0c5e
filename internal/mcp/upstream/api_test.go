package upstream_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// fakeAPI is an API in memory.
type fakeAPI struct {
	env api.Environment

	mu     sync.Mutex
	tools  []string
	closed bool
}

func (f *fakeAPI) List(context.Context) (api.Listing, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	listing := api.Listing{Title: "Pets", Version: "2.1", Instructions: "feed them", LeftOut: []string{"GET /old: no name"}}
	for _, name := range f.tools {
		listing.Tools = append(listing.Tools, json.RawMessage(`{"name":"`+name+`","inputSchema":{"type":"object"}}`))
	}
	return listing, nil
}

func (f *fakeAPI) Call(_ context.Context, call api.Call) (json.RawMessage, error) {
	switch call.Tool {
	case "refuse":
		return nil, fault.New(fault.InvalidParams, "pet 7 is unknown").WithHint("list the pets")
	case "break":
		return nil, fault.New(fault.Unavailable, "the service does not answer")
	}
	call.Progress(1, 2, "half")
	text, err := json.Marshal(string(call.Arguments) + f.env.Settings.Query["key"] + f.env.Header.Get("X-Key"))
	return json.RawMessage(`{"content":[{"type":"text","text":` + string(text) + `}]}`), err
}

func (f *fakeAPI) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// TestAPIIsAnUpstream calls an API in this process like an MCP server.
func TestAPIIsAnUpstream(t *testing.T) {
	t.Parallel()
	fake := &fakeAPI{tools: []string{"feed", "refuse", "break"}}
	m := upstream.New(upstream.Options{APIs: map[string]api.Opener{api.OpenAPI: func(_ context.Context, env api.Environment) (api.API, error) {
		fake.env = env
		return fake, nil
	}}})
	spec, warnings := upstream.Spec{
		Name: "pets", Trusted: true, Settings: upstream.Settings{
			Headers: map[string]string{"X-Key": "${SECRET}"},
			API:     api.Settings{Kind: api.OpenAPI, Source: "https://pets.example/openapi.json?sig=1", Query: map[string]string{"key": "${SECRET}"}},
		},
	}.Expand(func(string) (string, bool) { return "hush", true })
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(spec); err != nil {
		t.Fatal(err)
	}
	call := func(name string, caller *tool.Caller) (tool.Result, error) {
		return m.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "pets", Name: name}, Args: json.RawMessage(`{"n":1}`), Caller: caller})
	}
	var progress []tool.Progress
	result, err := call("feed", &tool.Caller{Progress: func(p tool.Progress) { progress = append(progress, p) }})
	if err != nil || !strings.Contains(string(result.Raw), `{\"n\":1}hushhush`) {
		t.Fatalf("result %s, error %v", result.Raw, err)
	}
	if len(progress) != 1 || progress[0].Message != "half" {
		t.Errorf("progress %+v", progress)
	}
	status, _ := m.Status("pets")
	if status.Target != "openapi https://pets.example/openapi.json?…" || m.Instructions("pets") != "feed them" {
		t.Errorf("status %+v, instructions %q", status, m.Instructions("pets"))
	}
	if _, err := call("refuse", nil); err == nil || !strings.Contains(err.Error(), "list the pets") {
		t.Errorf("a refusal is %v", err)
	}
	if _, err := call("break", nil); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a failure is %v", err)
	}
	fake.mu.Lock()
	fake.tools = []string{"walk"}
	fake.mu.Unlock()
	fake.env.Changed()
	clocktest.Await(t, func() bool {
		_, found := m.Find(t.Context(), tool.Ref{Space: "pets", Name: "walk"})
		return found
	})
	m.Close()
	if !fake.closed {
		t.Error("the API was not closed")
	}
}
