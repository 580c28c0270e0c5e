package main

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/store/db"
)

// editUpstreams adds an upstream on one node, then uses and changes it on the other.
func (o *twoNodes) editUpstreams(url string) {
	o.Helper()
	o.until("the server starts", func() bool {
		_, err := o.try(o.a, "", "upstream", "add", "everything", url)
		return err == nil
	})
	o.until("the other node has it", func() bool { return strings.Contains(o.run(o.b, "upstream", "list"), "everything  connected") })
	if out := o.run(o.b, "call", "everything.echo", "message=hello"); !strings.Contains(out, "Echo: hello") {
		o.Errorf("called on the other node: %s", out)
	}
	o.run(o.b, "upstream", "edit", "everything", "--expose", "echo")
	o.until("the first node exposes the tool", func() bool {
		var answer json.RawMessage
		err := (&crashServer{url: "http://" + o.a.address}).call("everything__echo", map[string]any{"message": "x"}, &answer)
		return err == nil || strings.Contains(err.Error(), "unexpected end of JSON") // it has no structured content
	})
}

func (o *twoNodes) removeUpstream() {
	o.Helper()
	o.run(o.a, "upstream", "remove", "everything")
	o.until("the other node has removed it", func() bool { return strings.Contains(o.run(o.b, "upstream", "list"), "no upstreams") })
}

// asksBack are the parameters of a call that asks its caller.
const asksBack = `"name":"trigger-elicitation-request","arguments":{}`

// begin starts an MCP session on one node, and returns clients of it on both.
func (o *twoNodes) begin() (here, there *sessionClient) {
	o.Helper()
	here = &sessionClient{at: o.a, path: "/mcp/everything", caps: `{"elicitation":{}}`}
	if err := here.begin(o.Context()); err != nil {
		o.Fatal(err)
	}
	there = &sessionClient{at: o.b, path: here.path, caps: here.caps, id: here.id}
	return here, there
}

// answerElsewhere answers the question of a call on the other node.
func (o *twoNodes) answerElsewhere() {
	o.Helper()
	here, there := o.begin()
	in := o.stream(here, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+asksBack+`}}`)
	asked, err := wire.Parse([]byte(o.waitEvent(in, "elicitation/create")))
	if err != nil {
		o.Fatal(err)
	}
	o.postNotification(there, `{"jsonrpc":"2.0","id":`+string(asked.ID)+`,"result":{"action":"accept","content":{"name":"Ann","check":true}}}`)
	if response := o.waitEvent(in, `"id":2`); !strings.Contains(response, "Name: Ann") {
		o.Errorf("the call ended with %s", response)
	}
}

// answerElsewhereModern does the same with the stateless protocol.
func (o *twoNodes) answerElsewhereModern() {
	o.Helper()
	call := func(at *clusterNode, more string) json.RawMessage {
		o.Helper()
		r, err := http.NewRequestWithContext(o.Context(), http.MethodPost, "http://"+at.address+"/mcp/everything", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+asksBack+more+
				`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`))
		if err != nil {
			o.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			wire.HeaderRevision: {"2026-07-28"}, wire.HeaderMethod: {wire.MethodToolsCall}, wire.HeaderName: {"trigger-elicitation-request"}}
		answer, err := httpjsontest.Client.Do(r)
		if err != nil {
			o.Fatal(err)
		}
		raw, err := result(answer)
		if err != nil {
			o.Fatal(err)
		}
		return raw
	}
	var asked struct {
		RequestState  string
		InputRequests map[string]json.RawMessage
	}
	if err := json.Unmarshal(call(o.a, ""), &asked); err != nil || len(asked.InputRequests) != 1 {
		o.Fatalf("questions %+v: %v", asked, err)
	}
	for name := range asked.InputRequests {
		raw := call(o.b, `,"requestState":"`+asked.RequestState+`","inputResponses":{"`+name+`":{"action":"accept","content":{"name":"Bob","check":true}}}`)
		if !strings.Contains(string(raw), "Name: Bob") {
			o.Errorf("the call ended with %s", raw)
		}
	}
}

// cancelElsewhere cancels a call through the other node.
func (o *twoNodes) cancelElsewhere() {
	o.Helper()
	here, there := o.begin()
	in := o.stream(here, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"trigger-long-running-operation","arguments":{"duration":600,"steps":6000},"_meta":{"progressToken":"p"}}}`)
	o.waitEvent(in, "notifications/progress")
	o.postNotification(there, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	if response := o.waitEvent(in, `"id":3`); !strings.Contains(response, "cancelled by the client") {
		o.Errorf("the call ended with %s", response)
	}
}

// watchAndPublish reads events on one node while a script is published on the other, and
// calls the script on the first.
func (o *twoNodes) watchAndPublish() {
	o.Helper()
	client := &sessionClient{at: o.a}
	if err := client.begin(o.Context()); err != nil {
		o.Fatal(err)
	}
	events, notifications := o.open(o.a, "/api/v1/events?types=script.*", ""), o.open(o.a, "/mcp", client.id)
	hash := o.store(o.b, "hello.lua", `function describe() return { name = "hello", description = "Greets." } end
