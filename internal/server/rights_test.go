package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/audit"
)

// TestDeniedToolsAreHidden checks that tools a key may never call are not shown anywhere,
// and that tools which need an approval are.
func TestDeniedToolsAreHidden(t *testing.T) {
	t.Parallel()
	s := startShops(t, "[[policy]]\ntool = \"serial.*\"\ndo = \"approve\"\n[[policy]]\nkey = \"some\"\ntool = \"limited.*\"\ndo = \"read_only\"\n")
	h, root := s.client("some"), s.client("root")
	read := func(path, method, params string) string {
		_, text := h.rpc(path, method, params)
		return text
	}
	for name, text := range map[string]string{
		"tools/list":         read("/mcp", "tools/list", ""),
		"lua://tools":        read("/mcp", "resources/read", `"uri":"lua://tools"`),
		"search":             h.call("search_tools", `{"query":"sells something","limit":100}`),
		"everything":         h.call("search_tools", `{"query":"","limit":100}`),
		"tools completed":    read("/mcp", "completion/complete", `"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"tool","value":""}`),
		"namespaces in code": s.lua("some", "execute_code", map[string]any{"language": "lua"}, "return mcp.namespaces()"),
		"declarations":       h.call("get_tool_definitions", `{"names":["open.buy","serial.buy","banned.buy","limited.buy"]}`),
		"offered in a chat":  offeredTools(s, "some"),
	} {
		_, definitions, _ := strings.Cut(text, "structuredContent")
		if name == "declarations" {
			text, _, _ = strings.Cut(definitions, `"unknown"`)
		}
		for _, shop := range []string{"open", "serial"} {
			if !strings.Contains(text, shop) {
				t.Errorf("%s: %s is missing in %.600s", name, shop, text)
			}
		}
		for _, shop := range []string{"banned.buy", "banned__buy", "limited.buy", "limited__buy", `"banned"`} {
			if strings.Contains(text, shop) {
				t.Errorf("%s: %s must not be in %.600s", name, shop, text)
			}
		}
	}
	for _, shop := range []string{"banned", "limited"} {
		if text := read("/mcp/"+shop, "tools/list", ""); strings.Contains(text, `"buy"`) {
			t.Errorf("/mcp/%s lists %s", shop, text)
		}
	}
	if _, text := root.rpc("/mcp", "tools/list", ""); !strings.Contains(text, "limited__buy") || strings.Contains(text, "banned__buy") {
		t.Errorf("listed for root: %.600s", text)
	}
}

// offeredTools returns the tools and the system prompt that a key's chat sends to the model.
func offeredTools(s *shopServer, key string) string {
	s.chat(key, "reader", "nothing")
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offered
}

// makeKey creates a key and returns a function that revokes it.
func (s *shopServer) makeKey(name string) (token string, revoke func()) {
	s.t.Helper()
	_, token, err := s.srv.keys.Create(s.t.Context(), apikey.Key{Name: name, Rights: apikey.Rights{Scopes: []principal.Scope{principal.MCP, principal.Chat}}})
	if err != nil {
		s.t.Fatal(err)
	}
	return token, func() {
		if _, err := s.srv.keys.Revoke(s.t.Context(), name); err != nil {
			s.t.Error(err)
		}
	}
}

// TestRevokedKeysStopTheirWork checks that running and queued jobs, schedules and sessions
// of a revoked key make no more calls.
func TestRevokedKeysStopTheirWork(t *testing.T) {
	t.Parallel()
	s := startShops(t, "[jobs]\nworkers = 2\n")
	open, serial := s.upstreams["open"], s.upstreams["serial"]
	serial.release = make(chan struct{})
	token, revoke := s.makeKey("web")
	web, root := keyClient{t, s.url, token}, s.client("root")
	store := func(code string) string {
		raw, err := json.Marshal(map[string]string{"content": code})
		if err != nil {
			t.Fatal(err)
		}
		return structured(t, web.call("script_store", string(raw)), "hash")
	}
	begin := func(code, more string) string {
		return structured(t, web.call("lua_execute", `{"script_hash":"`+store(code)+`"`+more+`}`), "job_id")
	}
	delayed := begin("function main() return mcp.open.buy{} end", `,"delay_ms":600000`)
	running := begin("function main() mcp.serial.buy{} return mcp.open.buy{} end", "")
	writing := begin("function main() mcp.serial.buy{} return cas.store('mine') end", "")
	session := structured(t, web.call("session_create", `{}`), "session_id")
	clocktest.Await(t, func() bool { // both workers are busy
		stats, _ := s.srv.catalog.Stats(t.Context(), "serial")
		return stats.Waiting == 1
	})
	schedule := structured(t, web.call("lua_execute", `{"script_hash":"`+store("-- scheduled\nfunction main() return mcp.open.buy{} end")+`","schedule":"@every 1s"}`), "schedule_id")
	queued := begin("-- queued\nfunction main() return mcp.open.buy{} end", "")
	revoke()
	before, _, _ := open.counts()
	close(serial.release)
	for name, id := range map[string]string{"queued job": queued, "running job": running, "running job that stores a content": writing} {
		text := root.call("job_poll", `{"job_ids":["`+id+`"],"timeout_ms":60000}`)
		if !strings.Contains(text, "the key web is revoked") || !strings.Contains(text, `"status":"failed"`) {
			t.Errorf("%s: %.900s", name, text)
		}
	}
	clocktest.Await(t, func() bool { return strings.Contains(root.call("schedule_list", `{}`), `"paused":true`) })
	if text := root.call("schedule_list", `{}`); !strings.Contains(text, schedule) {
		t.Errorf("the schedule was removed: %s", text)
	}
	if text := root.call("job_status", `{"job_id":"`+delayed+`"}`); !strings.Contains(text, `"pending"`) {
		t.Errorf("delayed job: %.600s", text)
	}
	if status, text := web.rpc("/mcp", "tools/list", ""); status != http.StatusUnauthorized {
		t.Errorf("request with the revoked key: %d %s", status, text)
	}
	if text := s.lua("some", "lua_eval", map[string]any{"session_id": session}, "return 1"); !strings.Contains(text, "no such session") {
		t.Errorf("its session with another key: %.600s", text)
	}
	if now, _, _ := open.counts(); now != before {
		t.Errorf("%d calls after the key was revoked", now-before)
	}
	s.flushAudit()
	entries, err := s.srv.audit.Find(t.Context(), audit.Filter{Who: "web", Decision: "deny"})
	if err != nil || len(entries) == 0 || entries[0].Rule != "key" {
		t.Errorf("audit entries %+v, %v", entries, err)
	}
}

