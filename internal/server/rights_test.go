package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/audit"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/core/principal"
)

// What somebody may never call is not shown anywhere; what takes an approval is.
func TestWhatIsNeverAllowedIsNotShown(t *testing.T) {
	t.Parallel()
	s := startShops(t, "[[policy]]\ntool = \"slow.*\"\ndo = \"approve\"\n[[policy]]\nkey = \"some\"\ntool = \"scarce.*\"\ndo = \"read_only\"\n")
	h, root := s.client("some"), s.client("root")
	read := func(path, method, params string) string {
		_, text := h.rpc(path, method, params)
		return text
	}
	for name, text := range map[string]string{
		"tools/list":          read("/mcp", "tools/list", ""),
		"lua://tools":         read("/mcp", "resources/read", `"uri":"lua://tools"`),
		"search":              h.call("search_tools", `{"query":"sells something","limit":100}`),
		"everything":          h.call("search_tools", `{"query":"","limit":100}`),
		"tools completed":     read("/mcp", "completion/complete", `"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"tool","value":""}`),
		"namespaces in code":  s.lua("some", "execute_code", map[string]any{"language": "lua"}, "return mcp.namespaces()"),
		"declarations":        h.call("get_tool_definitions", `{"names":["fine.buy","slow.buy","banned.buy","scarce.buy"]}`),
		"what a chat offered": offeredTools(s, "some"),
	} {
		_, definitions, _ := strings.Cut(text, "structuredContent")
		if name == "declarations" {
			text, _, _ = strings.Cut(definitions, `"unknown"`)
		}
		for _, shop := range []string{"fine", "slow"} {
			if !strings.Contains(text, shop) {
				t.Errorf("%s: no %s in %.600s", name, shop, text)
			}
		}
		for _, shop := range []string{"banned.buy", "banned__buy", "scarce.buy", "scarce__buy", `"banned"`} {
			if strings.Contains(text, shop) {
				t.Errorf("%s: %s in %.600s", name, shop, text)
			}
		}
	}
	for _, shop := range []string{"banned", "scarce"} {
		if text := read("/mcp/"+shop, "tools/list", ""); strings.Contains(text, `"buy"`) {
			t.Errorf("%s seen whole: %s", shop, text)
		}
	}
	if _, text := root.rpc("/mcp", "tools/list", ""); !strings.Contains(text, "scarce__buy") || strings.Contains(text, "banned__buy") {
		t.Errorf("root is shown %.600s", text)
	}
}

// offeredTools is what the model of a key's chat is offered and told.
func offeredTools(s *shopServer, key string) string {
	s.chat(key, "looker", "nothing")
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offered
}

// makeKey makes a key in the ring, and returns what ends it.
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

