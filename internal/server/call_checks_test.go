package server

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// shop is a tool source with one tool, buy. It counts calls, and how many run at the same
// time.
type shop struct {
	schema              string // of the arguments; "" takes any
	reads               bool   // it says that it changes nothing
	mu                  sync.Mutex
	calls               int
	running, maxRunning int
	release             chan struct{} // each call waits until it receives from it; nil: no wait
}

func (s *shop) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Name: "buy"}, Description: "Sells something.", Input: json.RawMessage(cmp.Or(s.schema, `{"type":"object"}`)), Hints: tool.Hints{ReadOnly: s.reads}}}, nil
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

// serveTools serves tools over MCP and returns the URL.
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
	t         *testing.T
	url       string
	srv       *Server
	upstreams map[string]*shop

	broken atomic.Bool // the upstream of that name fails

	mu      sync.Mutex
	offered string // the tools and the system prompt of the last request to the model
}

// shopNames are the upstreams: one without restrictions, one denied by policy, one
// whose tools are pinned and not approved, one that some keys do not see, one limited
// to one call a minute, one limited to one call at a time, one that needs approval by a
// setting, one by a rule and one even to read, one whose tools may only read, one with labelled data and one
// that does not accept it, one with a schema that no call matches, and one that is broken.
var shopNames = []string{
	"open", "banned", "pinned", "hidden", "limited", "serial", "asking", "ruled", "reading", "readonly", "labelled", "sealed", "strict", "broken",
}

// shopSettings are the settings of these upstreams.
var shopSettings = map[string]string{
	"pinned": `trust = "pin"`, "limited": "rate = 1", "serial": "concurrent = 1", "asking": `approve = "writes"`, "reading": `approve = "all"`, "labelled": `labels = ["secret"]`,
}

