package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/audit"
	"github.com/luanette/luanette/internal/access/pin"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// shop is an MCP server of a test with one tool, buy, that counts how often it was
// called, and how many calls were under way at most.
type shop struct {
	mu           sync.Mutex
	calls         int
	running, maxRunning int
	release         chan struct{} // each call waits for a word of it, or its end; nil: they do not
}

func (s *shop) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Name: "buy"}, Description: "Sells something.", Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (s *shop) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	s.mu.Lock()
	s.calls++
	s.running++
	s.maxRunning = max(s.maxRunning, s.running)
	hold := s.release
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
		}
	}
	return tool.Output("sold", map[string]string{"sold": "yes"})
}

func (s *shop) counts() (sold, inside, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls, s.running, s.maxRunning
}

// serveTools puts tools behind a server of their own, and is its address.
func serveTools(t *testing.T, name string, s tool.Source) string {
	t.Helper()
	h := hub.New(hub.Options{Name: name, Version: "1", Tools: s})
	server := httptest.NewServer(h.Handler())
	t.Cleanup(func() {
		_ = h.Close(context.WithoutCancel(t.Context()))
		server.Close()
	})
	return server.URL
}

// shopServer is a server with several upstreams, each restricted in its own way.
type shopServer struct {
	t      *testing.T
	url    string
	srv    *Server
	upstreams map[string]*shop

	mu      sync.Mutex
	offered string // to the model, and told to it, when it was last asked
}

// shopNames are the upstreams: one without restrictions, one denied by policy, one
// whose tools are pinned and not approved, one that some keys do not see, one limited
// to one call a minute, and one limited to one call at a time.
var shopNames = []string{"fine", "banned", "held", "unseen", "scarce", "slow"}