// What a key began ends with it: jobs that wait and jobs that run, schedules,
// sessions, messages.
func TestARevokedKeyGetsNothingDone(t *testing.T) {
	t.Parallel()
	s := startShops(t, "[jobs]\nworkers = 2\n")
	fine, slow := s.upstreams["fine"], s.upstreams["slow"]
	slow.release = make(chan struct{})
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
	waiting := begin("function main() return mcp.fine.buy{} end", `,"delay_ms":600000`)
	running := begin("function main() mcp.slow.buy{} return mcp.fine.buy{} end", "")
	writing := begin("function main() mcp.slow.buy{} return cas.store('mine') end", "")
	session := structured(t, web.call("session_create", `{}`), "session_id")
	clocktest.Await(t, func() bool { // both workers have their hands full
		stats, _ := s.srv.catalog.Stats(t.Context(), "slow")
		return stats.Waiting == 1
	})
	schedule := structured(t, web.call("lua_execute", `{"script_hash":"`+store("-- again\nfunction main() return mcp.fine.buy{} end")+`","schedule":"@every 1s"}`), "schedule_id")
	due := begin("-- due\nfunction main() return mcp.fine.buy{} end", "")
	revoke()
	sold, _, _ := fine.counts()
	close(slow.release)
	for name, id := range map[string]string{"one that waited for a worker": due, "one that ran": running, "one that ran, and wrote": writing} {
		text := root.call("job_poll", `{"job_ids":["`+id+`"],"timeout_ms":60000}`)
		if !strings.Contains(text, "the key web is revoked") || !strings.Contains(text, `"status":"failed"`) {
			t.Errorf("%s: %.900s", name, text)
		}
	}
	clocktest.Await(t, func() bool { return strings.Contains(root.call("schedule_list", `{}`), `"paused":true`) })
	if text := root.call("schedule_list", `{}`); !strings.Contains(text, schedule) {
		t.Errorf("the schedule is gone: %s", text)
	}
	if text := root.call("job_status", `{"job_id":"`+waiting+`"}`); !strings.Contains(text, `"pending"`) {
		t.Errorf("the one that waits: %.600s", text)
	}
	if status, text := web.rpc("/mcp", "tools/list", ""); status != http.StatusUnauthorized {
		t.Errorf("the key itself: %d %s", status, text)
	}
	if text := s.lua("some", "lua_eval", map[string]any{"session_id": session}, "return 1"); !strings.Contains(text, "no such session") {
		t.Errorf("its session, to another: %.600s", text)
	}
	if now, _, _ := fine.counts(); now != sold {
		t.Errorf("%d things were bought after the end", now-sold)
	}
	s.flushAudit()
	entries, err := s.srv.audit.Find(t.Context(), audit.Filter{Who: "web", Decision: "deny"})
	if err != nil || len(entries) == 0 || entries[0].Rule != "key" {
		t.Errorf("the log: %+v %v", entries, err)
	}
}

// followSteps is a model that does what it is told, one tool after another, and then
// says what came of the last.
func followSteps(r llmtest.Request) llmtest.Step {
	told := ""
	done := 0
	for _, turn := range r.Turns {
		if text, ok := strings.CutPrefix(turn.Text, "do "); ok && turn.Role == "user" {
			told, done = text, 0
		} else if turn.Role == "user" {
			done++
		}
	}
	steps := strings.Split(told, " ;; ")
	if done >= len(steps) {
		return llmtest.Step{Say: []string{"it said: " + r.Last()}}
	}
	name, input, _ := strings.Cut(steps[done], " ")
	return llmtest.Step{Use: []llmtest.Use{{Name: name, Input: input}}}
}

// What a chat has read stays with it: within a message, from message to message, by
// whichever tool; and with its person only.
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
		"in the next":      {{"crm__get_customer {}"}, {post}},
		"by code":          {{"crm__get_customer {}"}, {lua("return mcp.web.post{text='x'}")}},
		"from code":        {{lua("card = mcp.crm.get_customer{}.card")}, {post}},
		"in its session":   {{lua("card = mcp.crm.get_customer{}.card")}, {lua("return mcp.web.post{text=card}")}},
		"in JavaScript":    {{js("return (await mcp.crm.get_customer({})).card")}, {js("return await mcp.web.post({text:'x'})")}},
		"by a script":      {{"reader {}"}, {post}},
		"to a script":      {{"crm__get_customer {}"}, {`relay {"text":"x"}`}},
	} {
		said := ""
		for _, steps := range messages {
			said = say(user, steps...)
		}
		if !strings.Contains(said, "must not go to web") || !strings.Contains(said, "crm.get_customer") || !strings.Contains(said, "web.post") {
			t.Errorf("%s: %.600s", user, said)
		}
	}
	if got := w.web.received(); got != "" {
		t.Errorf("web was sent %s", got)
	}
	if said := say("somebody else", post); strings.Contains(said, "must not go to") || w.web.received() == "" {
		t.Errorf("another person: %.600s", said)
	}
}

// What a job has read is read by who asks it for its result.
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
		said := w.lua("local done = mcp.job_poll{job_ids={'" + job + "'}, timeout_ms=30000}\nreturn mcp.web.post{text=json.encode(done)}")
		if !strings.Contains(said, "must not go to web") || w.web.received() != "" {
			t.Errorf("%s: %.600s", name, said)
		}
	}
}
