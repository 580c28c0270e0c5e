package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// nodeEvent is an event as a reader of the stream sees it.
type nodeEvent struct {
	Type string
	Node string
	Data object
}

// reader reads the events of a node, those of other nodes among them.
type reader struct {
	t      *testing.T
	events *sse.Reader
	counts map[string]int // by node, type and what it is about
}

func readEvents(t *testing.T, url, query string) *reader {
	t.Helper()
	answer := httpjsontest.Open(t, http.MethodGet, url+"/api/v1/events"+query, "")
	return &reader{t, sse.NewReader(answer.Body, 0), map[string]int{}}
}

// until reads on to an event that suits, and returns it.
func (r *reader) until(suits func(nodeEvent) bool) nodeEvent {
	r.t.Helper()
	for {
		raw, err := r.events.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		var e nodeEvent
		if err := json.Unmarshal(raw.Data, &e); err != nil {
			r.t.Fatal(err)
		}
		about := ""
		for _, field := range []string{"id", "job_id", "session", "name", "tool", "upstream"} {
			about += e.Data.text(field) + " "
		}
		r.counts[e.Node+" "+e.Type+" "+about]++
		if suits(e) {
			return e
		}
	}
}

func ofNode(node, kind string) func(nodeEvent) bool {
	return func(e nodeEvent) bool { return e.Node == node && e.Type == kind }
}

// Who looks on at one node sees what happens on another, once each and with its
// name; scripts published there are tools here, and clients are told.
func TestNodesShareWhatHappens(t *testing.T) {
	t.Parallel()
	database := dbtest.Postgres(t)
	behind, _ := start(t, config.Sources{})
	a, b := startNode(t, database, "a", ""), startNode(t, database, "b", "")
	r := readEvents(t, a.url, "")
	for !b.srv.node.Watched() { // b hears that somebody looks on at a
		waitForEvent(t, b.srv, "node.*")
	}
	client := openNotifications(t, a.url)
	tools := toolClient{t, connectPeer(t, b.url)}
	tools.call("job_stats", `{}`)
	r.until(ofNode("b", "tool.call_started"))
	r.until(ofNode("b", "tool.call_ended"))
	script := tools.call("script_store", `{"content": "function describe() return {name = 'greet', description = 'Greets.'} end function main() return 'hi' end"}`)
	tools.call("script_publish", `{"script_hash": "`+script.text("hash")+`"}`)
	r.until(ofNode("b", "script.published"))
	client.until("notifications/tools/list_changed")
	if said := (toolClient{t, connectPeer(t, a.url)}).call("greet", `{}`); said == nil {
		t.Error("the other node's script is no tool here")
	}
	tools.call("lua_execute", `{"script_hash": "`+script.text("hash")+`"}`)
	r.until(ofNode("b", "job.finished"))
	session := tools.call("session_create", `{}`).text("session_id")
	tools.call("lua_eval", `{"session_id": "`+session+`", "code": "x = 1"}`)
	r.until(ofNode("b", "session.used"))
	b.api(http.StatusOK, "POST", "/upstreams", `{"namespace": "docs", "url": "`+behind+`/mcp"}`)
	r.until(ofNode("b", "upstream.connected"))
	b.api(http.StatusOK, "DELETE", "/upstreams/docs", "")
	r.until(ofNode("b", "upstream.removed"))
	for what, n := range r.counts {
		for _, once := range []string{"b script.published", "b job.submitted", "b job.started", "b job.finished", "b session.created", "b upstream.connected", "b upstream.removed"} {
			if strings.HasPrefix(what, once+" ") && n != 1 {
				t.Errorf("%s was told %d times", what, n)
			}
		}
	}
	nodes := a.api(http.StatusOK, "GET", "/nodes", "")["nodes"].([]any)
	if len(nodes) != 2 {
		t.Fatalf("nodes %v", nodes)
	}
	for _, one := range nodes {
		n := object(one.(map[string]any))
		if load, ok := n["load"].(map[string]any); !ok || load["goroutines"].(float64) < 1 || n.text("version") == "" || n.text("state") != "up" || n.text("started") == "" {
			t.Errorf("node %v", n)
		}
	}
}

// waitForEvent waits for an event of a srv, or a moment: another process may have made
// it.
func waitForEvent(t *testing.T, h *Server, types string) {
	t.Helper()
	sub := h.bus.Subscribe(event.Options{Types: []string{types}})
	defer sub.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _ = sub.Next(ctx)
	if t.Context().Err() != nil {
		t.Fatal("the test is over")
	}
}

// listener of a client's stream of notifications.
type notificationReader struct {
	t      *testing.T
	events *sse.Reader
}

// openNotifications opens a session of the older era, and its stream.
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

// What administrators decide on one node holds on the others at once: they are told, and
// do not look by themselves.
func TestNodesHearWhatIsDecided(t *testing.T) {
	t.Parallel()
	database := dbtest.Postgres(t)
	behind, _ := start(t, config.Sources{})
	text := "[upstreams.far]\nurl = \"" + behind + "/mcp\"\ntrust = \"pin\"\n"
	seldom := func(o *Options) { o.pollInterval = time.Hour }
	a, b := startNode(t, database, "a", text, seldom), startNode(t, database, "b", text, seldom)
	a.await("far", "connected")
	b.await("far", "connected")
	a.api(http.StatusOK, "POST", "/pins/approve", `{"upstream": "far", "flagged": true}`)
	clocktest.Await(t, func() bool {
		tools, ok := b.srv.catalog.In(t.Context(), "far")
		return ok && len(tools) > 0
	}, func() string { return "b does not hear of the approval" })
	made := a.api(http.StatusCreated, "POST", "/keys", `{"name": "boss", "scopes": ["admin"]}`)
	clocktest.Await(t, func() bool {
		return b.status(made.text("token")) == http.StatusOK && b.status("") == http.StatusUnauthorized
	}, func() string { return "b does not hear of the key" })
}

// status is what a node answers to somebody with that token.
func (f testNode) status(token string) int {
	f.t.Helper()
	name, value := httpjsontest.Bearer(token)
	answer, _ := httpjsontest.Read(f.t, http.MethodGet, f.url+"/api/v1/nodes", "", name, value)
	return answer.StatusCode
}