func startShops(t *testing.T, more string) *shopServer {
	t.Helper()
	s := &shopServer{t: t, upstreams: map[string]*shop{}}
	model := llmtest.Start(t, s.model)
	var file strings.Builder
	// Scripts may wait at a shop as long as it takes until everybody stands there.
	file.WriteString(more + `
[scripts]
timeout = "10m"
code_timeout = "10m"
[[policy]]
tool = "banned.*"
do = "deny"
reason = "nobody buys there"
[mcp]
mode = "direct"
[keys.root]
env = "ROOT"
scopes = ["admin"]
[keys.some]
env = "SOME"
scopes = ["mcp", "chat"]
namespaces = ["fine", "banned", "held", "scarce", "slow"]
[keys.poor]
env = "POOR"
scopes = ["mcp", "chat"]
budget = 1
[keys.single]
env = "SINGLE"
scopes = ["mcp", "chat"]
concurrent = 1
`)
	fmt.Fprintf(&file, "[chat]\nbase_url = %q\n", model.URL)
	for _, name := range shopNames {
		s.upstreams[name] = &shop{}
		fmt.Fprintf(&file, "[upstreams.%s]\nurl = %q\nexpose = \"all\"\n", name, serveTools(t, name, s.upstreams[name]))
	}
	text := strings.Replace(file.String(), "[upstreams.held]\n", "[upstreams.held]\ntrust = \"pin\"\n", 1)
	text = strings.Replace(text, "[upstreams.scarce]\n", "[upstreams.scarce]\nrate = 1\n", 1)
	text = strings.Replace(text, "[upstreams.slow]\n", "[upstreams.slow]\nconcurrent = 1\n", 1)
	folder := t.TempDir()
	for _, name := range shopNames {
		script := "function describe() return { name = 'buy_" + name + "', description = 'Buys.', params = {} } end\nfunction main() return mcp." + name + ".buy{} end\n"
		if err := os.WriteFile(filepath.Join(folder, "buy_"+name+".lua"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.url, s.srv = start(t, config.Sources{
		File: configtest.WriteFile(t, text),
		Env: config.Environment{
			"ROOT": "root-token", "SOME": "some-token", "POOR": "poor-token", "SINGLE": "single-token",
			"ANTHROPIC_API_KEY": llmtest.Key, "LUANETTE_SCRIPTS_FOLDER": folder,
		},
	})
	s.srv.upstreams.AwaitAttempts(t.Context(), upstreamWait)
	s.srv.catalog.Refresh(t.Context())
	return s
}

// model is a model that uses the tool it is told to, and says what came of it.
func (s *shopServer) model(r llmtest.Request) llmtest.Step {
	s.mu.Lock()
	s.offered = strings.Join(r.Tools, " ") + r.System
	s.mu.Unlock()
	if name, told := strings.CutPrefix(r.Last(), "use "); told {
		name, input, _ := strings.Cut(name, " ")
		if input == "" {
			input = "{}"
		}
		return llmtest.Step{Use: []llmtest.Use{{Name: name, Input: input}}}
	}
	return llmtest.Step{Say: []string{"it said: " + r.Last()}}
}

func (s *shopServer) client(key string) keyClient { return keyClient{s.t, s.url, key + "-token"} }

// lua runs code, in a session or outside of one.
func (s *shopServer) lua(key, tool string, args map[string]any, code string) string {
	args["code"] = code
	raw, err := json.Marshal(args)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.client(key).call(tool, string(raw))
}

// structured is one member of a result's structured content.
func structured(t *testing.T, answer, member string) string {
	t.Helper()
	var a struct {
		Result struct {
			StructuredContent map[string]json.RawMessage
		}
	}
	decodeMessage(t, answer, &a)
	var text string
	if json.Unmarshal(a.Result.StructuredContent[member], &text) != nil || text == "" {
		t.Fatalf("no %s in %s", member, answer)
	}
	return text
}

// runJob runs a stored script in the background, at once or by a schedule, and returns
// what became of it.
func (s *shopServer) runJob(key, shop, schedule string) string {
	h := s.client(key)
	source, err := json.Marshal(map[string]string{"content": "-- for " + key + "\nfunction main() return mcp." + shop + ".buy{} end"})
	if err != nil {
		s.t.Fatal(err)
	}
	hash := structured(s.t, h.call("script_store", string(source)), "hash")
	if schedule == "" {
		id := structured(s.t, h.call("lua_execute", `{"script_hash":"`+hash+`"}`), "job_id")
		return h.call("job_poll", `{"job_ids":["`+id+`"],"timeout_ms":60000}`)
	}
	id := structured(s.t, h.call("lua_execute", `{"script_hash":"`+hash+`","schedule":"`+schedule+`"}`), "schedule_id")
	var job string
	clocktest.Await(s.t, func() bool {
		all, err := s.srv.jobs.Schedules(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, one := range all {
			if one.ID == id {
				job = one.LastJob
			}
		}
		return job != ""
	})
	h.call("schedule_remove", `{"schedule_id":"`+id+`"}`)
	return h.call("job_poll", `{"job_ids":["`+job+`"],"timeout_ms":60000}`)
}

// chat has the model use a tool for somebody.
func (s *shopServer) chat(key, user, use string) string {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"client_id": "c", "user_id": user, "message": "use " + use})
	if err != nil {
		s.t.Fatal(err)
	}
	_, text := requestAs(s.t, key+"-token", http.MethodPost, s.url+"/api/v1/chat", string(body))
	return text
}

// callInSession calls a tool at one of the endpoints as a client of the older era.
func (s *shopServer) callInSession(key, path, name string) string {
	c := &mcpClient{s.t, s.url + path, http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + key + "-token"},
	}}
	header, _ := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	c.header.Set("Mcp-Session-Id", header.Get("Mcp-Session-Id"))
	return c.call(name, map[string]any{})
}

// callOverSSE calls a tool over the transport of 2024-11-05: what is posted at one
// address is answered on the stream of another.
func (s *shopServer) callOverSSE(key, name string) string {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	send := func(method, path, body string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
		if err != nil {
			s.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Authorization", "Bearer "+key+"-token")
		answer, err := httpjsontest.Client.Do(r)
		if err != nil {
			s.t.Fatal(err)
		}
		return answer
	}
	events := send(http.MethodGet, "/mcp/sse", "")
	defer events.Body.Close()
	lines := bufio.NewScanner(events.Body)
	data := func(with string) string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && strings.Contains(text, with) {
				return text
			}
		}
		s.t.Fatalf("the stream ended without %s", with)
		return ""
	}
	address := data("sessionId")
	for id, message := range []string{
		`"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`,
		`"method":"tools/call","params":{"name":"` + name + `","arguments":{}}`,
	} {
		_ = send(http.MethodPost, address, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, id+10, message)).Body.Close()
		if id == 1 {
			return data(`"id":11`)
		}
		data(`"id":10`)
	}
	return ""
}

