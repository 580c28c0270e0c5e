package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// eraClient is a client of one era that declares capabilities.
type eraClient struct {
	t         *testing.T
	url, path string
	era       wire.Era
	caps      string
	session   string
}

const showsApps = `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`

// connectEra begins a session if the era has them.
func connectEra(t *testing.T, url, path string, era wire.Era, caps string) *eraClient {
	t.Helper()
	c := &eraClient{t: t, url: url, path: path, era: era, caps: caps}
	if era == wire.Legacy {
		answer, _ := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+wire.NewestLegacy+`","capabilities":`+caps+`,"clientInfo":{"name":"t","version":"1"}}}`, "")
		c.session = answer.Header.Get(wire.HeaderSession)
		c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "")
	}
	return c
}

func (c *eraClient) post(body, method string, headers ...string) (*http.Response, string) {
	c.t.Helper()
	revision := wire.NewestLegacy
	if c.era == wire.Modern {
		revision = wire.NewestModern
		headers = append(headers, wire.HeaderMethod, method)
	}
	if c.session != "" {
		headers = append(headers, wire.HeaderSession, c.session)
	}
	return httpjsontest.Read(c.t, http.MethodPost, c.url+c.path, body, append(headers, wire.HeaderRevision, revision, "Accept", "application/json, text/event-stream")...)
}

// ask makes a request whose params are an object, and returns its answer.
func (c *eraClient) ask(method, params string) wire.Message {
	c.t.Helper()
	raw := json.RawMessage(params)
	var headers []string
	if c.era == wire.Modern {
		meta := wire.Meta(raw)
		meta = rawjson.SetText(meta, wire.MetaRevision, wire.NewestModern)
		meta = rawjson.Set(meta, wire.MetaClientCapabilities, json.RawMessage(c.caps))
		raw = rawjson.Set(raw, "_meta", rawjson.Set(meta, wire.MetaClientInfo, json.RawMessage(`{"name":"t","version":"1"}`)))
		if name, ok := wire.NameOf(method, raw); ok {
			headers = []string{wire.HeaderName, wire.EncodeHeader(name)}
		}
	}
	_, text := c.post(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+string(raw)+`}`, method, headers...)
	for _, line := range append(strings.Split(text, "\n"), text) {
		m, err := wire.Parse([]byte(strings.TrimPrefix(line, "data:")))
		if err == nil && m.ID == wire.IntID(1) {
			return m
		}
	}
	c.t.Fatalf("%s %s: %.600s", method, params, text)
	return wire.Message{}
}

// result is the text of an answer, or of its error.
func (c *eraClient) result(method, params string) string {
	c.t.Helper()
	m := c.ask(method, params)
	if m.Error != nil {
		return m.Error.Error()
	}
	return string(m.Result)
}

// tools are the _meta of the listed tools, by name.
func (c *eraClient) tools() map[string]string {
	c.t.Helper()
	listed, _ := rawjson.Get(c.ask(wire.MethodToolsList, "{}").Result, "tools")
	items, _ := rawjson.Items(listed)
	list := map[string]string{}
	for _, item := range items {
		name, _ := rawjson.GetText(item, "name")
		list[name] = string(wire.Meta(item))
	}
	return list
}

// serveProgram starts a program from npm that serves HTTP, and returns its address.
func serveProgram(t *testing.T, name string) string {
	t.Helper()
	port := netguardtest.ReservedPort()
	program := exec.CommandContext(t.Context(), "node", npmtest.Program(t, name))
	program.Env = append(os.Environ(), "PORT="+port)
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	program.Stderr = program.Stdout
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), port) {
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = program.Wait() // it is killed when the test ends
	}()
	return "http://127.0.0.1:" + port
}

// startApps starts a server with the official examples of Apps: one over HTTP, the same as a
// program, and one with a tool for its page only.
func startApps(t *testing.T, more string) (url string, srv *Server) {
	t.Helper()
	clock := serveProgram(t, "mcp-server-basic-vanillajs") + "/mcp"
	program := func(name string) string {
		return fmt.Sprintf("command = \"node\"\nargs = [%q, \"--stdio\"]\n", npmtest.Program(t, name))
	}
	file := configtest.WriteFile(t, more+fmt.Sprintf("\n[upstreams.clock]\nurl = %q\n", clock)+
		"[upstreams.second]\n"+program("mcp-server-basic-vanillajs")+"[upstreams.monitor]\n"+program("mcp-system-monitor-server"))
	env := config.ProcessEnvironment(os.Environ())
	url, srv = start(t, config.Sources{File: file, Env: config.Environment{"PATH": env["PATH"], "HOME": t.TempDir()}})
	srv.upstreams.AwaitAttempts(t.Context(), 2*time.Minute)
	srv.catalog.Refresh(t.Context())
	return url, srv
}

