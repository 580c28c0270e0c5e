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

// A call at /mcp/{namespace} is counted, told and traced like one at /mcp.
func TestRelayedCallsAreSeen(t *testing.T) {
	t.Parallel()
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, "[upstreams.far]\nurl = \""+stranger(t, nil)+"\"\n[[policy]]\ntool = \"far.secret\"\ndo = \"deny\"\n")})
	srv.upstreams.Await(t.Context(), "far")
	heard := srv.bus.Subscribe(event.Options{Types: []string{"tool.call_ended"}})
	defer heard.Close()
	client := keyClient{t, url, ""}
	for _, path := range []string{"/mcp/far", "/mcp"} {
		params := `"name":"echo","arguments":{"text":"hi"}`
		if path == "/mcp" {
			params = `"name":"call_tool","arguments":{"name":"far.echo","arguments":{"text":"hi"}}`
		}
		if status, text := client.rpc(path, "tools/call", params); status != http.StatusOK || strings.Contains(text, `"isError":true`) {
			t.Fatalf("%s: %d %s", path, status, text)
		}
		e, err := heard.Next(t.Context())
		if ended, ok := e.Data.(catalog.CallEnded); err != nil || !ok || ended.Namespace != "far" || ended.Tool != "echo" || ended.Error != "" {
			t.Errorf("%s: told %+v, %v", path, e.Data, err)
		}
	}
	if stats, _ := srv.catalog.Stats(t.Context(), "far"); stats.Calls != 2 || stats.LastTool != "echo" {
		t.Errorf("counted %+v", stats)
	}
	if status, text := client.rpc("/mcp/far", "tools/call", `"name":"secret","arguments":{}`); !strings.Contains(text, "far.secret is not allowed") {
		t.Errorf("what the policy denies: %d %s", status, text)
	}
	var names []string
	for _, trace := range srv.telemetry.Traces().List(10) {
		names = append(names, trace.Name+" > "+strings.Join(trace.Tools, " "))
	}
	for _, want := range []string{"tools/call echo > far.echo", "tools/call call_tool > far.echo", "tools/call secret > far.secret"} {
		if !slices.Contains(names, want) {
			t.Errorf("traces %q, want one %q", names, want)
		}
	}
}
