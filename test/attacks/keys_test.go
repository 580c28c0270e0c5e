package attacks

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/config"
)

// careless is a tool server that reads requests as many do: the case of keys does not
// matter, and of two equal keys the last counts. It has a tool that only reads, a tool
// that deletes, and lists its tasks to every client.
type careless struct {
	*httptest.Server
	mu     sync.Mutex
	called []string // tools, and methods about tasks
	tasks  int      // calls that asked for a task
}

func newCareless(t *testing.T) *careless {
	c := &careless{}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *careless) serve(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name string
			Task json.RawMessage
		}
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&ask) != nil || ask.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := ""
	switch ask.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"list":{}}},"serverInfo":{"name":"careless","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"wipe","inputSchema":{"type":"object"}}]}`
	case "tools/call", "tasks/list", "tasks/result":
		c.mu.Lock()
		c.called = append(c.called, ask.Method+" "+ask.Params.Name)
		if ask.Params.Task != nil {
			c.tasks++
		}
		c.mu.Unlock()
		result = `{"content":[{"type":"text","text":"done: ` + ask.Params.Name + `"}],"tasks":[{"taskId":"of-another-user"}]}`
	case "ping":
		result = `{}`
	}
	w.Header().Set("Content-Type", "application/json")
	if result == "" {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, ask.ID)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, ask.ID, result)
}

func (c *careless) seen() (called []string, tasks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.called), c.tasks
}