// TestAppsAreRelayed checks with the official examples what clients that show Apps are listed,
// read and may call, and what all others are, in both eras.
func TestAppsAreRelayed(t *testing.T) {
	t.Parallel()
	url, _ := startApps(t, "")
	for _, era := range []wire.Era{wire.Legacy, wire.Modern} {
		t.Run(fmt.Sprint(era), func(t *testing.T) {
			t.Parallel()
			plain := connectEra(t, url, "/mcp", era, `{}`)
			if got := slices.Sorted(maps.Keys(plain.tools())); !slices.Equal(got, []string{"call_tool", "call_tool_read", "execute_code", "get_tool_definitions", "search_tools"}) {
				t.Errorf("a client that shows no Apps is listed %v", got)
			}
			client := connectEra(t, url, "/mcp", era, showsApps)
			listed := client.tools()
			for name, want := range map[string]string{
				"call_tool":                  `"ui":{"visibility":["model"]}`,
				"clock__get-time":            `{"ui":{"resourceUri":"ui://get-time/mcp-app.html"},"ui/resourceUri":"ui://get-time/mcp-app.html"}`,
				"second__get-time":           `{"ui":{"resourceUri":"ui://second+get-time/mcp-app.html"},"ui/resourceUri":"ui://second+get-time/mcp-app.html"}`,
				"monitor__get-system-info":   `"resourceUri":"ui://system-monitor/mcp-app.html"`,
				"monitor__poll-system-stats": `"visibility":["app"]`,
			} {
				if !strings.Contains(listed[name], want) {
					t.Errorf("%s has %s, want %s", name, listed[name], want)
				}
			}
			for uri, want := range map[string]string{
				"ui://get-time/mcp-app.html": "Get Time App", "ui://second+get-time/mcp-app.html": "Get Time App", "ui://system-monitor/mcp-app.html": "System Monitor",
			} {
				got := client.result(wire.MethodResourcesRead, `{"uri":"`+uri+`"}`)
				if !strings.Contains(got, `"uri":"`+uri+`"`) || !strings.Contains(got, want) || !strings.Contains(got, `"mimeType":"text/html;profile=mcp-app"`) {
					t.Errorf("%s is %.300s", uri, got)
				}
			}
			for _, c := range []struct{ name, args, want string }{
				{"monitor__get-system-info", `{}`, "hostname"},
				{"monitor__poll-system-stats", `{}`, "usedBytes"},
				{"poll-system-stats", `{}`, "usedBytes"}, // as its page calls it
				{"get-time", `{}`, "clock__get-time, second__get-time"},
				{"call_tool", `{"name":"monitor.poll-system-stats"}`, "for the pages of its server only"},
				{"execute_code", `{"code":"return await mcp.monitor['poll-system-stats']({})"}`, "for the pages of its server only"},
				{"get_tool_definitions", `{"names":["monitor.poll-system-stats"]}`, "no tool"},
			} {
				if got := client.result(wire.MethodToolsCall, `{"name":"`+c.name+`","arguments":`+c.args+`}`); !strings.Contains(got, c.want) {
					t.Errorf("%s %s: %.500s, want %s", c.name, c.args, got, c.want)
				}
			}
			if got := client.result(wire.MethodToolsCall, `{"name":"search_tools","arguments":{"query":"poll system stats"}}`); strings.Contains(got, "monitor.poll") {
				t.Errorf("search finds a tool for pages: %s", got)
			}
			for caps, want := range map[string]bool{`{}`: false, showsApps: true} {
				direct := connectEra(t, url, "/mcp/monitor", era, caps).tools()
				if _, listed := direct["poll-system-stats"]; listed != want || len(direct["get-system-info"]) == 0 {
					t.Errorf("/mcp/monitor lists %v to a client with %s", direct, caps)
				}
			}
		})
	}
}

// TestPagesCallOnlyTheirServer checks that the name in a call of a page stands for a tool of a
// server whose page was read, and that such calls pass the rules.
func TestPagesCallOnlyTheirServer(t *testing.T) {
	t.Parallel()
	url, srv := startApps(t, `
audit.enabled = true
[mcp]
list_apps = 2
[[policy]]
tool = "monitor.poll-system-stats"
do = "deny"
reason = "not here"
[[policy]]
tool = "second.resource:ui://*"
do = "deny"
`)
	client := connectEra(t, url, "/mcp", wire.Modern, showsApps)
	listed := client.tools()
	if len(listed) != 5+2+1 || listed["app_call"] == "" || !strings.Contains(listed["clock__get-time"], "get-time/mcp-app.html") {
		t.Errorf("with list_apps = 2 the client is listed %v", listed)
	}
	if direct := connectEra(t, url, "/mcp/second", wire.Modern, showsApps).tools()["get-time"]; direct != `{"ui":{}}` {
		t.Errorf("a page that may not be read is listed: %s", direct)
	}
	call := func(name string) string {
		t.Helper()
		return client.result(wire.MethodToolsCall, `{"name":"`+name+`","arguments":{}}`)
	}
	if got := call("get-time"); !strings.Contains(got, `"structuredContent":{"time"`) { // no page was read: second has none that may be
		t.Errorf("before a page was read: %s", got)
	}
	client.result(wire.MethodResourcesRead, `{"uri":"ui://system-monitor/mcp-app.html"}`)
	if got := call("get-time"); !strings.Contains(got, "Unknown tool") {
		t.Errorf("the page of monitor calls a tool of clock: %s", got)
	}
	if got := call("poll-system-stats"); !strings.Contains(got, "not here") {
		t.Errorf("a rule does not apply to the call of a page: %s", got)
	}
	if got := client.result(wire.MethodResourcesRead, `{"uri":"ui://second+get-time/mcp-app.html"}`); strings.Contains(got, "<html") {
		t.Errorf("a rule does not apply to a page: %.200s", got)
	}
	client.result(wire.MethodResourcesRead, `{"uri":"ui://get-time/mcp-app.html"}`)
	if got := call("get-time"); !strings.Contains(got, `"structuredContent":{"time"`) {
		t.Errorf("the page of clock calls its tool: %s", got)
	}
	var entries []string
	if err := srv.audit.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := srv.audit.Find(t.Context(), audit.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		entries = append(entries, e.Action+" "+e.Subject+" "+e.Decision)
	}
	for _, want := range []string{"read monitor.resource:ui://system-monitor/mcp-app.html allow", "call clock.get-time allow", "call monitor.poll-system-stats deny", "read second.resource:ui://get-time/mcp-app.html deny"} {
		if !slices.Contains(entries, want) {
			t.Errorf("the audit log has no %q: %q", want, entries)
		}
	}
}
