package client

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/server"
)

// openLocal opens a client with the upstreams memory, files and unused.
func openLocal(t *testing.T, data string) (Client, *server.Server) {
	t.Helper()
	at := func(name string) string {
		return filepath.Join(npmtest.Modules(t), "@modelcontextprotocol", name, "dist/index.js")
	}
	entry := func(name string, args ...string) string {
		raw, _ := json.Marshal(args)
		return "[upstreams." + name + "]\ncommand = \"node\"\nargs = " + string(raw) + "\n"
	}
	file := configtest.WriteFile(t, entry("memory", at("server-memory"))+entry("files", at("server-filesystem"), data)+entry("unused", at("server-memory")))
	env := config.Environment{"HOME": t.TempDir(), "PATH": os.Getenv("PATH")}
	loaded, err := config.Load(config.Sources{File: file, Env: env, Flags: map[string]string{"data": data}})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.Build(t.Context(), loaded, server.Options{Version: "test", Stderr: io.Discard, Env: env, OnDemand: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close(t.Context()) })
	return Local(srv, clocktest.Timeout), srv
}

// started returns the upstreams that are not asleep.
func started(srv *server.Server) (names []string) {
	for _, s := range srv.Upstreams().Manager.List() {
		if s.State != upstream.StateAsleep && !strings.HasPrefix(s.Name, "hoot") {
			names = append(names, s.Name)
		}
	}
	return names
}

func TestCommandsStartTheUpstreamsThatTheyUse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tool, args string
		want       []string
	}{
		"none":               {"lua_eval", `{"code": "return 1 + 1, mcp.has('nothing')"}`, nil},
		"named":              {"lua_eval", `{"code": "return mcp.memory.read_graph{}"}`, []string{"memory"}},
		"by call":            {"lua_eval", `{"code": "return mcp.call('memory', 'read_graph', {})"}`, []string{"memory"}},
		"by a computed name": {"lua_eval", `{"code": "local n = 'mem' .. 'ory' return mcp[n].read_graph{}"}`, []string{"memory"}},
		"in JavaScript":      {"lua_eval", `{"code": "await mcp.memory.read_graph({})", "language": "javascript"}`, []string{"memory"}},
		"a call":             {"call_tool", `{"name": "memory.read_graph", "arguments": {}}`, []string{"memory"}},
		"a definition":       {"get_tool_definitions", `{"names": ["memory.read_graph"]}`, []string{"memory"}},
		"a namespace":        {"search_tools", `{"query": "graph", "namespace": "memory"}`, []string{"memory"}},
		"one status":         {"mcp_status", `{"namespace": "memory"}`, []string{"memory"}},
		"a search":           {"search_tools", `{"query": "graph"}`, []string{"files", "memory", "unused"}},
		"all states":         {"mcp_list_upstreams", `{}`, []string{"files", "memory", "unused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, srv := openLocal(t, t.TempDir())
			view, err := api.Call(t.Context(), test.tool, json.RawMessage(test.args), nil)
			if err != nil || view.IsError {
				t.Fatal(view.Text(), err)
			}
			if got := started(srv); !slices.Equal(got, test.want) {
				t.Errorf("started %v, want %v", got, test.want)
			}
		})
	}
}

// Lists that an earlier command stored are used, and nothing is started for them.
func TestStoredListsAreUsed(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first, srv := openLocal(t, data)
	if _, err := first.Call(t.Context(), "mcp_list_upstreams", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, srv := openLocal(t, data)
	text, err := second.Read(t.Context(), "lua://tools")
	if err != nil || !strings.Contains(text, "read_graph") || !strings.Contains(text, "list_directory") {
		t.Errorf("%v: %s", err, text)
	}
	view, err := second.Call(t.Context(), "lua_eval", json.RawMessage(`{"code": "return mcp.has('files', 'list_directory')"}`), nil)
	if err != nil || !strings.Contains(string(view.Structured), "true") {
		t.Errorf("%v: %s", err, view.Structured)
	}
	if got := started(srv); got != nil {
		t.Errorf("started %v", got)
	}
}