func startShops(t *testing.T, more string) *shopServer {
	t.Helper()
	s := &shopServer{t: t, upstreams: map[string]*shop{}}
	model := llmtest.Start(t, s.model)
	var file strings.Builder
	// Scripts may have to wait until the calls of all entry points are running.
	file.WriteString(more + `
[scripts]
timeout = "10m"
code_timeout = "10m"
[[policy]]
tool = "banned.*"
do = "deny"
reason = "buying is forbidden"
[[policy]]
tool = "ruled.*"
do = "approve"
[[policy]]
tool = "readonly.*"
do = "read_only"
[mcp]
menu = "full"
[sets.all]
tools = ["*"]
[sets.most]
tools = ["open.*", "banned.*", "pinned.*", "limited.*", "serial.*", "labelled.*", "sealed.*", "strict.*", "broken.*", "*_*"]
[keys.boxed]
env = "BOXED"
scopes = ["mcp", "chat"]
set = "most"
[keys.root]
env = "ROOT"
scopes = ["admin"]
[keys.some]
env = "SOME"
scopes = ["mcp", "chat"]
namespaces = ["open", "banned", "pinned", "limited", "serial", "asking", "ruled", "reading", "readonly", "labelled", "sealed", "strict", "broken"]
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
		s.upstreams[name] = &shop{reads: name == "reading"}
		address := serveTools(t, name, s.upstreams[name])
		if name == "broken" {
			address = s.breakable(address)
		}
		fmt.Fprintf(&file, "[upstreams.%s]\nurl = %q\nexpose = \"all\"\n%s\n", name, address, shopSettings[name])
	}
	s.upstreams["strict"].schema = `{"type":"object","properties":{"number":{"type":"integer","maximum":8}},"required":["number"]}`
	text, folder := file.String(), t.TempDir()
	for _, name := range shopNames {
		script := "function describe() return { name = 'buy_" + name + "', description = 'Buys.', params = {} } end\nfunction main() " + luaBuys(name) + " end\n"
		if err := os.WriteFile(filepath.Join(folder, "buy_"+name+".lua"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.url, s.srv = start(t, config.Sources{
		File: configtest.WriteFile(t, text),
		Env: config.Environment{
			"ROOT": "root-token", "SOME": "some-token", "POOR": "poor-token", "SINGLE": "single-token", "BOXED": "boxed-token",
			"ANTHROPIC_API_KEY": llmtest.Key, "LUANETTE_SCRIPTS_FOLDER": folder,
		},
	})
	s.srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	s.srv.catalog.Refresh(t.Context())
	return s
}

// luaBuys is the code that buys at a shop. What it has read before may not go to sealed.
func luaBuys(shop string) string {
	if shop == "sealed" {
		return "mcp.labelled.buy{} return mcp.sealed.buy{}"
	}
	return "return mcp." + shop + ".buy{}"
}

// breakable returns the address of a proxy of an upstream, which fails while s.broken.
func (s *shopServer) breakable(address string) string {
	target, err := url.Parse(address)
	if err != nil {
		s.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.broken.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	s.t.Cleanup(server.Close)
	return server.URL
}

// model calls the tool that a message names, and answers with its result.
func (s *shopServer) model(r llmtest.Request) llmtest.Step {
	s.mu.Lock()
	s.offered = strings.Join(r.Tools, " ") + r.System
	s.mu.Unlock()
	if name, ok := strings.CutPrefix(r.Last(), "use "); ok {
		name, input, _ := strings.Cut(name, " ")
		if input == "" {
			input = "{}"
		}
		return llmtest.Step{Use: []llmtest.Use{{Name: name, Input: input}}}
	}
	return llmtest.Step{Say: []string{"result: " + r.Last()}}
}

// client returns a client with a key.
func (s *shopServer) client(key string) keyClient { return keyClient{s.t, s.url, key + "-token"} }

// lua calls a tool that runs code.
func (s *shopServer) lua(key, tool string, args map[string]any, code string) string {
	args["code"] = code
	raw, err := json.Marshal(args)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.client(key).call(tool, string(raw))
}

// structured returns one member of a result's structured content, which must be a string.
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

// runJob runs a stored script as a job, at once or by a schedule, and returns the job at
// its end.
func (s *shopServer) runJob(key, shop, schedule string) string {
	h := s.client(key)
	source, err := json.Marshal(map[string]string{"content": "-- for " + key + "\nfunction main() " + luaBuys(shop) + " end"})
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

// chat sends a message that makes the model call a tool.
func (s *shopServer) chat(key, user, use string) string {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"client_id": "c", "user_id": user, "message": "use " + use})
	if err != nil {
		s.t.Fatal(err)
	}
	_, text := requestAs(s.t, key+"-token", http.MethodPost, s.url+"/api/v1/chat", string(body))
	return text
}

// callInSession calls a tool in an MCP session at an endpoint.
func (s *shopServer) callInSession(key, path, name string) string {
	c := &mcpClient{s.t, s.url + path, http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + key + "-token"},
	}}
	header, _ := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	c.header.Set("Mcp-Session-Id", header.Get("Mcp-Session-Id"))
	return c.call(name, map[string]any{})
}

// callOverSSE calls a tool over the HTTP+SSE transport of 2024-11-05.
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

// as returns a context with the principal of a key.
func (s *shopServer) as(key string) context.Context {
	who, err := s.srv.keys.Authenticate(s.t.Context(), key+"-token")
	if err != nil {
		s.t.Fatal(err)
	}
	return principal.With(s.t.Context(), who)
}

// callInProcess calls a tool as the command line does without a server.
func (s *shopServer) callInProcess(key, shop string) string {
	result, err := s.srv.CallTool(s.as(key), tool.Call{Ref: tool.Ref{Name: "call_tool"}, Args: json.RawMessage(`{"name":"` + shop + `.buy","arguments":{}}`), Caller: &tool.Caller{ID: "cli"}})
	if err != nil {
		return err.Error() + " " + fault.HintOf(err)
	}
	return string(result.Raw)
}

// callOverStdio calls a tool as a client that started the server.
func (s *shopServer) callOverStdio(key, shop string) string {
	return s.callOverPipe(s.as(key), shop)
}

// callOverPipe is callOverStdio of a client with a principal.
func (s *shopServer) callOverPipe(ctx context.Context, shop string) string {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := s.srv.ServePipe(ctx, fromClient, toClient)
		_ = toClient.Close()
		done <- err
	}()
	defer func() {
		_ = toServer.Close()
		<-done
	}()
	lines := bufio.NewScanner(fromServer)
	lines.Buffer(nil, 1<<20)
	for id, message := range []string{
		`"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`,
		`"method":"tools/call","params":{"name":"` + shop + `__buy","arguments":{}}`,
	} {
		if _, err := fmt.Fprintf(toServer, "{\"jsonrpc\":\"2.0\",\"id\":%d,%s}\n", id+10, message); err != nil {
			s.t.Error(err)
			return ""
		}
		for lines.Scan() && !strings.Contains(lines.Text(), fmt.Sprintf(`"id":%d`, id+10)) {
		}
	}
	return lines.Text()
}

