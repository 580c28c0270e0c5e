package builtin_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

func TestConnectAndDisconnect(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.servers.offer("new", map[string]string{"shine": `{"type":"object"}`})
	var status servertools.UpstreamView
	args := `{"namespace":"new","url":"http://localhost:8080/mcp#part","transport":"auto","headers":{"Authorization":"Bearer ${HOME}"},"wait_ms":"500"}`
	view := h.mustCall(t, "mcp_connect", args, &status)
	if status.State != "connected" || status.Tools != 1 || h.servers.awaits != 1 {
		t.Errorf("status %+v, awaited %d times", status, h.servers.awaits)
	}
	if want := "new: connected (1 tool)\n  http://localhost:8080/mcp"; view.Text() != want {
		t.Errorf("text %q, want %q", view.Text(), want)
	}
	added := h.servers.desired["new"]
	if added.Transport != "" || added.Headers["Authorization"] != "Bearer ${HOME}" || added.URL != "http://localhost:8080/mcp" {
		t.Errorf("added %+v", added)
	}
	h.mustCall(t, "call_tool", `{"name":"new.shine"}`, nil)
	h.mustCall(t, "mcp_status", `{"namespace":"new"}`, &status)
	if status.CallCount != 1 || status.LastTool != "shine" {
		t.Errorf("status %+v", status)
	}
	var disconnected servertools.Disconnected
	h.mustCall(t, "mcp_disconnect", `{"namespace":"new"}`, &disconnected)
	h.mustCall(t, "mcp_disconnect", `{"namespace":"new"}`, &disconnected)
	if disconnected.Removed {
		t.Error("removed twice")
	}
	if view, err := h.call(t, "call_tool", `{"name":"new.shine"}`); err != nil || !view.IsError {
		t.Errorf("a tool of a removed server: %v, %s", err, view.Text())
	}
}

func TestConnectRefuses(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.servers.fixed["fs"] = true
	tests := []struct{ args, want string }{
		{`{"namespace":"a b","url":"http://localhost/"}`, "is not a valid name"},
		{`{"namespace":"a.b","url":"http://localhost/"}`, "is not a valid name"},
		{`{"namespace":"x","url":"stdio:///bin/sh"}`, "luanette.toml"},
		{`{"namespace":"x","url":"/bin/sh -c ls"}`, "luanette.toml"},
		{`{"namespace":"x","url":"file:///etc/passwd"}`, "luanette.toml"},
		{`{"namespace":"x","url":"http://user:pw@localhost/"}`, "send credentials in headers"},
		{`{"namespace":"x","url":"https://example.org/mcp"}`, "mcp.allowed_hosts"},
		{`{"namespace":"x","url":"http://169.254.169.254/latest"}`, "permission_denied"},
		{`{"namespace":"fs","url":"http://localhost:666/"}`, "is defined in the configuration"},
	}
	for _, tt := range tests {
		view, err := h.call(t, "mcp_connect", tt.args)
		if err != nil {
			t.Errorf("%s: %v", tt.args, err)
		} else if !view.IsError || !strings.Contains(view.Text(), tt.want) {
			t.Errorf("%s: %q, want %q", tt.args, view.Text(), tt.want)
		}
	}
	for _, args := range []string{`{"namespace":"x"}`, `{"namespace":"x","url":"http://localhost/","command":"sh"}`, `{"namespace":"x","url":"http://localhost/","transport":"stdio"}`} {
		if _, err := h.call(t, "mcp_connect", args); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s: %v", args, err)
		}
	}
	if got := h.servers.Namespaces(); !slices.Equal(got, []string{"fs", "music"}) {
		t.Errorf("namespaces %v", got)
	}
}

// TestConnectIsForManagers checks that the tools themselves refuse those who manage nothing,
// also where they are not hidden.
func TestConnectIsForManagers(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, who := range map[string]principal.Principal{
		"member":    {ID: "key:m", Org: "acme", Scopes: []principal.Scope{principal.MCP}},
		"anybody":   {ID: "key:a", Scopes: []principal.Scope{principal.MCP, principal.Org}},
		"in a chat": {ID: "key:c", Org: "acme", Person: "acme/ada", Scopes: []principal.Scope{principal.MCP, principal.Org}},
	} {
		for does, args := range map[string]string{"mcp_connect": `{"namespace":"x","url":"http://127.0.0.1:1/mcp"}`, "mcp_disconnect": `{"namespace":"fs"}`} {
			result, err := h.catalog.Call(principal.With(t.Context(), who), tool.Call{Ref: tool.Ref{Name: does}, Args: json.RawMessage(args)})
			if err != nil || !strings.Contains(string(result.Raw), "may not add or remove servers") {
				t.Errorf("%s: %s: %s, %v", name, does, result.Raw, err)
			}
		}
	}
	if got := h.servers.Namespaces(); !slices.Equal(got, []string{"fs", "music"}) {
		t.Errorf("namespaces %v", got)
	}
}

