package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// stranger is a server with one tool, echo, that notes what it was sent.
func stranger(t *testing.T, seen func(*http.Request)) string {
	t.Helper()
	h := hub.New(hub.Options{Name: "stranger", Version: "1", Tools: echoTool{}})
	handler := h.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen != nil {
			seen(r)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		_ = h.Close(t.Context())
		server.Close()
	})
	return server.URL
}

// keyClient is a client with a key, over plain HTTP.
type keyClient struct {
	t          *testing.T
	url, token string
}

// rpc asks one question of the modern era and returns the whole answer.
func (v keyClient) rpc(path, method, params string) (int, string) {
	v.t.Helper()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
	if params != "" {
		meta += ","
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + meta + params + `}}`
	about := strings.TrimSuffix(strings.TrimPrefix(params, `"uri":"`), `"`)
	if method == "tools/call" {
		var p struct{ Name string }
		if err := json.Unmarshal([]byte("{"+params+"}"), &p); err != nil {
			v.t.Fatal(err)
		}
		about = p.Name
	}
	name, value := httpjsontest.Bearer(v.token)
	answer, text := httpjsontest.Read(v.t, http.MethodPost, v.url+path, body, name, value, "Accept", "application/json, text/event-stream",
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", about)
	return answer.StatusCode, text
}

func (v keyClient) call(name, args string) string {
	v.t.Helper()
	_, text := v.rpc("/mcp", "tools/call", `"name":"`+name+`","arguments":`+args)
	return text
}

// What a key is narrowed to is all there is for it: listed, searched, described and
// called, from outside, from scripts and from jobs.
func TestKeysAreNarrowed(t *testing.T) {
	t.Parallel()
	one, two := stranger(t, nil), stranger(t, nil)
	file := configtest.WriteFile(t, `
[mcp]
mode = "direct"
[upstreams.one]
url = "`+one+`"
expose = "all"
[upstreams.two]
url = "`+two+`"
expose = "all"
[keys.root]
env = "ROOT"
scopes = ["admin"]
[keys.small]
env = "SMALL"
scopes = ["mcp", "chat"]
namespaces = ["one"]
[keys.other]
env = "OTHER"
scopes = ["mcp"]
`)
	url, srv := start(t, config.Sources{File: file, Env: config.Environment{"ROOT": "root-token", "SMALL": "small-token", "OTHER": "other-token"}})
	srv.upstreams.AwaitAttempts(t.Context(), upstreamWait)
	srv.catalog.Refresh(t.Context())
	root, small, other := keyClient{t, url, "root-token"}, keyClient{t, url, "small-token"}, keyClient{t, url, "other-token"}

	check := func(what, text, want string) {
		t.Helper()
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %s in %.400s", what, want, text)
		}
	}
	never := func(what, text, unwanted string) {
		t.Helper()
		if strings.Contains(text, unwanted) {
			t.Errorf("%s: %s in %.400s", what, unwanted, text)
		}
	}
	_, all := root.rpc("/mcp", "tools/list", "")
	check("root lists", all, "two__echo")
	check("root lists", all, "mcp_connect")
	_, list := small.rpc("/mcp", "tools/list", "")
	check("small lists", list, "one__echo")
	never("small lists", list, "two__echo")
	never("small lists", list, "mcp_connect")
	never("small lists", list, "approval_decide")

	check("its own", small.call("one__echo", `{"text":"hello"}`), "hello")
	never("another's", small.call("two__echo", `{"text":"leaked"}`), `"leaked"`)
	never("search", small.call("search_tools", `{"query":"echo"}`), "two.echo")
	check("search of root", root.call("search_tools", `{"query":"echo"}`), "two.echo")
	never("definitions", small.call("get_tool_definitions", `{"tools":["two.echo"]}`), "Says it again")
	never("call_tool", small.call("call_tool", `{"name":"two.echo","arguments":{"text":"leaked"}}`), `"leaked"`)
	never("status", small.call("mcp_list_upstreams", `{}`), two)
	never("one status", small.call("mcp_status", `{"namespace":"two"}`), two)

	check("a script", small.call("lua_eval", `{"code":"return mcp.one.echo{text='hello'}"}`), "hello")
	check("a script of another's", small.call("lua_eval", `{"code":"local ok, e = pcall(function() return mcp.two.echo{text='x'} end) return ok and 'le'..'aked' or 'refused'"}`), "refused")
	check("adding from a script", small.call("lua_eval", `{"code":"local ok, e = pcall(tools.mcp_add, 'three', '`+two+`') return tostring(e)"}`), "administrators")
	never("adding", small.call("mcp_connect", `{"namespace":"three","url":"`+two+`"}`), `"connected"`)

	if status, text := small.rpc("/mcp/two", "tools/list", ""); status != 404 || strings.Contains(text, "two,") {
		t.Errorf("the other server seen whole: %d %s", status, text)
	}
	if status, text := small.rpc("/mcp/one", "tools/list", ""); status != 200 || !strings.Contains(text, "echo") {
		t.Errorf("its own seen whole: %d %s", status, text)
	}

	stored := small.call("script_store", `{"content":"function describe() return {name='reach', description='d', params={}} end function main() local ok = pcall(function() return mcp.two.echo{text='x'} end) local fine = mcp.one.echo{text='hello'} return {two = ok, one = fine.Text} end"}`)
	var kept struct {
		Result struct {
			Structured struct {
				Hash string `json:"hash"`
			} `json:"structuredContent"`
		}
	}
	if err := json.Unmarshal([]byte(stored), &kept); err != nil || kept.Result.Structured.Hash == "" {
		t.Fatalf("%v: %s", err, stored)
	}
	started := small.call("lua_execute", `{"script_hash":"`+kept.Result.Structured.Hash+`"}`)
	var begun struct {
		Result struct {
			Structured struct {
				Job string `json:"job_id"`
			} `json:"structuredContent"`
		}
	}
	if err := json.Unmarshal([]byte(started), &begun); err != nil || begun.Result.Structured.Job == "" {
		t.Fatalf("%v: %s", err, started)
	}
	job := begun.Result.Structured.Job
	done := small.call("job_poll", `{"job_ids":["`+job+`"],"timeout_ms":60000}`)
	check("the job", done, `"two":false`)
	check("the job", done, `"one":"hello"`)
	check("another's job", other.call("job_status", `{"job_id":"`+job+`"}`), "no job "+job)
	check("another's cancel", other.call("job_cancel", `{"job_id":"`+job+`"}`), "no job "+job)
	never("another's list", other.call("job_list", `{}`), job)
	check("its own list", small.call("job_list", `{}`), job)
	check("root's list", root.call("job_list", `{}`), job)
}

// At /mcp/NAME a pinned upstream shows the tools that are approved, and no others.
func TestPinnedUpstreamListsApprovedTools(t *testing.T) {
	t.Parallel()
	s := startShops(t, "")
	list := func() string {
		_, text := s.client("some").rpc("/mcp/held", "tools/list", "")
		return text
	}
	if text := list(); strings.Contains(text, `"name":"buy"`) || !strings.Contains(text, `"tools":[`) {
		t.Errorf("before the approval: %s", text)
	}
	if _, _, err := (pinAPI{s.srv}).ApproveAll(t.Context(), "held", "root", true); err != nil {
		t.Fatal(err)
	}
	if text := list(); !strings.Contains(text, `"name":"buy"`) {
		t.Errorf("after the approval: %s", text)
	}
	if pins := s.srv.pins.List("held"); len(pins) != 1 || pins[0].Name != "buy" {
		t.Errorf("pins %+v", pins)
	}
}
