package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// tracker is a server that knows people by their tokens: all have the tool whoami, each has
// another file, and one that nobody else has.
type tracker struct{}

func (tracker) Tools(ctx context.Context) ([]tool.Info, error) {
	who := principal.Of(ctx).Name
	info := func(name, text, input string) tool.Info {
		return tool.Info{Ref: tool.Ref{Name: name}, Description: text, Input: json.RawMessage(input)}
	}
	return []tool.Info{
		info("file", "Files something in the cabinet of "+who+".", fmt.Sprintf(`{"type":"object","properties":{"in_%s":{"type":"string"}},"required":["in_%s"],"additionalProperties":false}`, who, who)),
		info("of_"+who, "Opens the safe.", `{"type":"object","properties":{"in_`+who+`":{}}}`),
		info("whoami", "Tells who you are.", `{"type":"object"}`),
	}, nil
}

func (tracker) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	who := principal.Of(ctx).Name
	if call.Ref.Name == "of_"+who || !strings.HasPrefix(call.Ref.Name, "of_") {
		return tool.Output(who+" called "+call.Ref.Name+" "+string(call.Args), nil)
	}
	return tool.Failed("there is no " + call.Ref.Name), nil
}

// serveTracker serves the tracker over MCP and returns the URL.
func serveTracker(t *testing.T) string {
	t.Helper()
	h := hub.New(hub.Options{Name: "tracker", Version: "1", Tools: tracker{}, Principal: func(r *http.Request) string { return principal.Of(r.Context()).Name }})
	handler := h.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, known := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer token-of-")
		if !known {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r.WithContext(principal.With(r.Context(), principal.Principal{ID: who, Name: who})))
	}))
	t.Cleanup(func() {
		_ = h.Close(context.WithoutCancel(t.Context()))
		server.Close()
	})
	return server.URL
}

// changesFor opens a session, or a subscription of the stateless era, and returns a function
// that waits until it is notified that its list of tools has changed.
func (v keyClient) changesFor(session bool) (await func()) {
	v.t.Helper()
	name, value := httpjsontest.Bearer(v.token)
	headers := []string{name, value, "Accept", "application/json, text/event-stream", "Content-Type", "application/json"}
	var stream *http.Response
	if session {
		begun, _ := httpjsontest.Read(v.t, http.MethodPost, v.url+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, headers...)
		headers = append(headers, "Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id"))
		httpjsontest.Read(v.t, http.MethodPost, v.url+"/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headers...)
		stream = httpjsontest.Open(v.t, http.MethodGet, v.url+"/mcp", "", headers...)
	} else {
		headers = append(headers, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
		stream = httpjsontest.Open(v.t, http.MethodPost, v.url+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, headers...)
	}
	v.t.Cleanup(func() { stream.Body.Close() })
	lines := bufio.NewScanner(stream.Body)
	read := func(text string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		v.t.Errorf("the stream ended before %s", text)
	}
	if !session {
		read("acknowledged")
	}
	return func() { read("tools/list_changed") }
}

// TestToolsOfPeople checks that each person has the tools of their own account at an upstream,
// as they are defined for them: listed, found, described, checked and called, at /mcp and at
// /mcp/NAME; that nobody sees those of others; and that whoever has other tools than before
// is notified.
func TestToolsOfPeople(t *testing.T) {
	t.Parallel()
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, withPeople+`
[upstreams.tracker]
url = "`+serveTracker(t)+`"
wait = "2m"
expose = "all"
login = "each"
headers = { Authorization = "Bearer ${personal:TOKEN}" }
`)})
	names := []string{"ann", "bob", "eve"}
	clients := map[string]keyClient{}
	for _, name := range names {
		person := newPerson(t, url, srv, name)
		if name != "eve" {
			person.do(http.MethodPut, "/api/v1/me/secrets/TOKEN", `{"value":"token-of-`+name+`"}`, "")
		}
		clients[name] = keyClient{t, url, person.do(http.MethodPost, "/api/v1/me/keys", `{"name":"`+name+`","scopes":["mcp"],"expires":"1d"}`, "token")}
	}
	for _, name := range names[:2] {
		c := clients[name]
		if _, text := c.rpc("/mcp", "tools/list", ""); strings.Contains(text, "tracker__file") {
			t.Errorf("%s sees tools before the first call: %s", name, text)
		}
		notified := []func(){c.changesFor(true), c.changesFor(false)}
		if text := c.call("call_tool", `{"name":"tracker.whoami","arguments":{}}`); !strings.Contains(text, name+" called whoami") {
			t.Fatalf("%s: %s", name, text)
		}
		for _, await := range notified {
			await()
		}
	}
	for _, name := range names[:2] {
		checkOwnTools(t, clients[name], name, names)
	}
	eve := clients["eve"]
	if _, text := eve.rpc("/mcp", "tools/list", ""); !strings.Contains(text, "tracker__whoami") || strings.Contains(text, "tracker__file") || strings.Contains(text, "of_ann") {
		t.Errorf("eve sees %s", text)
	}
	if text := eve.call("tracker__whoami", `{}`); !strings.Contains(text, "needs_auth") {
		t.Errorf("eve: %s", text)
	}
}

// checkOwnTools checks all that a client is shown of the tracker.
func checkOwnTools(t *testing.T, c keyClient, name string, names []string) {
	t.Helper()
	only := func(what, text string) {
		t.Helper()
		for _, other := range names {
			if strings.Contains(text, "in_"+other) != (other == name) {
				t.Errorf("%s, %s: %s", name, what, text)
			}
		}
	}
	_, text := c.rpc("/mcp", "tools/list", "")
	if only("tools/list", text); !strings.Contains(text, `"tracker__file"`) || !strings.Contains(text, `"tracker__of_`+name+`"`) || !strings.Contains(text, `"tracker__whoami"`) {
		t.Errorf("%s sees %s", name, text)
	}
	_, text = c.rpc("/mcp/tracker", "tools/list", "")
	only("the list of /mcp/tracker", text)
	only("definitions", c.call("get_tool_definitions", `{"names":["tracker.file"]}`))
	only("search", c.call("search_tools", `{"query":"file in the cabinet"}`))
	only("wrong arguments", c.call("tracker__file", `{"x":1}`))
	only("right arguments", c.call("tracker__file", `{"in_`+name+`":"x"}`))
	if text = c.call("lua_eval", `{"code":"return mcp.tracker.file{in_`+name+`='x'}"}`); !strings.Contains(text, name+" called file") {
		t.Errorf("%s in a script: %s", name, text)
	}
	for _, other := range names {
		text := c.call("get_tool_definitions", `{"names":["tracker.of_`+other+`"]}`)
		if strings.Contains(text, "Opens the safe") != (other == name) {
			t.Errorf("%s asks for the definition of of_%s: %s", name, other, text)
		}
		if text := c.call("call_tool", `{"name":"tracker.of_`+other+`","arguments":{"in_`+other+`":1}}`); strings.Contains(text, name+" called of_") != (other == name) {
			t.Errorf("%s calls of_%s: %s", name, other, text)
		}
	}
}