// entryPoints are all the ways to buy something at a shop, with a key.
func (s *shopServer) entryPoints() map[string]func(key, shop string) string {
	return map[string]func(key, shop string) string{
		"tools/call":              func(key, shop string) string { return s.client(key).call(shop+"__buy", `{}`) },
		"tools/call in a session": func(key, shop string) string { return s.callInSession(key, "/mcp", shop+"__buy") },
		"HTTP+SSE":                func(key, shop string) string { return s.callOverSSE(key, shop+"__buy") },
		"the server seen whole": func(key, shop string) string {
			_, text := s.client(key).rpc("/mcp/"+shop, "tools/call", `"name":"buy","arguments":{}`)
			return text
		},
		"the server seen whole, in a session": func(key, shop string) string {
			if status, text := s.client(key).rpc("/mcp/"+shop, "tools/list", ""); status == http.StatusNotFound {
				return text // there is nothing to begin a session with
			}
			return s.callInSession(key, "/mcp/"+shop, "buy")
		},
		"call_tool": func(key, shop string) string {
			return s.client(key).call("call_tool", `{"name":"`+shop+`.buy","arguments":{}}`)
		},
		"lua_eval": func(key, shop string) string {
			return s.lua(key, "lua_eval", map[string]any{}, "return mcp."+shop+".buy{}")
		},
		"a session": func(key, shop string) string {
			id := structured(s.t, s.client(key).call("session_create", `{}`), "session_id")
			return s.lua(key, "lua_eval", map[string]any{"session_id": id}, "return mcp."+shop+".buy{}")
		},
		"execute_code": func(key, shop string) string {
			return s.lua(key, "execute_code", map[string]any{"language": "javascript"}, "return await mcp."+shop+".buy({})")
		},
		"a published script": func(key, shop string) string { return s.client(key).call("buy_"+shop, `{}`) },
		"a job":              func(key, shop string) string { return s.runJob(key, shop, "") },
		"a schedule":         func(key, shop string) string { return s.runJob(key, shop, "@every 1s") },
		"chat":               func(key, shop string) string { return s.chat(key, "ann-"+shop, shop+"__buy {}") },
		"chat, from a script": func(key, shop string) string {
			return s.chat(key, "bob-"+shop, `lua_eval {"code":"return mcp.`+shop+`.buy{}"}`)
		},
	}
}

