package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// keyClient sends requests with a key.
type keyClient struct {
	t          *testing.T
	url, token string
}

// rpc sends one request of the stateless protocol and returns the status and the body.
func (v keyClient) rpc(path, method, params string, headers ...string) (int, string) {
	v.t.Helper()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
	if params != "" {
		meta += ","
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + meta + params + `}}`
	subject := strings.TrimSuffix(strings.TrimPrefix(params, `"uri":"`), `"`)
	if method == "tools/call" || method == "prompts/get" {
		var p struct{ Name string }
		if err := json.Unmarshal([]byte("{"+params+"}"), &p); err != nil {
			v.t.Fatal(err)
		}
		subject = p.Name
	}
	name, value := httpjsontest.Bearer(v.token)
	answer, text := httpjsontest.Read(v.t, http.MethodPost, v.url+path, body, append(headers, name, value, "Accept", "application/json, text/event-stream",
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", subject)...)
	return answer.StatusCode, text
}

func (v keyClient) call(name, args string) string {
	v.t.Helper()
	_, text := v.rpc("/mcp", "tools/call", `"name":"`+name+`","arguments":`+args)
	return text
}

// TestKeyNamespaces checks that a key with namespaces lists, finds, describes and calls only
// their tools, also from scripts and jobs.
func TestKeyNamespaces(t *testing.T) {
	t.Parallel()
	one, two := serveTools(t, "one", echoTool{}), serveTools(t, "two", echoTool{})
	file := configtest.WriteFile(t, `
[mcp]
menu = "full"
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
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	srv.catalog.Refresh(t.Context())
	root, small, other := keyClient{t, url, "root-token"}, keyClient{t, url, "small-token"}, keyClient{t, url, "other-token"}

	has := func(what, text, want string) {
		t.Helper()
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s is missing in %.400s", what, want, text)
		}
	}
	hasNot := func(what, text, unwanted string) {
		t.Helper()
		if strings.Contains(text, unwanted) {
			at := strings.Index(text, unwanted)
			t.Errorf("%s: %s must not be in …%.400s", what, unwanted, text[max(0, at-200):])
		}
	}
	_, all := root.rpc("/mcp", "tools/list", "")
	has("root lists", all, "two__echo")
	has("root lists", all, "mcp_connect")
	_, list := small.rpc("/mcp", "tools/list", "")
	has("small lists", list, "one__echo")
	hasNot("small lists", list, "two__echo")
	hasNot("small lists", list, "mcp_connect")
	hasNot("small lists", list, "approval_decide")

	has("tool of its namespace", small.call("one__echo", `{"text":"hello"}`), "hello")
	hasNot("tool of another namespace", small.call("two__echo", `{"text":"leaked"}`), `"leaked"`)
	hasNot("search", small.call("search_tools", `{"query":"echo"}`), "two.echo")
	has("search of root", root.call("search_tools", `{"query":"echo"}`), "two.echo")
	hasNot("definitions", small.call("get_tool_definitions", `{"tools":["two.echo"]}`), "Returns its argument")
	hasNot("call_tool", small.call("call_tool", `{"name":"two.echo","arguments":{"text":"leaked"}}`), `"leaked"`)
	hasNot("status", small.call("mcp_list_upstreams", `{}`), two)
	hasNot("one status", small.call("mcp_status", `{"namespace":"two"}`), two)

	has("script", small.call("lua_eval", `{"code":"return mcp.one.echo{text='hello'}"}`), "hello")
	has("script with another namespace", small.call("lua_eval", `{"code":"local ok, e = pcall(function() return mcp.two.echo{text='x'} end) return ok and 'le'..'aked' or 'refused'"}`), "refused")
	has("adding from a script", small.call("lua_eval", `{"code":"local ok, e = pcall(tools.mcp_add, 'three', '`+two+`') return tostring(e)"}`), "administrators")
	hasNot("adding", small.call("mcp_connect", `{"namespace":"three","url":"`+two+`"}`), `"connected"`)

	if status, text := small.rpc("/mcp/two", "tools/list", ""); status != 404 || strings.Contains(text, "two,") {
		t.Errorf("endpoint of another namespace: %d %s", status, text)
	}
	if status, text := small.rpc("/mcp/one", "tools/list", ""); status != 200 || !strings.Contains(text, "echo") {
		t.Errorf("endpoint of its namespace: %d %s", status, text)
	}

	stored := small.call("script_store", `{"content":"function describe() return {name='reach', description='d', params={}} end function main() local ok = pcall(function() return mcp.two.echo{text='x'} end) local fine = mcp.one.echo{text='hello'} return {two = ok, one = fine.Text} end"}`)
	started := small.call("lua_execute", `{"script_hash":"`+structured(t, stored, "hash")+`"}`)
	job := structured(t, started, "job_id")
	done := small.call("job_poll", `{"job_ids":["`+job+`"],"timeout_ms":60000}`)
	has("job", done, `"two":false`)
	has("job", done, `"one":"hello"`)
	has("status for another key", other.call("job_status", `{"job_id":"`+job+`"}`), "no job "+job)
	has("cancel with another key", other.call("job_cancel", `{"job_id":"`+job+`"}`), "no job "+job)
	hasNot("list for another key", other.call("job_list", `{}`), job)
	has("list for its key", small.call("job_list", `{}`), job)
	has("list for root", root.call("job_list", `{}`), job)
}

// TestPinnedUpstreamListsApprovedTools checks that /mcp/NAME lists only approved tools of a
// pinned upstream.
func TestPinnedUpstreamListsApprovedTools(t *testing.T) {
	t.Parallel()
	s := startShops(t, "")
	list := func() string {
		_, text := s.client("some").rpc("/mcp/pinned", "tools/list", "")
		return text
	}
	if text := list(); strings.Contains(text, `"name":"buy"`) || !strings.Contains(text, `"tools":[`) {
		t.Errorf("before the approval: %s", text)
	}
	if _, _, err := s.srv.pins.ApproveAll(t.Context(), "pinned", "root", true); err != nil {
		t.Fatal(err)
	}
	if text := list(); !strings.Contains(text, `"name":"buy"`) {
		t.Errorf("after the approval: %s", text)
	}
	if pins := s.srv.pins.List("pinned"); len(pins) != 1 || pins[0].Name != "buy" {
		t.Errorf("pins %+v", pins)
	}
}