func TestListAndStatus(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.servers.unreachable["music"] = "connection refused"
	var list servertools.UpstreamList
	view := h.mustCall(t, "mcp_list_upstreams", `{}`, &list)
	if list.Total != 2 || list.Upstreams[0].Namespace != "fs" {
		t.Errorf("list %+v", list)
	}
	want := "fs: connected (2 tools)\n  http://127.0.0.1:9/fs\nmusic: reconnecting (attempt 2)\n  http://127.0.0.1:9/music\n  Error: connection refused\nWarning: mcp.import: open .mcp.json: no such file"
	if view.Text() != want {
		t.Errorf("text\n%s\nwant\n%s", view.Text(), want)
	}
	view, _ = h.call(t, "mcp_status", `{"namespace":"musik"}`)
	if !view.IsError || !strings.Contains(view.Text(), "did you mean music? available: fs, music") {
		t.Errorf("unknown upstream: %s", view.Text())
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.servers.offer("fs", map[string]string{"a": `{}`, "b": `{}`, "c": `{}`})
	var got servertools.Refreshed
	h.mustCall(t, "tools_refresh", `{"namespace":"fs"}`, &got)
	if got.ToolCount != 3 || !slices.Equal(got.Tools, []string{"a", "b", "c"}) {
		t.Errorf("refreshed %+v", got)
	}
	view, _ := h.call(t, "tools_refresh", `{"namespace":"zzz"}`)
	var meta map[string]struct {
		Code    fault.Code
		Details struct{ Available []string }
	}
	_ = json.Unmarshal(view.Meta, &meta)
	if e := meta["luanette/error"]; e.Code != fault.InvalidParams || !slices.Equal(e.Details.Available, []string{"fs", "music"}) {
		t.Errorf("unknown namespace: %s %s", view.Text(), view.Meta)
	}
	h.servers.unreachable["music"] = "connection reset"
	if view, _ := h.call(t, "tools_refresh", `{"namespace":"music"}`); !strings.Contains(view.Text(), "unavailable: refresh music: connection reset") {
		t.Errorf("an unreachable server: %s", view.Text())
	}
}

func TestAllowHosts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		hosts string
		url   string
		want  bool
	}{
		{"", "http://127.0.0.1:1/", true},
		{"", "http://[::1]/", true},
		{"", "http://localhost./", true},
		{"", "https://example.org/", false},
		{"example.org", "https://example.org/", true},
		{"Example.org", "https://EXAMPLE.org./", true},
		{"example.org", "http://example.org/", false},
		{"example.org", "https://evil.example.org/", false},
		{"example.org", "https://evilexample.org/", false},
		{"*.example.org", "https://a.example.org/", true},
		{"*.example.org", "https://example.org/", false},
		{"*example.org", "https://evilexample.org/", false},
		{"*", "https://example.org/", true},
		{"*", "http://example.org/", false},
		{"*", "https://10.0.0.1/", false},
		{"*", "https://169.254.169.254/", false},
		{"*", "https://100.64.1.1/", false},
		{"*", "https://[::ffff:10.0.0.1]/", false},
		{"*", "https://[fd00::1]/", false},
		{"*", "https://2130706433/", false},
		{"*", "https://127.1/", false},
		{"*", "https://0x7f.1/", false},
		{"*", "https://metadata.google.internal/", false},
		{"*", "https://printer.local/", false},
		{"*", "https://intranet/", false},
		{"*", "https://8.8.8.8/", true},
		{"10.0.0.1", "https://10.0.0.1/", true},
		{"", "zmq+tcp://127.0.0.1:5580", true},
		{"", "zmq+tcp://example.org:5580", false},
		{"*", "zmq+tcp://example.org:5580", false},
		{"10.0.0.1", "zmq+tcp://10.0.0.1:5580", false},
		{"*", "zmq+ipc:///run/backend", false},
	}
	for _, tt := range tests {
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		err = servertools.AllowHosts(strings.Fields(tt.hosts))(t.Context(), u)
		if (err == nil) != tt.want {
			t.Errorf("hosts %q, url %s: %v", tt.hosts, tt.url, err)
		}
	}
	u := &url.URL{Scheme: "ftp", Host: "example.org"} // no host to allow would help
	if err := servertools.AllowHosts(nil)(t.Context(), u); err == nil || !strings.Contains(err.Error(), `no transport "ftp"`) {
		t.Errorf("ftp: %v", err)
	}
}
