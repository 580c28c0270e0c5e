package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// taskClient is a client without sessions that supports tasks.
type taskClient struct {
	t    *testing.T
	caps string // further capabilities
	key  string
	path string // of the endpoint; "" is /mcp
}

// ask sends a request and returns the result. about is the tool or the task.
func (c taskClient) ask(url, method, about, params string) json.RawMessage {
	c.t.Helper()
	name, value := httpjsontest.Bearer(c.key)
	_, text := httpjsontest.Read(c.t, http.MethodPost, url+cmp.Or(c.path, "/mcp"), `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{`+c.caps+`"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`,
		name, value, "Accept", "application/json", wire.HeaderRevision, "2026-07-28", wire.HeaderMethod, method, wire.HeaderName, about)
	m, err := wire.Parse([]byte(text))
	if err != nil || m.Error != nil {
		c.t.Fatalf("%s %s: %s", method, params, text)
	}
	return m.Result
}

// start calls a tool and returns the task that it is answered with.
func (c taskClient) start(url, name, args string) string {
	c.t.Helper()
	result := c.ask(url, wire.MethodToolsCall, name, `"name":"`+name+`","arguments":`+args)
	id, _ := rawjson.GetText(result, "taskId")
	if kind, _ := rawjson.GetText(result, "resultType"); kind != wire.ResultTask || id == "" {
		c.t.Fatalf("%s answered %s", name, result)
	}
	return id
}

// await reads a task until it has a status.
func (c taskClient) await(url, id, status string) (task json.RawMessage) {
	c.t.Helper()
	clocktest.Await(c.t, func() bool {
		task = c.ask(url, wire.MethodTasksGet, id, `"taskId":"`+id+`"`)
		now, _ := rawjson.GetText(task, "status")
		return now == status
	}, func() string { return "task " + id + " is not " + status + ": " + string(task) })
	return task
}

// storeScript stores a script and returns its hash.
func storeScript(tools toolClient, source string) string {
	raw, _ := json.Marshal(map[string]string{"content": source}) // strings always encode
	return tools.call("script_store", string(raw)).text("hash")
}

// TestTasksOfUpstreams checks that a task of an upstream can be read and cancelled on any
// node, and that its result is delivered although the node that started it has ended.
func TestTasksOfUpstreams(t *testing.T) {
	t.Parallel()
	behind, _ := start(t, config.Sources{})
	tools := toolClient{t, connectPeer(t, behind)}
	quick := storeScript(tools, "function main() return 6 * 7 end")
	endless := storeScript(tools, "function main() clock.sleep(3600000) end")
	database := tables.Postgres(t)
	text := "[upstreams.far]\nurl = \"" + behind + "/mcp\"\n"
	b := startNode(t, database, "b", text)
	b.await("far", "connected")
	c := taskClient{t: t}
	var left string
	t.Run("two nodes", func(t *testing.T) {
		a := startNode(t, database, "a", text)
		a.await("far", "connected")
		id := c.start(a.url, "far__lua_execute", `{"script_hash":"`+quick+`"}`)
		if task := c.await(b.url, id, "completed"); !strings.Contains(string(task), `"result":42`) {
			t.Errorf("the task on another node: %s", task)
		}
		id = c.start(a.url, "far__lua_execute", `{"script_hash":"`+endless+`"}`)
		c.ask(b.url, wire.MethodTasksCancel, id, `"taskId":"`+id+`"`)
		c.await(a.url, id, "cancelled")
		clocktest.Await(t, func() bool { return tools.call("job_stats", `{}`)["cancelled"] == 1.0 }, func() string { return "the upstream does not cancel its task" })
		left = c.start(a.url, "far__lua_execute", `{"script_hash":"`+quick+`","delay_ms":1000}`)
	}) // a ends here
	if task := c.await(b.url, left, "completed"); !strings.Contains(string(task), `"result":42`) {
		t.Errorf("the task of a node that has ended: %s", task)
	}
}

// TestJobAsksForApproval checks that a job that waits for an approval is a task that asks
// for it, of clients that can be asked.
func TestJobAsksForApproval(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	url, _ := start(t, config.Sources{File: configtest.WriteFile(t, "approve = \"writes\"\n[scripts]\nwrite = [\""+folder+"\"]\n")})
	hash := storeScript(toolClient{t, connectPeer(t, url)}, `function main() fs.write("`+folder+`/x", "y") return "written" end`)
	c, silent := taskClient{t: t, caps: `"elicitation":{},`}, taskClient{t: t}
	id := c.start(url, "lua_execute", `{"script_hash":"`+hash+`"}`)
	task := c.await(url, id, "input_required")
	if now := silent.ask(url, wire.MethodTasksGet, id, `"taskId":"`+id+`"`); !strings.Contains(string(now), `"status":"working"`) || strings.Contains(string(now), "inputRequests") {
		t.Errorf("a client that cannot be asked sees %s", now)
	}
	requests, _ := rawjson.Get(task, "inputRequests")
	key := ""
	rawjson.Each(requests, func(k string, request json.RawMessage) bool {
		key = k
		if method, _ := rawjson.GetText(request, "method"); method != wire.MethodElicit || !strings.Contains(string(request), "would write") {
			t.Errorf("it asks %s", request)
		}
		return true
	})
	c.ask(url, wire.MethodTasksUpdate, id, `"taskId":"`+id+`","inputResponses":{"`+key+`":{"action":"cancel"}}`)
	c.await(url, id, "input_required") // that was no decision
	c.ask(url, wire.MethodTasksUpdate, id, `"taskId":"`+id+`","inputResponses":{"`+key+`":{"action":"accept","content":{"decision":"allow"}}}`)
	if task := c.await(url, id, "completed"); !strings.Contains(string(task), "written") {
		t.Errorf("after the approval: %s", task)
	}
}