function main() return "hello from a script" end`)
	o.run(o.b, "script", "publish", hash)
	o.waitEvent(notifications, "notifications/tools/list_changed")
	if event := o.waitEvent(events, `"hello"`); !strings.Contains(event, `"node":"bob"`) {
		o.Errorf("the event does not name the node: %s", event)
	}
	if out := o.run(o.a, "call", "hello"); !strings.Contains(out, "hello from a script") {
		o.Errorf("called on the other node: %s", out)
	}
}

// postElsewhere opens an HTTP+SSE stream on one node and posts to the other.
func (o *twoNodes) postElsewhere() {
	o.Helper()
	in := o.open(o.a, "/mcp/sse", "")
	first, err := in.Next()
	if err != nil {
		o.Fatal(err)
	}
	there := &sessionClient{at: o.b, path: string(first.Data)}
	o.postNotification(there, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`)
	o.waitEvent(in, `"id":1`)
	o.postNotification(there, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello","arguments":{}}}`)
	if response := o.waitEvent(in, `"id":2`); !strings.Contains(response, "hello from a script") {
		o.Errorf("the call ended with %s", response)
	}
}

// continueSession continues a session on the other node, with its variables.
func (o *twoNodes) continueSession() {
	o.Helper()
	out, err := o.try(o.a, "x = 41\n", "repl")
	_, rest, stored := strings.Cut(out, "--session ")
	if err != nil || !stored {
		o.Fatalf("%s: %v", out, err)
	}
	id, _, _ := strings.Cut(rest, " ")
	if out, err = o.try(o.b, "return x + 1\n", "repl", "--session", strings.Trim(id, "`")); err != nil || !strings.HasPrefix(out, "42\n") {
		o.Errorf("on the other node: %s, %v", out, err)
	}
}

// killANode starts a job on a node and kills the node: the other continues the job.
func (o *twoNodes) killANode() {
	o.Helper()
	hash := o.store(o.a, "slow.lua", `function main()
  mcp.everything.echo { message = "started" }
  for step = 1, 20 do clock.sleep(100) end
  return mcp.everything.echo { message = "done" }
end`)
	events := o.open(o.a, "/api/v1/events?types=tool.call_ended", "")
	var started struct {
		ID string `json:"job_id"`
	}
	if err := json.Unmarshal([]byte(o.run(o.a, "job", "start", hash, "--json")), &started); err != nil {
		o.Fatal(err)
	}
	o.waitEvent(events, `"echo"`)
	o.a.kill()
	o.awaitNodes("bob up")
	var polled struct{ Completed []crashJob }
	o.until("the job ends", func() bool {
		err := json.Unmarshal([]byte(o.run(o.b, "job", "poll", started.ID, "--json")), &polled)
		return err == nil && len(polled.Completed) == 1
	})
	if j := polled.Completed[0]; j.Status != "complete" || !strings.Contains(string(j.Result), "done") {
		o.Errorf("the job ended %s with %s %+v", j.Status, j.Result, j.Error)
	}
	o.start(o.T, o.a)
	o.awaitNodes("ann up", "bob up")
}

// revokeAKey creates keys on one node, uses them on the other, and revokes them.
func (o *twoNodes) revokeAKey() {
	o.Helper()
	token := func(name, scope string) string {
		out := o.run(o.a, "key", "create", name, "--scope", scope)
		at := strings.Index(out, "lnt_")
		if at < 0 {
			o.Fatalf("no token: %s", out)
		}
		return strings.Fields(out[at:])[0]
	}
	admin := token("admin", "admin")
	o.key = admin
	reader := token("reader", "read")
	status := func(key string) (status int) {
		o.key = key
		defer func() { o.key = admin }()
		o.get(o.b, "/api/v1/nodes", func(r *http.Response) { status = r.StatusCode })
		return status
	}
	o.until("the other node knows the key", func() bool { return status(reader) == http.StatusOK })
	o.run(o.a, "key", "revoke", "reader")
	o.until("the other node refuses the key", func() bool { return status(reader) != http.StatusOK })
}

// tamper changes the time of an audit entry in the database. Verification on the other
// node must detect it.
func (o *twoNodes) tamper(store *db.DB) {
	o.Helper()
	if out := o.run(o.a, "audit", "verify"); !strings.Contains(out, "ann: ") || !strings.Contains(out, "bob: ") {
		o.Errorf("chains: %s", out)
	}
	err := store.Write(o.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(o.Context(), `UPDATE audit_log SET entry = replace(entry, '"seq":2,"at":"20', '"seq":2,"at":"19') WHERE node = 'bob' AND seq = 2`)
		return err
	})
	if err != nil {
		o.Fatal(err)
	}
	if out, err := o.try(o.a, "", "audit", "verify"); err == nil || !strings.Contains(out, "bob") || !strings.Contains(out, "entry 2 was changed") {
		o.Errorf("after the change: %s, %v", out, err)
	}
}