// followSteps is a model that calls the tools a message lists, one after another, and
// answers with the last result.
func followSteps(r llmtest.Request) llmtest.Step {
	message := ""
	done := 0
	for _, turn := range r.Turns {
		if text, ok := strings.CutPrefix(turn.Text, "do "); ok && turn.Role == "user" {
			message, done = text, 0
		} else if turn.Role == "user" {
			done++
		}
	}
	steps := strings.Split(message, " ;; ")
	if done >= len(steps) {
		return llmtest.Step{Say: []string{"result: " + r.Last()}}
	}
	name, input, _ := strings.Cut(steps[done], " ")
	return llmtest.Step{Use: []llmtest.Use{{Name: name, Input: input}}}
}

// TestLabelsStayWithChats checks that the labels of data that a chat has read apply to the
// rest of the message and to later messages, but not to other users.
func TestLabelsStayWithChats(t *testing.T) {
	t.Parallel()
	model := llmtest.Start(t, followSteps)
	w := startLabels(t, "[sessions]\ncache_mb = 0\n[chat]\nkey = \""+llmtest.Key+"\"\nbase_url = \""+model.URL+"\"\n")
	base, _, _ := strings.Cut(w.url, "/mcp")
	say := func(user string, steps ...string) string {
		body, err := json.Marshal(map[string]string{"client_id": "c", "user_id": user, "message": "do " + strings.Join(steps, " ;; ")})
		if err != nil {
			t.Fatal(err)
		}
		_, text := requestAs(t, "", http.MethodPost, base+"/api/v1/chat", string(body))
		return text
	}
	const post = `web__post {"text":"x"}`
	lua := func(code string) string { return `lua_eval {"code":"` + code + `"}` }
	js := func(code string) string { return `execute_code {"language":"javascript","code":"` + code + `"}` }
	for user, messages := range map[string][][]string{
		"within a message": {{"crm__get_customer {}", post}},
		"next message":     {{"crm__get_customer {}"}, {post}},
		"to code":          {{"crm__get_customer {}"}, {lua("return mcp.web.post{text='x'}")}},
		"from code":        {{lua("card = mcp.crm.get_customer{}.card")}, {post}},
		"in the session":   {{lua("card = mcp.crm.get_customer{}.card")}, {lua("return mcp.web.post{text=card}")}},
		"in JavaScript":    {{js("return (await mcp.crm.get_customer({})).card")}, {js("return await mcp.web.post({text:'x'})")}},
		"from a script":    {{"reader {}"}, {post}},
		"to a script":      {{"crm__get_customer {}"}, {`relay {"text":"x"}`}},
	} {
		text := ""
		for _, steps := range messages {
			text = say(user, steps...)
		}
		if !strings.Contains(text, "must not go to web") || !strings.Contains(text, "crm.get_customer") || !strings.Contains(text, "web.post") {
			t.Errorf("%s: %.600s", user, text)
		}
	}
	if got := w.web.received(); got != "" {
		t.Errorf("web received %s", got)
	}
	if text := say("another user", post); strings.Contains(text, "must not go to") || w.web.received() == "" {
		t.Errorf("another user: %.600s", text)
	}
}

// TestLabelsStayWithJobs checks that a script which reads the result of a job gets the
// labels of the data that the job has read.
func TestLabelsStayWithJobs(t *testing.T) {
	t.Parallel()
	w := startLabels(t, "[sessions]\ncache_mb = 0\n")
	for name, source := range map[string]string{
		"lua":        "function main() return mcp.crm.get_customer{}.card end",
		"javascript": "async function main() { return (await mcp.crm.get_customer({})).card }",
	} {
		hash := structured(t, w.call("script_store", map[string]any{"content": source, "language": name}), "hash")
		job := structured(t, w.call("lua_execute", map[string]any{"script_hash": hash}), "job_id")
		if text := w.call("job_poll", map[string]any{"job_ids": []string{job}, "timeout_ms": 60000}); !strings.Contains(text, secretCard) {
			t.Errorf("%s: %.600s", name, text)
		}
		text := w.lua("local done = mcp.job_poll{job_ids={'" + job + "'}, timeout_ms=30000}\nreturn mcp.web.post{text=json.encode(done)}")
		if !strings.Contains(text, "must not go to web") || w.web.received() != "" {
			t.Errorf("%s: %.600s", name, text)
		}
	}
}