// raw sends a request with these params, unchanged, to the endpoint of one server.
func (h *program) raw(key, method, name, params string) string {
	h.t.Helper()
	_, text := h.ask(http.MethodPost, "/mcp/probe", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`,
		map[string]string{"Authorization": "Bearer " + key, "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name})
	return text
}

// serveCareless starts the program with a careless upstream, a policy, and keys with
// different rights.
func serveCareless(t *testing.T) (*program, *careless) {
	c := newCareless(t)
	h, _ := serve(t, `
[upstreams.probe]
url = "`+c.URL+`/mcp"
protocol = "legacy"
[[policy]]
key = "plain"
tool = "probe.wipe"
do = "deny"
[keys.root]
env = "ROOT"
scopes = ["admin"]
[keys.plain]
env = "PLAIN"
scopes = ["mcp"]
[keys.narrow]
env = "NARROW"
scopes = ["mcp"]
tools = ["probe.look", "script_*", "lua_*"]
[music]
enabled = true
`, config.Environment{"ROOT": "root-token", "PLAIN": "plain-token", "NARROW": "narrow-token"})
	h.awaitAs(bearing("root-token"), "mcp_status", map[string]any{"namespace": "probe"}, `"connected"`)
	return h, c
}

// bearing returns the header of a request with that key.
func bearing(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

// TestAttackTwoNames calls an allowed tool with params in which the upstream may find the
// name of another one.
func TestAttackTwoNames(t *testing.T) {
	t.Parallel()
	h, c := serveCareless(t)
	for _, key := range []string{"plain-token", "narrow-token"} {
		for _, params := range []string{
			`"name":"wipe","arguments":{}`,
			`"name":"look","Name":"wipe","arguments":{}`,
			`"name":"look","NAME":"wipe","arguments":{}`,
			`"Name":"wipe","arguments":{}`,
			`"name":"look","name":"wipe","arguments":{}`,
			`"name":"wipe","name":"look","arguments":{}`,
			`"name":"look","na\u006de":"wipe","arguments":{}`,
			`"name":"look","\u004eame":"wipe","arguments":{}`,
			`"name":"look","arguments":{"a":1},"argumentſ":{"a":2}`,
			`"name":"look","arguments":{"a":1},"Arguments":{"a":2}`,
		} {
			for _, name := range []string{"look", "wipe"} {
				if text := h.raw(key, "tools/call", name, params); !strings.Contains(text, `"error"`) && !strings.Contains(text, `"isError":true`) {
					t.Errorf("%s, %s: %s", key, params, text)
				}
			}
		}
		if text := h.raw(key, "tools/call", "look", `"name":"look","arguments":{"Name":"a","name":"b"}`); !strings.Contains(text, "done: look") {
			t.Errorf("%s: arguments may have any keys: %s", key, text)
		}
	}
	if called, _ := c.seen(); slices.ContainsFunc(called, func(call string) bool { return call != "tools/call look" }) || len(called) != 2 {
		t.Errorf("the upstream received %q", called)
	}
}

// TestAttackTasksOfOthers asks for tasks of an upstream whose one connection serves all
// users.
func TestAttackTasksOfOthers(t *testing.T) {
	t.Parallel()
	h, c := serveCareless(t)
	for _, key := range []string{"plain-token", "narrow-token"} {
		for _, method := range []string{"tasks/list", "tasks/result"} {
			if text := h.raw(key, method, "", `"taskId":"of-another-user"`); strings.Contains(text, "done") || strings.Contains(text, "taskId") || !strings.Contains(text, `"error"`) {
				t.Errorf("%s, %s: %s", key, method, text)
			}
		}
		if text := h.raw(key, "tools/call", "look", `"name":"look","arguments":{},"task":{"ttl":1000}`); !strings.Contains(text, "done: look") {
			t.Errorf("%s: a call that asks for a task must be an ordinary call: %s", key, text)
		}
	}
	if text := h.raw("narrow-token", "x/unknown", "", `"x":1`); !strings.Contains(text, `"code":-32601`) {
		t.Errorf("an unknown method with a key for some tools: %s", text)
	}
	if called, tasks := c.seen(); tasks != 0 || slices.Contains(called, "tasks/list ") || slices.Contains(called, "tasks/result ") {
		t.Errorf("the upstream received %q, %d as tasks", called, tasks)
	}
}

// TestAttackPublishedOver replaces a published script of a user with more rights: callers
// of the tool would run it with their own rights.
func TestAttackPublishedOver(t *testing.T) {
	t.Parallel()
	h, _ := serveCareless(t)
	publish := func(key, output string) string {
		stored := h.call("script_store", map[string]any{"content": "function describe() return {name = 'report', description = 'Reports.', params = {}} end\nfunction main() return '" + output + "' end"}, bearing(key))
		return h.call("script_publish", map[string]any{"script_hash": submatch(`"hash":"([0-9a-f]+)"`, stored)}, bearing(key))
	}
	if text := publish("root-token", "of root"); !strings.Contains(text, "is now a tool") {
		t.Fatal(text)
	}
	for what, text := range map[string]string{
		"published over it": publish("narrow-token", "evil"),
		"removed it":        h.call("script_unpublish", map[string]any{"name": "report"}, bearing("narrow-token")),
		"by a script":       h.call("lua_eval", map[string]any{"code": `return mcp.script_unpublish{name = "report"}`}, bearing("plain-token")),
	} {
		if !strings.Contains(text, "published by another user") {
			t.Errorf("%s: %s", what, text)
		}
	}
	if text := h.call("report", map[string]any{}, bearing("root-token")); !strings.Contains(text, "of root") {
		t.Errorf("the published script was replaced: %s", text)
	}
	if text := h.call("script_unpublish", map[string]any{"name": "report"}, bearing("root-token")); !strings.Contains(text, "no longer a tool") {
		t.Fatal(text)
	}
	if text := publish("plain-token", "of plain"); !strings.Contains(text, "is now a tool") {
		t.Errorf("an unused name: %s", text)
	}
	if text := publish("root-token", "of root again"); !strings.Contains(text, "is now a tool") {
		t.Errorf("an administrator: %s", text)
	}
}

// TestAttackLooksAround lists and writes stored contents with a key for some tools only.
func TestAttackLooksAround(t *testing.T) {
	t.Parallel()
	h, _ := serveCareless(t)
	status, created := h.ask(http.MethodPost, "/cas", "a secret of the server", bearing("plain-token"))
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, created)
	}
	var content struct{ Hash string }
	if err := json.Unmarshal([]byte(created), &content); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key, method, path string
		want              int
	}{
		{"narrow-token", http.MethodGet, "/artifacts", http.StatusForbidden},
		{"narrow-token", http.MethodPost, "/cas", http.StatusForbidden},
		{"narrow-token", http.MethodGet, "/cas/" + content.Hash, http.StatusNotFound}, // the hash alone is no right
		{"plain-token", http.MethodGet, "/cas/" + content.Hash, http.StatusOK},
		{"root-token", http.MethodGet, "/cas/" + content.Hash, http.StatusOK},
	} {
		if status, text := h.ask(c.method, c.path, "x", bearing(c.key)); status != c.want {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, status, text, c.want)
		}
	}
}
