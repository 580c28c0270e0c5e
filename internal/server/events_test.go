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

// Whoever watches hears of everything that happens: each of these is brought
// about on a real server and read from its stream.
func TestEveryKindOfEventIsRelayed(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(http.NotFoundHandler()) // a turn that fails is a turn
	t.Cleanup(model.Close)
	behind, _ := start(t, config.Sources{})
	front, _ := start(t, config.Sources{
		File: configtest.WriteFile(t, "[upstreams.far]\nurl = \""+behind+"/mcp\"\n[approvals]\n\"far.script_store\" = \"writes\"\n"),
		Env:  config.Environment{"LUANETTE_CHAT_BASE_URL": model.URL, "ANTHROPIC_API_KEY": "sk-test"},
	})
	heard := listenTo(t, front)
	there, here := toolClient{t, connectPeer(t, behind)}, toolClient{t, connectPeer(t, front)}

	heard.until("upstream.connecting", "upstream.connected", "log.line", "catalog.changed")
	here.call("call_tool", `{"name": "far.job_stats", "arguments": {}}`)
	heard.until("tool.call_started", "tool.call_ended")
	published := there.call("script_store", `{"content": "function describe() return {name = 'greet', description = 'Greets.'} end function main() return 'hi' end"}`)
	there.call("script_publish", `{"script_hash": "`+published.text("hash")+`"}`)
	heard.until("upstream.tools_refreshed")

	here.call("mcp_connect", `{"namespace": "gone", "url": "http://127.0.0.1:1/mcp", "wait_ms": 0}`)
	heard.until("upstream.reconnecting")
	here.call("mcp_disconnect", `{"namespace": "gone"}`)
	heard.until("upstream.removed")

	script := here.call("script_store", `{"content": "function describe() return {name = 'keep', description = 'Keeps.'} end function main() progress(0.5, 'half') return mcp.far.script_store{content = 'return 1'}.hash end"}`)
	heard.until("artifact.created")
	here.call("script_publish", `{"script_hash": "`+script.text("hash")+`"}`)
	heard.until("script.published")
	here.call("lua_execute", `{"script_hash": "`+script.text("hash")+`"}`)
	heard.until("job.submitted", "job.started", "job.progress", "job.paused", "approval.requested")
	here.call("approval_decide", `{"id": "`+heard.last["approval.requested"].text("approval_id")+`", "decision": "allow"}`)
	heard.until("approval.settled", "job.finished")

	session := here.call("session_create", `{}`).text("session_id")
	here.call("lua_eval", `{"session_id": "`+session+`", "code": "x = 1"}`)
	here.call("session_fork", `{"session_id": "`+session+`"}`)
	here.call("session_reset", `{"session_id": "`+session+`"}`)
	here.call("session_close", `{"session_id": "`+session+`"}`)
	heard.until("session.created", "session.used", "session.forked", "session.reset", "session.closed")
	if told := heard.last["session.used"].text("session"); !strings.HasPrefix(session, told) || len(told) > len(session)/2 {
		t.Errorf("%q is told of the session %q, which gives it away or means another", told, session)
	}

	httpjsontest.Read(t, http.MethodPost, front+"/api/v1/chat", `{"client_id": "c", "user_id": "u", "message": "hello"}`)
	heard.until("chat.turn_started", "chat.turn_finished")
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
	raw, err := c.peer.Call(c.t.Context(), tool.Call{Ref: tool.Ref{Name: name}, Args: json.RawMessage(args), Meta: meta}, params)
	if err != nil {
		c.t.Fatalf("%s %s: %v", name, args, err)
	}
	view, err := tool.Result{Raw: raw}.View()
	if err != nil || view.IsError {
		c.t.Fatalf("%s %s: %v %s", name, args, err, view.Text())
	}
	if err := json.Unmarshal(view.Value(), &answer); err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	return answer
}

// listener reads a server's stream of events.
type listener struct {
	t      *testing.T
	events *sse.Reader
	last   map[string]object // by type
}

func listenTo(t *testing.T, url string) *listener {
	t.Helper()
	answer := httpjsontest.Open(t, http.MethodGet, url+"/api/v1/events?after=all", "")
	return &listener{t, sse.NewReader(answer.Body, 0), map[string]object{}}
}

// until reads on until there was an event of each of these types.
func (l *listener) until(types ...string) {
	l.t.Helper()
	for _, kind := range types {
		for l.last[kind] == nil {
			e, err := l.events.Next()
			if err != nil {
				l.t.Fatalf("no %s: %v", kind, err)
			}
			var told struct {
				Type string
				Data object
			}
			if err := json.Unmarshal(e.Data, &told); err != nil {
				l.t.Fatal(err)
			}
			if told.Data == nil {
				told.Data = object{}
			}
			l.last[told.Type] = told.Data
		}
	}
}
