package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// TestRelayedCallsAreObserved checks that calls at /mcp/NAME have the same statistics,
// events and traces as calls at /mcp.
func TestRelayedCallsAreObserved(t *testing.T) {
	t.Parallel()
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, "[upstreams.far]\nurl = \""+serveTools(t, "far", echoTool{})+"\"\n[[policy]]\ntool = \"far.secret\"\ndo = \"deny\"\n")})
	srv.upstreams.Await(t.Context(), "far")
	ended := srv.bus.Subscribe(event.Options{Types: []string{"tool.call_ended"}})
	defer ended.Close()
	client := keyClient{t, url, ""}
	for _, path := range []string{"/mcp/far", "/mcp"} {
		params := `"name":"echo","arguments":{"text":"hi"}`
		if path == "/mcp" {
			params = `"name":"call_tool","arguments":{"name":"far.echo","arguments":{"text":"hi"}}`
		}
		if status, text := client.rpc(path, "tools/call", params); status != http.StatusOK || strings.Contains(text, `"isError":true`) {
			t.Fatalf("%s: %d %s", path, status, text)
		}
		e, err := ended.Next(t.Context())
		if call, ok := e.Data.(catalog.CallEnded); err != nil || !ok || call.Namespace != "far" || call.Tool != "echo" || call.Error != "" {
			t.Errorf("%s: event %+v, %v", path, e.Data, err)
		}
	}
	if stats, _ := srv.catalog.Stats(t.Context(), "far"); stats.Calls != 2 || stats.LastTool != "echo" {
		t.Errorf("statistics %+v", stats)
	}
	if status, text := client.rpc("/mcp/far", "tools/call", `"name":"secret","arguments":{}`); !strings.Contains(text, "far.secret is not allowed") {
		t.Errorf("a tool that the policy denies: %d %s", status, text)
	}
	var names []string
	for _, trace := range srv.telemetry.Traces().List(t.Context(), 10) {
		names = append(names, trace.Name+" > "+strings.Join(trace.Tools, " "))
	}
	for _, want := range []string{"tools/call echo > far.echo", "tools/call call_tool > far.echo", "tools/call secret > far.secret"} {
		if !slices.Contains(names, want) {
			t.Errorf("traces %q, want one %q", names, want)
		}
	}
}
