package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// TestEventStream causes events of every type on a real server and reads them from its
// stream.
func TestEventStream(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(http.NotFoundHandler()) // the turn fails, which is enough for its events
	t.Cleanup(model.Close)
	behind, _ := start(t, config.Sources{})
	front, _ := start(t, config.Sources{
		File: configtest.WriteFile(t, "[upstreams.far]\nurl = \""+behind+"/mcp\"\n[approvals]\n\"far.script_store\" = \"writes\"\n"),
		Env:  config.Environment{"LUANETTE_CHAT_BASE_URL": model.URL, "ANTHROPIC_API_KEY": "sk-test"},
	})
	events := readEvents(t, front, "?after=all")
	there, here := toolClient{t, connectPeer(t, behind)}, toolClient{t, connectPeer(t, front)}

	events.until("upstream.connecting", "upstream.connected", "log.line", "catalog.changed")
	here.call("call_tool", `{"name": "far.job_stats", "arguments": {}}`)
	events.until("tool.call_started", "tool.call_ended")
	published := there.call("script_store", `{"content": "function describe() return {name = 'greet', description = 'Greets.'} end function main() return 'hi' end"}`)
	there.call("script_publish", `{"script_hash": "`+published.text("hash")+`"}`)
	events.until("upstream.tools_refreshed")

	here.call("mcp_connect", `{"namespace": "closed", "url": "http://127.0.0.1:1/mcp", "wait_ms": 0}`)
	events.until("upstream.reconnecting")
	here.call("mcp_disconnect", `{"namespace": "closed"}`)
	events.until("upstream.removed")

	script := here.call("script_store", `{"content": "function describe() return {name = 'keep', description = 'Keeps.'} end function main() progress(0.5, 'half') return mcp.far.script_store{content = 'return 1'}.hash end"}`)
	events.until("artifact.created")
	here.call("script_publish", `{"script_hash": "`+script.text("hash")+`"}`)
	events.until("script.published")
	here.call("lua_execute", `{"script_hash": "`+script.text("hash")+`"}`)
	events.until("job.submitted", "job.started", "job.progress", "job.paused", "approval.requested")
	here.call("approval_decide", `{"approval_id": "`+events.last["approval.requested"].text("approval_id")+`", "decision": "allow"}`)
	events.until("approval.settled", "job.finished")

	session := here.call("session_create", `{}`).text("session_id")
	here.call("lua_eval", `{"session_id": "`+session+`", "code": "x = 1"}`)
	here.call("session_fork", `{"session_id": "`+session+`"}`)
	here.call("session_reset", `{"session_id": "`+session+`"}`)
	here.call("session_close", `{"session_id": "`+session+`"}`)
	events.until("session.created", "session.used", "session.forked", "session.reset", "session.closed")
	if shown := events.last["session.used"].text("session"); !strings.HasPrefix(session, shown) || len(shown) > len(session)/2 {
		t.Errorf("the event names session %q, want the first part of %q, not enough to use it", shown, session)
	}

	httpjsontest.Read(t, http.MethodPost, front+"/api/v1/chat", `{"client_id": "c", "user_id": "u", "message": "hello"}`)
	events.until("chat.turn_started", "chat.turn_finished")
	for _, kind := range []string{"chat.turn_started", "chat.turn_finished"} {
		if about := events.last[kind]; about.text("org") != "default" || about.text("user") != "u" || kind == "chat.turn_started" && about.text("model") == "" {
			t.Errorf("%s: %v", kind, about)
		}
	}
}

// object is a JSON object.
type object map[string]any

func (o object) text(name string) string {
	text, _ := o[name].(string)
	return text
}

// toolClient calls the tools of a server over HTTP.
type toolClient struct {
	t    *testing.T
	peer *upstream.Peer
}

func (c toolClient) call(name, args string) (answer object) {
	c.t.Helper()
	params := json.RawMessage(`{"name":"` + name + `","arguments":` + args + `}`)
	meta := json.RawMessage(`{"` + builtin.FullKey + `":true}`)
	result, err := c.peer.Call(c.t.Context(), tool.Call{Ref: tool.Ref{Name: name}, Args: json.RawMessage(args), Meta: meta}, params)
	if err != nil {
		c.t.Fatalf("%s %s: %v", name, args, err)
	}
	view, err := result.View()
	if err != nil || view.IsError {
		c.t.Fatalf("%s %s: %v %s", name, args, err, view.Text())
	}
	if err := json.Unmarshal(view.Value(), &answer); err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	return answer
}

// streamEvent is one event of /api/v1/events.
type streamEvent struct {
	Type string
	Node string // of another node; "" is this one
	Data object
}

// eventReader reads the events of a server, which include those of other nodes.
type eventReader struct {
	t      *testing.T
	events *sse.Reader
	last   map[string]object // by type
	counts map[string]int    // by node, type and subject
}

func readEvents(t *testing.T, url, query string) *eventReader {
	t.Helper()
	answer := httpjsontest.Open(t, http.MethodGet, url+"/api/v1/events"+query, "")
	return &eventReader{t, sse.NewReader(answer.Body, 0), map[string]object{}, map[string]int{}}
}

// next reads one event.
func (r *eventReader) next() (e streamEvent) {
	r.t.Helper()
	raw, err := r.events.Next()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal(raw.Data, &e); err != nil {
		r.t.Fatal(err)
	}
	if e.Data == nil {
		e.Data = object{}
	}
	r.last[e.Type] = e.Data
	subject := ""
	for _, field := range []string{"id", "job_id", "session", "name", "tool", "upstream"} {
		subject += e.Data.text(field) + " "
	}
	r.counts[e.Node+" "+e.Type+" "+subject]++
	return e
}

// until reads until it has read an event of each type.
func (r *eventReader) until(types ...string) {
	r.t.Helper()
	for _, kind := range types {
		for r.last[kind] == nil {
			r.next()
		}
	}
}

// untilOf reads until it reads an event of a node.
func (r *eventReader) untilOf(node, kind string) {
	r.t.Helper()
	for e := r.next(); e.Node != node || e.Type != kind; e = r.next() {
	}
}