// entryPoints returns all the ways to call a shop's tool with a key.
func (s *shopServer) entryPoints() map[string]func(key, shop string) string {
	return map[string]func(key, shop string) string{
		"tools/call":              func(key, shop string) string { return s.client(key).call(shop+"__buy", `{}`) },
		"tools/call in a session": func(key, shop string) string { return s.callInSession(key, "/mcp", shop+"__buy") },
		"HTTP+SSE":                func(key, shop string) string { return s.callOverSSE(key, shop+"__buy") },
		"/mcp/NAME": func(key, shop string) string {
			_, text := s.client(key).rpc("/mcp/"+shop, "tools/call", `"name":"buy","arguments":{}`)
			return text
		},
		"/mcp/NAME in a session": func(key, shop string) string {
			if status, text := s.client(key).rpc("/mcp/"+shop, "tools/list", ""); status == http.StatusNotFound {
				return text // no session can be started
			}
			return s.callInSession(key, "/mcp/"+shop, "buy")
		},
		"call_tool": func(key, shop string) string {
			return s.client(key).call("call_tool", `{"name":"`+shop+`.buy","arguments":{}}`)
		},
		"lua_eval": func(key, shop string) string {
			return s.lua(key, "lua_eval", map[string]any{}, luaBuys(shop))
		},
		"lua_eval in a session": func(key, shop string) string {
			id := structured(s.t, s.client(key).call("session_create", `{}`), "session_id")
			return s.lua(key, "lua_eval", map[string]any{"session_id": id}, luaBuys(shop))
		},
		"execute_code": func(key, shop string) string {
			code := "return await mcp." + shop + ".buy({})"
			if shop == "sealed" {
				code = "await mcp.labelled.buy({}); " + code
			}
			return s.lua(key, "execute_code", map[string]any{"language": "javascript"}, code)
		},
		"a published script": func(key, shop string) string { return s.client(key).call("buy_"+shop, `{}`) },
		"a job":              func(key, shop string) string { return s.runJob(key, shop, "") },
		"a schedule":         func(key, shop string) string { return s.runJob(key, shop, "@every 1s") },
		"chat": func(key, shop string) string {
			if shop == "sealed" {
				s.chat(key, "tool-"+shop, "labelled__buy {}")
			}
			return s.chat(key, "tool-"+shop, shop+"__buy {}")
		},
		"a script in a chat": func(key, shop string) string {
			return s.chat(key, "script-"+shop, `lua_eval {"code":"`+luaBuys(shop)+`"}`)
		},
		"REST": func(key, shop string) string {
			_, text := requestAs(s.t, key+"-token", http.MethodPost, s.url+"/tools/"+shop+"/buy", "{}")
			return text
		},
		"/mcp/sets/NAME": func(key, shop string) string {
			_, text := s.client(key).rpc("/mcp/sets/all", "tools/call", `"name":"`+shop+`__buy","arguments":{}`)
			return text
		},
		"/mcp/sets/NAME in a session": func(key, shop string) string { return s.callInSession(key, "/mcp/sets/all", shop+"__buy") },
		"call_tool in a set": func(key, shop string) string {
			_, text := s.client(key).rpc("/mcp/sets/all", "tools/call", `"name":"call_tool","arguments":{"name":"`+shop+`.buy","arguments":{}}`)
			return text
		},
		"stdio": s.callOverStdio,
		"stdio --set": func(key, shop string) string {
			ctx := s.as(key)
			return s.callOverPipe(principal.With(ctx, principal.Of(ctx).InSet("all")), shop)
		},
		"in this process": s.callInProcess,
	}
}

