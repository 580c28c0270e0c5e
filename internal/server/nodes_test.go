package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/sse"
)

// TestNodesShareEvents checks that a reader on one node receives each event of another
// node once, with the node's name, and that a script published on one node becomes a tool
// on the other, whose clients are notified.
func TestNodesShareEvents(t *testing.T) {
	t.Parallel()
	database := tables.Postgres(t)
	behind, _ := startShared(t)
	a, b := startNode(t, database, "a", ""), startNode(t, database, "b", "")
	r := readEvents(t, a.url, "")
	clocktest.Await(t, b.srv.node.Watched) // a has announced its reader
	client := openNotifications(t, a.url)
	tools := toolClient{t, connectPeer(t, b.url)}
	tools.call("job_stats", `{}`)
	r.untilOf("b", "tool.call_started")
	r.untilOf("b", "tool.call_ended")
	script := tools.call("script_store", `{"content": "function describe() return {name = 'greet', description = 'Greets.'} end function main() return 'hi' end"}`)
	tools.call("script_publish", `{"script_hash": "`+script.text("hash")+`"}`)
	r.untilOf("b", "script.published")
	client.until("notifications/tools/list_changed")
	if result := (toolClient{t, connectPeer(t, a.url)}).call("greet", `{}`); result == nil {
		t.Error("the tool greet has no result on the other node")
	}
	tools.call("lua_execute", `{"script_hash": "`+script.text("hash")+`"}`)
	r.untilOf("b", "job.finished")
	session := tools.call("session_create", `{}`).text("session_id")
	tools.call("lua_eval", `{"session_id": "`+session+`", "code": "x = 1"}`)
	r.untilOf("b", "session.used")
	b.api(http.StatusOK, "POST", "/upstreams", `{"namespace": "docs", "url": "`+behind+`/mcp"}`)
	r.untilOf("b", "upstream.connected")
	b.api(http.StatusOK, "DELETE", "/upstreams/docs", "")
	r.untilOf("b", "upstream.removed")
	for event, n := range r.counts {
		for _, once := range []string{"b script.published", "b job.submitted", "b job.started", "b job.finished", "b session.created", "b upstream.connected", "b upstream.removed"} {
			if strings.HasPrefix(event, once+" ") && n != 1 {
				t.Errorf("%s was received %d times", event, n)
			}
		}
	}
	nodes := a.api(http.StatusOK, "GET", "/nodes", "")["nodes"].([]any)
	if len(nodes) != 2 {
		t.Fatalf("nodes %v", nodes)
	}
	for _, listed := range nodes {
		n := object(listed.(map[string]any))
		if load, ok := n["load"].(map[string]any); !ok || load["goroutines"].(float64) < 1 || n.text("version") == "" || n.text("state") != "up" || n.text("started") == "" {
			t.Errorf("node %v", n)
		}
	}
}

// notificationReader reads the notifications of an MCP session.
type notificationReader struct {
	t      *testing.T
	events *sse.Reader
}

// openNotifications starts an MCP session and opens its stream.
func openNotifications(t *testing.T, url string) notificationReader {
	t.Helper()
	send := func(session, body string) *http.Response {
		answer, _ := httpjsontest.Read(t, http.MethodPost, url+"/mcp", body, "Accept", "application/json, text/event-stream", "Mcp-Session-Id", session)
		return answer
	}
	session := send("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`).Header.Get("Mcp-Session-Id")
	send(session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	answer := httpjsontest.Open(t, http.MethodGet, url+"/mcp", "", "Accept", "text/event-stream", "Mcp-Session-Id", session)
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
	return notificationReader{t, sse.NewReader(answer.Body, 0)}
}

// until reads until it reads a notification with the method.
func (n notificationReader) until(method string) {
	n.t.Helper()
	for {
		e, err := n.events.Next()
		if err != nil {
			n.t.Fatalf("no %s: %v", method, err)
		}
		if strings.Contains(string(e.Data), `"`+method+`"`) {
			return
		}
	}
}

// TestNodesNotifyEachOther checks that approvals and keys of one node take effect on
// another by notification, without polling.
func TestNodesNotifyEachOther(t *testing.T) {
	t.Parallel()
	database := tables.Postgres(t)
	behind, _ := startShared(t)
	text := "[upstreams.far]\nurl = \"" + behind + "/mcp\"\ntrust = \"pin\"\n"
	noPolling := func(o *Options) { o.pollInterval = time.Hour }
	a, b := startNode(t, database, "a", text, noPolling), startNode(t, database, "b", text, noPolling)
	a.await("far", "connected")
	b.await("far", "connected")
	a.api(http.StatusOK, "POST", "/pins/approve", `{"upstream": "far", "flagged": true}`)
	clocktest.Await(t, func() bool {
		tools, ok := b.srv.catalog.In(t.Context(), "far")
		return ok && len(tools) > 0
	}, func() string { return "node b does not apply the approval" })
	made := a.api(http.StatusCreated, "POST", "/keys", `{"name": "boss", "scopes": ["admin"]}`)
	clocktest.Await(t, func() bool {
		return b.status(made.text("token")) == http.StatusOK && b.status("") == http.StatusUnauthorized
	}, func() string { return "node b does not know the key" })
}

// status returns the status of a request with a key.
func (f testNode) status(token string) int {
	f.t.Helper()
	name, value := httpjsontest.Bearer(token)
	answer, _ := httpjsontest.Read(f.t, http.MethodGet, f.url+"/api/v1/nodes", "", name, value)
	return answer.StatusCode
}
