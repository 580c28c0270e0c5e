package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// askingTool is a tool that asks its caller for a name.
type askingTool struct{}

func (askingTool) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Name: "greet"}, Input: []byte(`{"type":"object"}`)}}, nil
}

func (askingTool) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	answers, err := call.Caller.Ask(ctx, []tool.Question{{Key: "name", Method: wire.MethodElicit,
		Params: []byte(`{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`)}})
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Output("hello "+string(answers[0]), nil)
}

// TestAnswersReachTheAskingNode checks that a client can answer a question of one node on
// another node.
func TestAnswersReachTheAskingNode(t *testing.T) {
	t.Parallel()
	database := tables.Postgres(t)
	text := "[upstreams.asking]\nurl = \"" + serveTools(t, "asking", askingTool{}) + "/mcp\"\n"
	a, b := startNode(t, database, "a", text), startNode(t, database, "b", text)
	a.await("asking", "connected")
	b.await("asking", "connected")
	greet := func(url, more string) string {
		t.Helper()
		_, text := httpjsontest.Read(t, http.MethodPost, url+"/mcp/asking",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{}`+more+
				`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`,
			"Accept", "application/json, text/event-stream", wire.HeaderRevision, "2026-07-28", wire.HeaderMethod, wire.MethodToolsCall, wire.HeaderName, "greet")
		return text
	}
	asked := greet(a.url, "")
	m, err := wire.Parse([]byte(asked))
	if err != nil {
		t.Fatalf("%s: %v", asked, err)
	}
	state, ok := rawjson.GetText(m.Result, "requestState")
	if !ok {
		t.Fatalf("no question: %s", asked)
	}
	key := "" // the question of a server with sessions has none of its own
	questions, _ := rawjson.Get(m.Result, "inputRequests")
	rawjson.Each(questions, func(name string, _ json.RawMessage) bool { key = name; return false })
	answered := `,"requestState":"` + state + `","inputResponses":{"` + key + `":{"action":"accept","content":{"name":"Ann"}}}`
	if text := greet(b.url, answered); !strings.Contains(text, "hello") || !strings.Contains(text, "Ann") {
		t.Errorf("answered on the other node: %s", text)
	}
	if text := greet(b.url, answered); !strings.Contains(text, "no longer waits") {
		t.Errorf("answered a second time: %s", text)
	}
}

// TestPostsToAnotherNode checks that a message posted to one node for an HTTP+SSE stream on
// another runs there with the rights of the key that posted it, and that other keys cannot
// use the stream.
func TestPostsToAnotherNode(t *testing.T) {
	t.Parallel()
	database := tables.Postgres(t)
	a, b := startNode(t, database, "a", ""), startNode(t, database, "b", "")
	boss := a.api(http.StatusCreated, "POST", "/keys", `{"name": "boss", "scopes": ["admin"]}`).text("token")
	ask := func(token, method, url, body string) *http.Response {
		t.Helper()
		return httpjsontest.Open(t, method, url, body, "Authorization", "Bearer "+token)
	}
	var made struct{ Token string }
	answer := ask(boss, http.MethodPost, a.url+"/api/v1/keys", `{"name": "narrow", "scopes": ["mcp"], "tools": ["lua_help"]}`)
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil || made.Token == "" {
		t.Fatalf("%s: %v", answer.Status, err)
	}
	stream := ask(made.Token, http.MethodGet, a.url+"/mcp/sse", "")
	events := sse.NewReader(stream.Body, 0)
	first, err := events.Next()
	if err != nil {
		t.Fatal(err)
	}
	clocktest.Await(t, func() bool { return b.status(boss) == http.StatusOK }, func() string { return "node b does not know the keys" })
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	if answer := ask(boss, http.MethodPost, b.url+string(first.Data), list); answer.StatusCode != http.StatusNotFound {
		t.Errorf("another key: %s", answer.Status)
	}
	var response sse.Event
	for _, body := range []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, list} {
		if answer := ask(made.Token, http.MethodPost, b.url+string(first.Data), body); answer.StatusCode != http.StatusAccepted {
			t.Errorf("%s: %s", body, answer.Status)
		}
		if response, err = events.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(string(response.Data), `"lua_help"`) || strings.Contains(string(response.Data), `"lua_eval"`) {
		t.Errorf("listed %s, want only lua_help", response.Data)
	}
}

// TestSessionOnTwoNodes checks that a client with a session can answer a question and cancel
// a call on a node other than that of the call.
func TestSessionOnTwoNodes(t *testing.T) {
	t.Parallel()
	database := tables.Postgres(t)
	text := "[upstreams.asking]\nurl = \"" + serveTools(t, "asking", askingTool{}) + "/mcp\"\n"
	a, b := startNode(t, database, "a", text), startNode(t, database, "b", text)
	a.await("asking", "connected")
	b.await("asking", "connected")
	session := ""
	post := func(at testNode, status int, body string) *http.Response {
		t.Helper()
		answer := httpjsontest.Open(t, http.MethodPost, at.url+"/mcp/asking", body, "Accept", "application/json, text/event-stream", "Mcp-Session-Id", session)
		if answer.StatusCode != status {
			t.Fatalf("%s: %s", body, answer.Status)
		}
		return answer
	}
	next := func(in *sse.Reader, text string) []byte {
		t.Helper()
		for {
			e, err := in.Next()
			if err != nil {
				t.Fatalf("no event contains %s: %v", text, err)
			}
			if strings.Contains(string(e.Data), text) {
				return e.Data
			}
		}
	}
	session = post(a, http.StatusOK, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`).Header.Get("Mcp-Session-Id")
	post(a, http.StatusAccepted, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for id, reply := range map[string]struct{ body, ends string }{
		`"answered"`:  {`"id":%s,"result":{"action":"accept","content":{"name":"Ann"}}`, "Ann"},
		`"cancelled"`: {`"method":"notifications/cancelled","params":{"requestId":"cancelled"}`, "cancelled by the client"},
	} {
		in := sse.NewReader(post(a, http.StatusOK, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"greet","arguments":{}}}`).Body, 0)
		asked, _ := rawjson.Get(next(in, wire.MethodElicit), "id")
		post(b, http.StatusAccepted, `{"jsonrpc":"2.0",`+strings.ReplaceAll(reply.body, "%s", string(asked))+`}`)
		if response := next(in, `"id":`+id); !strings.Contains(string(response), reply.ends) {
			t.Errorf("%s call: %s", id, response)
		}
	}
}