// TestEveryEntryPointAppliesEveryCheck checks that every way to call a tool applies every
// check, and that the audit log has an entry for each refused call.
func TestEveryEntryPointAppliesEveryCheck(t *testing.T) {
	t.Parallel()
	s := startShops(t, "[jobs]\nupstream_wait = \"1ms\"\n")
	day := time.Now().UTC().Truncate(24 * time.Hour)
	if text := s.client("poor").call("open__buy", `{}`); !strings.Contains(text, "sold") {
		t.Fatalf("the only call of the budget: %s", text)
	}
	began := time.Now()
	if text := s.client("some").call("limited__buy", `{}`); !strings.Contains(text, "sold") {
		t.Fatalf("the only call of the minute: %s", text)
	}
	type check struct {
		key, shop string
		errors    []string // texts of which the error contains one
		decision  string
		code      fault.Code
	}
	checks := map[string]check{
		"policy":          {"some", "banned", []string{"buying is forbidden"}, "deny", fault.Denied},
		"hidden upstream": {"some", "hidden", []string{"no tool", "Unknown tool", "no upstream named", "attempt to index a nil value (field 'hidden')"}, "deny", fault.ToolNotFound},
		"set":             {"boxed", "hidden", []string{"no tool", "Unknown tool", "no upstream named", "attempt to index a nil value (field 'hidden')"}, "deny", fault.ToolNotFound},
		"pending pin":     {"some", "pinned", []string{"luanette pin show"}, "deny", fault.Denied},
		"budget":          {"poor", "open", []string{"1 tool calls a day"}, "allow", fault.Limit},
		"upstream's rate": {"some", "limited", []string{"1 calls a minute"}, "allow", fault.Limit},
		"read only":       {"some", "readonly", []string{"may change something"}, "deny", fault.Denied},
		"label":           {"some", "sealed", []string{"must not go to sealed"}, "deny", fault.Denied},
		"argument schema": {"some", "strict", []string{"number"}, "allow", fault.InvalidParams},
		"circuit breaker": {"some", "broken", []string{"failed too often in a row", "Bad Gateway", "502"}, "allow", fault.Unavailable},
	}
	s.breakUpstream()
	entries := s.entryPoints()
	// A call that no script or chat makes sends only what its caller has.
	unlabelled := []string{"tools/call", "tools/call in a session", "HTTP+SSE", "/mcp/NAME", "/mcp/NAME in a session", "call_tool", "REST", "stdio", "in this process", "/mcp/sets/NAME", "/mcp/sets/NAME in a session", "call_tool in a set", "stdio --set"}
	before := map[string]int{}
	for name, g := range checks {
		before[name], _, _ = s.upstreams[g.shop].counts()
	}
	var minutes, days atomic.Int64 // how often a new minute or day allowed another call
	var all, unread sync.WaitGroup
	for range entries {
		unread.Add(1)
	}
	for entry, buy := range entries {
		all.Go(func() {
			if text := buy("some", "open"); !strings.Contains(text, "sold") {
				t.Errorf("%s without restrictions: %.600s", entry, text)
			}
			for _, name := range slices.SortedFunc(maps.Keys(checks), func(a, b string) int { return cmp.Compare(labelLast(a), labelLast(b)) }) {
				g := checks[name]
				if name == "label" { // a session that has read a label leaves it to all that is read about sessions
					unread.Done()
					unread.Wait()
				}
				text := buy(g.key, g.shop)
				if g.shop == "sealed" && slices.Contains(unlabelled, entry) {
					g.errors = []string{"sold"}
				}
				renewed := map[string]*atomic.Int64{"upstream's rate": &minutes, "budget": &days}[name]
				for try := 0; renewed != nil && strings.Contains(text, "sold") && try < 2; try++ {
					renewed.Add(1)
					text = buy(g.key, g.shop)
				}
				if !slices.ContainsFunc(g.errors, func(want string) bool { return strings.Contains(text, want) }) || strings.Contains(text, "mcp_connect") {
					t.Errorf("%s, %s: %.600s", entry, name, text)
				}
			}
		})
	}
	all.Wait()
	for name, g := range checks {
		want := 0
		if g.shop == "open" { // of the key some; budgets are reset at midnight UTC
			want = len(entries) + int(min(days.Load(), int64(time.Since(day)/(24*time.Hour))))
		}
		if g.shop == "sealed" {
			want = len(unlabelled)
		}
		if g.shop == "limited" {
			want = int(min(minutes.Load(), int64(time.Since(began)/time.Minute)))
		}
		if calls, _, _ := s.upstreams[g.shop].counts(); calls-before[name] != want {
			t.Errorf("%s: %d calls reached the upstream, want %d", name, calls-before[name], want)
		}
	}
	s.flushAudit()
	for name, g := range checks {
		want := len(entries)
		switch g.shop {
		case "hidden":
			want -= 6 + 2 // scripts have no function for the tool, and there is no endpoint /mcp/hidden
		case "sealed":
			want -= len(unlabelled)
		case "broken":
			continue // a call that is tried again fails with the connection's error
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
			t.Errorf("%s: the audit log has %d entries with %s %s, want %d", name, found, g.decision, g.code, want)
		}
	}
}