// Every entry applies every check, and what was refused is in the log.
func TestEveryEntryAppliesEveryCheck(t *testing.T) {
	t.Parallel()
	// Budgets begin anew at midnight UTC: a call too many would be allowed then.
	if now := time.Now().UTC(); now.Add(5*time.Minute).Day() != now.Day() {
		t.Skip("less than five minutes before midnight UTC")
	}
	s := startShops(t, "")
	if sold := s.client("poor").call("fine__buy", `{}`); !strings.Contains(sold, "sold") {
		t.Fatalf("the budget's one call: %s", sold)
	}
	began := time.Now()
	if sold := s.client("some").call("scarce__buy", `{}`); !strings.Contains(sold, "sold") {
		t.Fatalf("the minute's one call: %s", sold)
	}
	type guard struct {
		key, shop string
		says      []string // what the refusal may say
		decision  string
		code      fault.Code
	}
	guards := map[string]guard{
		"policy":          {"some", "banned", []string{"nobody buys there"}, "deny", fault.Denied},
		"an unseen shop":  {"some", "unseen", []string{"no tool", "Unknown tool", "no upstream named", "attempt to index a nil value (field 'unseen')"}, "deny", fault.ToolNotFound},
		"a held pin":      {"some", "held", []string{"luanette pin show"}, "deny", fault.Denied},
		"budget":          {"poor", "fine", []string{"1 tool calls a day"}, "allow", fault.Limit},
		"upstream's rate": {"some", "scarce", []string{"1 calls a minute"}, "allow", fault.Limit},
	}
	entries := s.entryPoints()
	before := map[string]int{}
	for name, g := range guards {
		before[name], _, _ = s.upstreams[g.shop].counts()
	}
	var minutes atomic.Int64 // that went by: in each there is one more to have of what is scarce
	var all sync.WaitGroup
	for entry, buy := range entries {
		all.Go(func() {
			if said := buy("some", "fine"); !strings.Contains(said, "sold") {
				t.Errorf("%s sells nothing: %.600s", entry, said)
			}
			for name, g := range guards {
				said := buy(g.key, g.shop)
				for try := 0; g.shop == "scarce" && strings.Contains(said, "sold") && try < 2; try++ {
					minutes.Add(1)
					said = buy(g.key, g.shop)
				}
				if !slices.ContainsFunc(g.says, func(text string) bool { return strings.Contains(said, text) }) || strings.Contains(said, "mcp_connect") {
					t.Errorf("%s, %s: %.600s", entry, name, said)
				}
			}
		})
	}
	all.Wait()
	for name, g := range guards {
		want := 0
		if g.shop == "fine" {
			want = len(entries) // the others' calls
		}
		if g.shop == "scarce" {
			want = int(min(minutes.Load(), int64(time.Since(began)/time.Minute)))
		}
		if sold, _, _ := s.upstreams[g.shop].counts(); sold-before[name] != want {
			t.Errorf("%s: %d calls came through, want %d", name, sold-before[name], want)
		}
	}
	s.flushAudit()
	for name, g := range guards {
		want := len(entries)
		if g.shop == "unseen" || g.shop == "held" {
			want -= 6 // what is not there has no name in Lua to call it by
		}
		if g.shop == "unseen" {
			want -= 2 // at /mcp/unseen there is not even a server to ask
		}
		entries, err := s.srv.audit.Find(t.Context(), audit.Filter{Who: g.key, Tool: g.shop + ".buy", Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, e := range entries {
			if e.Decision == g.decision && e.Error == string(g.code) && e.Who == "key:"+g.key {
				found++
			}
		}
		if found != want {
			t.Errorf("%s: the log has %d entries of %s %s, want %d", name, found, g.decision, g.code, want)
		}
	}
}

// flushAudit waits until the log has all that was done.
func (s *shopServer) flushAudit() {
	s.t.Helper()
	if err := s.srv.audit.Close(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// A key that may have one call at a time has no more, whichever entries it uses, and
// a shop that serves one at a time serves each who waits in turn.
func TestConcurrentCallsOfAKeyThroughAllEntries(t *testing.T) {
	t.Parallel()
	s := startShops(t, "")
	fine := s.upstreams["fine"]
	fine.release = make(chan struct{})
	entries := s.entryPoints()
	var all sync.WaitGroup
	for entry, buy := range entries {
		all.Go(func() {
			if said := buy("single", "fine"); !strings.Contains(said, "sold") {
				t.Errorf("%s: %.600s", entry, said)
			}
		})
	}
	who, err := s.srv.keys.Authenticate(t.Context(), "single-token")
	if err != nil {
		t.Fatal(err)
	}
	clocktest.Await(t, func() bool { return s.srv.quota.Waiting(who) == len(entries)-1 })
	close(fine.release)
	all.Wait()
	if sold, _, most := fine.counts(); most != 1 || sold != len(entries) {
		t.Errorf("%d calls, %d at a time", sold, most)
	}
}

// One who asks for little is served among another's many.
func TestUpstreamsServeInTurn(t *testing.T) {
	t.Parallel()
	s := startShops(t, "")
	slow := s.upstreams["slow"]
	slow.release = make(chan struct{})
	const many = 20
	bought := make(chan string, many+1)
	buy := func(key, entry string) {
		go func() {
			if said := s.entryPoints()[entry](key, "slow"); !strings.Contains(said, "sold") {
				t.Errorf("%s: %s", key, said)
			}
			bought <- key
		}()
	}
	waiting := func() int {
		stats, _ := s.srv.catalog.Stats(t.Context(), "slow")
		return stats.Waiting
	}
	for i := range many {
		buy("some", []string{"tools/call", "the server seen whole", "lua_eval"}[i%3])
	}
	clocktest.Await(t, func() bool { return waiting() == many-1 })
	buy("root", "tools/call")
	clocktest.Await(t, func() bool { return waiting() == many })
	var order []string
	for len(order) <= many {
		select {
		case slow.release <- struct{}{}: // one is served, and nobody else before it has come out
			order = append(order, <-bought)
		case key := <-bought: // it was not served at all
			order = append(order, key)
		}
	}
	if at := slices.Index(order, "root"); at < 0 || at > many/2 {
		t.Errorf("served %d. of %d: %v", at+1, many+1, order)
	}
}

// What is approved can be bought through every entry.
func TestApprovedToolsAreOpenAtEveryEntry(t *testing.T) {
	t.Parallel()
	s := startShops(t, "")
	approved, _, err := pinAPI{s.srv}.ApproveAll(t.Context(), "held", "root", true)
	if err != nil || len(approved) != 1 || approved[0].State() != pin.Approved {
		t.Fatalf("%v %v", approved, err)
	}
	entries := s.entryPoints()
	for _, entry := range slices.Sorted(maps.Keys(entries)) {
		if entry == "a schedule" {
			continue // takes a second, and is a job
		}
		if said := entries[entry]("some", "held"); !strings.Contains(said, "sold") {
			t.Errorf("%s: %.600s", entry, said)
		}
	}
}

// Past its rate a key is refused at every route, and told when to come again; so is
// a person who says too much.
func TestEveryRouteKeepsTheRate(t *testing.T) {
	t.Parallel()
	model := llmtest.Start(t, func(llmtest.Request) llmtest.Step { return llmtest.Step{Say: []string{"yes"}} })
	url, srv := start(t, config.Sources{
		File: configtest.WriteFile(t, "[chat]\nbase_url = \""+model.URL+"\"\nrate = 1\n[keys.root]\nenv = \"ROOT\"\nscopes = [\"admin\"]\nrate = 1\n[keys.free]\nenv = \"FREE\"\nscopes = [\"chat\"]\n"),
		Env:  config.Environment{"ROOT": "root-token", "FREE": "free-token", "ANTHROPIC_API_KEY": llmtest.Key},
	})
	ask := func(method, path, token, body string) (*http.Response, string) {
		answer := httpjsontest.Open(t, method, url+path, body, "Authorization", "Bearer "+token)
		text, _ := bufio.NewReader(answer.Body).ReadString('\n')
		return answer, text
	}
	// twice asks again when a minute went by in between: then there was one more to have.
	twice := func(method, path, token, body string) (*http.Response, string) {
		answer, text := ask(method, path, token, body)
		for try := 0; answer.StatusCode != http.StatusTooManyRequests && try < 2; try++ {
			answer, text = ask(method, path, token, body)
		}
		return answer, text
	}
	if answer, _ := ask(http.MethodGet, "/api/v1/config", "root-token", ""); answer.StatusCode != http.StatusOK {
		t.Fatalf("the minute's first request: %s", answer.Status)
	}
	walked := 0
	for _, route := range srv.routes() {
		method, path, ok := strings.Cut(route.Pattern, " ")
		if !ok {
			method, path = http.MethodPost, route.Pattern
		}
		if route.Scope == "" {
			continue
		}
		walked++
		answer, text := twice(method, wildcard.ReplaceAllString(strings.TrimSuffix(path, "{$}"), "o"), "root-token", "{}")
		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" || !strings.Contains(text, "retry_after_ms") {
			t.Errorf("%s: %s, again after %q: %s", route.Pattern, answer.Status, answer.Header.Get("Retry-After"), text)
		}
	}
	if walked < 40 {
		t.Errorf("only %d routes were walked", walked)
	}
	say := func(user string) (*http.Response, string) {
		return twice(http.MethodPost, "/api/v1/chat", "free-token", `{"client_id":"c","user_id":"`+user+`","message":"hello"}`)
	}
	if answer, text := ask(http.MethodPost, "/api/v1/chat", "free-token", `{"client_id":"c","user_id":"bea","message":"hello"}`); answer.StatusCode != http.StatusOK {
		t.Errorf("a person's first message: %s %s", answer.Status, text)
	}
	if answer, text := say("ann"); answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
		t.Errorf("a person's messages: %s, again after %q: %s", answer.Status, answer.Header.Get("Retry-After"), text)
	}
}