// labelLast orders checks.
func labelLast(name string) int {
	if name == "label" {
		return 1
	}
	return 0
}

// flushAudit writes all audit entries.
func (s *shopServer) flushAudit() {
	s.t.Helper()
	if err := s.srv.audit.Close(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// TestConcurrentCallsOfAKey checks that a key with concurrent = 1 never has two calls
// running, whichever entry points it uses.
func TestConcurrentCallsOfAKey(t *testing.T) {
	t.Parallel()
	s := startShops(t, "")
	open := s.upstreams["open"]
	open.release = make(chan struct{})
	entries := s.entryPoints()
	var all sync.WaitGroup
	for entry, buy := range entries {
		all.Go(func() {
			if text := buy("single", "open"); !strings.Contains(text, "sold") {
				t.Errorf("%s: %.600s", entry, text)
			}
		})
	}
	who, err := s.srv.keys.Authenticate(t.Context(), "single-token")
	if err != nil {
		t.Fatal(err)
	}
	clocktest.Await(t, func() bool { return s.srv.quota.Waiting(who) == len(entries)-1 })
	close(open.release)
	all.Wait()
	if calls, _, most := open.counts(); most != 1 || calls != len(entries) {
		t.Errorf("%d calls, %d at a time, want %d, 1", calls, most, len(entries))
	}
}

// TestUpstreamsServeCallersInTurn checks that one call of a caller does not wait for all
// calls of another.
func TestUpstreamsServeCallersInTurn(t *testing.T) {
	t.Parallel()
	s := startShops(t, "")
	serial := s.upstreams["serial"]
	serial.release = make(chan struct{})
	const many = 20
	done := make(chan string, many+1)
	buy := func(key, entry string) {
		go func() {
			if text := s.entryPoints()[entry](key, "serial"); !strings.Contains(text, "sold") {
				t.Errorf("%s: %s", key, text)
			}
			done <- key
		}()
	}
	waiting := func() int {
		stats, _ := s.srv.catalog.Stats(t.Context(), "serial")
		return stats.Waiting
	}
	for i := range many {
		buy("some", []string{"tools/call", "/mcp/NAME", "lua_eval"}[i%3])
	}
	clocktest.Await(t, func() bool { return waiting() == many-1 })
	buy("root", "tools/call")
	clocktest.Await(t, func() bool { return waiting() == many })
	var order []string
	for len(order) <= many {
		select {
		case serial.release <- struct{}{}: // one call ends before the next begins
			order = append(order, <-done)
		case key := <-done: // its call failed
			order = append(order, key)
		}
	}
	if at := slices.Index(order, "root"); at < 0 || at > many/2 {
		t.Errorf("the call of root was number %d of %d: %v", at+1, many+1, order)
	}
}

// TestApprovedToolsAreCallable checks that an approved tool can be called at every entry
// point.
func TestApprovedToolsAreCallable(t *testing.T) {
	t.Parallel()
	s := startShops(t, "")
	approved, _, err := s.srv.pins.ApproveAll(t.Context(), "pinned", "root", true)
	if err != nil || len(approved) != 1 || approved[0].State() != pin.Approved {
		t.Fatalf("%v %v", approved, err)
	}
	entries := s.entryPoints()
	for _, entry := range slices.Sorted(maps.Keys(entries)) {
		if entry == "a schedule" {
			continue // it takes a second, and it is a job
		}
		if text := entries[entry]("some", "pinned"); !strings.Contains(text, "sold") {
			t.Errorf("%s: %.600s", entry, text)
		}
	}
}

// breakUpstream makes the upstream that can break fail until its circuit breaker is open.
func (s *shopServer) breakUpstream() {
	s.t.Helper()
	s.broken.Store(true)
	for range 5 {
		if text := s.client("some").call("broken__buy", `{}`); strings.Contains(text, "sold") {
			s.t.Fatalf("a broken upstream: %s", text)
		}
	}
}

// decide answers every request for approval about a shop until stop is called, which
// returns the requests.
func (s *shopServer) decide(shop, decision string) (stop func() []string) {
	requests := s.srv.bus.Subscribe(event.Options{Types: []string{"approval.requested"}})
	ctx, cancel := context.WithCancel(s.t.Context())
	decided := make(chan []string, 1)
	go func() {
		var ids []string
		for {
			e, err := requests.Next(ctx)
			if err != nil {
				decided <- ids
				return
			}
			asked, ok := e.Data.(approval.Requested)
			if !ok || asked.Subject != shop+".buy" {
				continue
			}
			ids = append(ids, asked.ID)
			if text := s.client("root").call("approval_decide", `{"approval_id":"`+asked.ID+`","decision":"`+decision+`"}`); strings.Contains(text, `"isError":true`) {
				s.t.Errorf("%s: %s", asked.ID, text)
			}
		}
	}()
	return func() []string {
		cancel()
		requests.Close()
		return <-decided
	}
}

// TestEveryEntryPointAsksForApproval checks that a call that needs approval waits for it
// wherever it comes from, and is made once if it is allowed.
func TestEveryEntryPointAsksForApproval(t *testing.T) {
	t.Parallel()
	s := startShops(t, "")
	entries := s.entryPoints()
	for _, one := range []struct{ shop, decision, outcome string }{
		{"asking", "allow", "sold"}, {"ruled", "allow", "sold"}, {"asking", "deny", "was not approved"},
		{"reading", "allow", "sold"}, {"reading", "deny", "was not approved"},
	} {
		before, _, _ := s.upstreams[one.shop].counts()
		stop := s.decide(one.shop, one.decision)
		var all sync.WaitGroup
		for entry, buy := range entries {
			all.Go(func() {
				text := buy("some", one.shop)
				id := regexp.MustCompile(`a-[a-z0-9]{16}`).FindString(text)
				switch {
				case strings.Contains(text, one.outcome): // it waited
				case !strings.Contains(text, tool.StatusPending) || id == "":
					t.Errorf("%s, %s %s: %.600s", entry, one.shop, one.decision, text)
				default:
					if _, err := s.srv.approvals.AwaitOutcome(s.as("some"), id); err != nil {
						t.Errorf("%s: %v", entry, err)
					}
					if text := s.client("some").call("approval_status", `{"approval_id":"`+id+`"}`); !strings.Contains(text, one.outcome) {
						t.Errorf("%s, %s %s: %.600s", entry, one.shop, one.decision, text)
					}
				}
			})
		}
		all.Wait()
		asked := stop()
		want := 0
		if one.decision == "allow" {
			want = len(entries)
		}
		if calls, _, _ := s.upstreams[one.shop].counts(); calls-before != want || len(asked) != len(entries) {
			t.Errorf("%s, %s: %d calls of %d, %d requests", one.shop, one.decision, calls-before, want, len(asked))
		}
	}
}

// TestPreviewsAskForNothing checks that a plan is made without the reads that need approval.
func TestPreviewsAskForNothing(t *testing.T) {
	t.Parallel()
	s := startShops(t, "")
	text := s.client("some").call("lua_preview", `{"code":"`+luaBuys("reading")+`"}`)
	if calls, _, _ := s.upstreams["reading"].counts(); calls != 0 || !strings.Contains(text, "would call reading.buy") {
		t.Errorf("%d calls: %s", calls, text)
	}
}

// musicChecks restrict the keys of TestMusicAtItsOwnAddress, each in its own way.
const musicChecks = `
approve = "never"
[music]
enabled = true
[approvals]
"hootenanny.garden_seek" = "writes"
[[policy]]
key = "denied"
tool = "hootenanny.*"
do = "deny"
reason = "no music"
[[policy]]
key = "ruled"
tool = "hootenanny.*"
do = "approve"
[[policy]]
key = "reader"
tool = "hootenanny.*"
do = "read_only"
`

// TestMusicAtItsOwnAddress checks that /mcp/hootenanny, whose tools are of this process,
// applies every check that such tools can have: they have no definition to pin, no
// connection that breaks, and a direct call has read no label.
func TestMusicAtItsOwnAddress(t *testing.T) {
	t.Parallel()
	text, env := musicChecks, config.Environment{}
	for name, more := range map[string]string{"free": "", "denied": "", "ruled": "", "reader": "", "poor": "budget = 1", "elsewhere": "namespaces = [\"other\"]"} {
		text += fmt.Sprintf("[keys.%s]\nenv = %q\nscopes = [\"mcp\"]\n%s\n", name, strings.ToUpper(name), more)
		env[strings.ToUpper(name)] = name + "-token"
	}
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, text), Env: env})
	call := func(key, tool, args string) string {
		_, text := keyClient{t, url, key + "-token"}.rpc("/mcp/hootenanny", "tools/call", `"name":"`+tool+`","arguments":`+args)
		return text
	}
	if text := call("poor", "garden_status", `{}`); !strings.Contains(text, "tempo") {
		t.Fatalf("the only call of the budget: %s", text)
	}
	for _, c := range []struct{ check, key, tool, args, want string }{
		{"none", "free", "garden_set_tempo", `{"bpm":97}`, "97"},
		{"deny", "denied", "garden_status", `{}`, "no music"},
		{"approve by a setting", "free", "garden_seek", `{"beat":3}`, tool.StatusPending},
		{"approve by a rule", "ruled", "garden_set_tempo", `{"bpm":55}`, tool.StatusPending},
		{"read only", "reader", "garden_set_tempo", `{"bpm":55}`, "may change something"},
		{"read only, a tool that reads", "reader", "garden_status", `{}`, "tempo"},
		{"quota", "poor", "garden_status", `{}`, "1 tool calls a day"},
		{"hidden", "elsewhere", "garden_status", `{}`, "no upstream named"},
		{"a value beyond its maximum", "free", "orpheus_generate", `{"temperature":99,"num_variations":50}`, "temperature"},
		{"an unknown argument", "free", "orpheus_generate", `{"loudness":1}`, "unknown argument"},
		{"a wrong type", "free", "orpheus_generate", `{"num_variations":"many"}`, "num_variations"},
		{"a content that is missing", "free", "cas_store", `{"mime_type":"audio/midi"}`, "required but missing"},
		{"an unknown unit", "free", "time_convert", `{"value":1,"from":"x","to":"beats"}`, "expected one of"},
		{"a message that is missing", "free", "add_annotation", `{"artifact_id":"artifact_0123456789abcdef"}`, "message: required but missing"},
		{"an unknown mode", "free", "job_poll", `{"timeout_ms":1,"mode":"few"}`, "expected one of"},
		{"too long a sleep", "free", "job_sleep", `{"milliseconds":99999}`, "expected at most 30000"},
	} {
		if text := call(c.key, c.tool, c.args); !strings.Contains(text, c.want) || strings.Contains(text, "unmarshal") {
			t.Errorf("%s: %s", c.check, text)
		}
	}
	for _, c := range []struct{ method, params, want, not string }{
		{"resources/list", "", "hoot://artifacts/recent", "luanette://"},
		{"resources/templates/list", "", "hoot://artifact/{id}", "luanette://"},
		{"resources/read", `"uri":"hoot://garden"`, "tempo_bpm", "error"},
		{"resources/read", `"uri":"hoot://nothing"`, "error", "contents"},
		{"prompts/list", "", "midi-workflow", "write-script"},
		{"prompts/get", `"name":"midi-workflow","arguments":{"operation":"generate"}`, "messages", `"error":`},
		{"prompts/get", `"name":"write-script","arguments":{"task":"x"}`, "no prompt", "messages"},
	} {
		if _, text := (keyClient{t, url, "free-token"}).rpc("/mcp/hootenanny", c.method, c.params); !strings.Contains(text, c.want) || strings.Contains(text, c.not) {
			t.Errorf("%s %s: %s", c.method, c.params, text)
		}
	}
	if text := call("free", "garden_status", `{}`); !strings.Contains(text, "97") {
		t.Errorf("a call that was refused had an effect: %s", text)
	}
	if stats, err := srv.jobs.Stats(t.Context()); err != nil || len(stats) > 0 && stats[job.Pending]+stats[job.Running]+stats[job.Complete]+stats[job.Failed] > 0 {
		t.Errorf("jobs %+v %v", stats, err)
	}
}
