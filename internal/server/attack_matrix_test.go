package server

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// endless are routes whose responses do not end, or last long.
var endless = map[string]bool{"/mcp/sse": true, "GET /debug/pprof/profile": true, "GET /debug/pprof/trace": true}

// matrixTools are all tools of ours, with arguments that name what belongs to the owner: JOB,
// LATER (a job that waits), RULE (a remembered decision of an administrator), SCHEDULE, SESSION, TRACE, APPROVAL, HASH (a script). Those with ids must say to others
// that there is no such thing.
var matrixTools = map[string]string{
	"approval_decide": `{"approval_id":"APPROVAL","decision":"allow"}`, "approval_delegate": `{"role":"finance","to":"person:x","until":"1d"}`, "approval_forget": `{"id":"RULE"}`,
	"approval_list": `{}`, "approval_status": `{"approval_id":"APPROVAL"}`,
	"call_tool": `{"name":"job_status","arguments":{"job_id":"JOB"}}`, "call_tool_read": `{"name":"job_status","arguments":{"job_id":"JOB"}}`, "execute_code": `{"language":"lua","code":"return 1","session_id":"SESSION"}`,
	"get_tool_definitions": `{"names":["job_status"]}`,
	"job_cancel":           `{"job_id":"LATER"}`, "job_journal": `{"job_id":"JOB"}`, "job_list": `{}`, "job_logs": `{"job_id":"JOB"}`,
	"job_poll": `{"job_ids":["JOB"],"timeout_ms":1}`, "job_replay": `{"job_id":"JOB"}`, "job_stats": `{}`, "job_status": `{"job_id":"JOB"}`, "job_undo": `{"job_id":"JOB"}`, "job_resume": `{"job_id":"JOB"}`,
	"lua_describe": `{"script_hash":"HASH"}`, "lua_eval": `{"code":"return mark","session_id":"SESSION"}`, "lua_execute": `{"script_hash":"000000000000"}`,
	"lua_help": `{}`, "lua_preview": `{"code":"return 1","session_id":"SESSION"}`,
	"mcp_connect": `{"namespace":"x","url":"http://127.0.0.1:1/mcp"}`, "mcp_disconnect": `{"namespace":"x"}`, "mcp_list_upstreams": `{}`, "mcp_status": `{}`,
	"prompt_get": `{"name":"explain-script","arguments":{"script":"HASH"}}`, "resource_read": `{"uri":"lua://jobs/JOB"}`, "resource_search": `{}`,
	"result_read":   `{"handle":"$r1","count":10}`,
	"schedule_list": `{}`, "schedule_pause": `{"schedule_id":"SCHEDULE"}`, "schedule_remove": `{"schedule_id":"SCHEDULE"}`, "schedule_resume": `{"schedule_id":"SCHEDULE"}`,
	"script_get": `{"script_hash":"HASH"}`, "script_history": `{"name":"none"}`, "script_publish": `{"script_hash":"000000000000"}`, "script_search": `{}`,
	"script_store": `{"content":"return 2"}`, "script_unpublish": `{"name":"none"}`, "search_tools": `{"query":"job"}`,
	"session_close": `{"session_id":"SESSION"}`, "session_create": `{}`, "session_fork": `{"session_id":"SESSION"}`, "session_list": `{}`,
	"session_reset": `{"session_id":"SESSION"}`, "session_script": `{"session_id":"SESSION"}`,
	"tools_refresh": `{}`, "trace_get": `{"trace_id":"TRACE"}`,
}

// mark is in everything that the owner makes. Nobody else may ever receive it, except those who
// see what people of the organisation do.
const mark = "mark-of-ada-4711"

// orgScript is the name of a script that the owner publishes for the organisation acme, and in
// a rule of its policy. Nobody
// outside of it may receive the name.
const orgScript = "ledger-of-acme-0815"

// actor is somebody who tries everything: a key, or a person who is signed in.
type actor struct {
	name   string
	org    string
	user   string // the user that the key is for, or the person
	scopes []principal.Scope
	sees   bool // what everybody of the organisation acme does and stores: events, traces, audit, artifacts
	chats  bool // for everybody of the organisation acme

	token  string        // of a key
	cookie func() string // a session of a person; a new one each time, because some routes end it
}

// may reports whether the actor's scopes include that of a class of routes.
func (a actor) may(class string) bool { return slices.Contains(a.scopes, principal.Scope(class)) }

// headers are those of a request of the actor.
func (a actor) headers() []string {
	if a.cookie == nil {
		name, value := httpjsontest.Bearer(a.token)
		return []string{name, value}
	}
	cookie := a.cookie()
	return []string{"Cookie", "luanette_session=" + cookie, "X-CSRF-Token", apikey.CSRF(cookie), "Content-Type", "application/json"}
}

// TestAttackMatrix tries every route and every tool of ours as keys and people of the same
// and of another organisation, with the ids of what somebody else made.
func TestAttackMatrix(t *testing.T) {
	t.Parallel()
	eachMatrix(t, func(m *matrix) {
		for _, chats := range []bool{false, true} { // those who may delete conversations are the last
			for _, a := range m.actors {
				if a.chats == chats {
					m.tryRoutes(a)
					m.tryTools(a)
					m.tryContents(a)
					m.tryUpstreams(a)
				}
			}
			m.ownerHasAll(!chats)
		}
		for _, a := range m.actors { // last: what they ask for is in their own traces
			m.tryScripts(a)
		}
		m.ownerHasScript()
		if stored, err := m.srv.upstreams.Store.All(m.t.Context()); err != nil || len(stored) > 0 {
			m.t.Errorf("%d upstreams were added or removed, %v", len(stored), err)
		}
	})
}

// eachMatrix runs attacks on what an owner has: a key, and a person who is in both
// organisations, each on another database.
func eachMatrix(t *testing.T, attack func(m *matrix)) {
	for owner, database := range map[string]func(testing.TB) string{"ada": tables.SQLite, "ann": tables.Postgres} {
		t.Run(owner, func(t *testing.T) {
			t.Parallel()
			attack(startMatrix(t, database(t), owner))
		})
	}
}

type matrix struct {
	t       *testing.T
	url     string
	srv     *Server
	owner   actor
	actors  []actor
	ids     *strings.Replacer
	content string              // the hash of a content of the owner
	paths   map[string][]string // values of wildcards
}

func startMatrix(t *testing.T, database, owner string) *matrix {
	t.Helper()
	model := llmtest.Start(t, func(llmtest.Request) llmtest.Step { return llmtest.Step{Echo: true} })
	env := config.Environment{"ENGINE_API_KEY": "root-token", "ANTHROPIC_API_KEY": llmtest.Key}
	flags := map[string]string{"database": database}
	if db.PathOf(database) == "" {
		flags["node"] = "west"
		env["LUANETTE_OAUTH_KEY"] = "0123456789abcdef0123456789abcdef"
	}
	file := "hud.recent_traces = 100000\nhud.recent_events = 100000\n" + withPeople +
		"[chat]\nbase_url = \"" + model.URL + "\"\n[approvals]\n\"fine.buy\" = \"all\"\n[upstreams.fine]\nurl = \"" + serveTools(t, "fine", &shop{}) + "\"\n" +
		"[[orgs.acme.policy]]\ntool = \"" + orgScript + ".sell\"\ndo = \"deny\"\n"
	m := &matrix{t: t}
	m.url, m.srv = start(t, config.Sources{File: configtest.WriteFile(t, file), Env: env, Flags: flags})
	m.srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	m.srv.catalog.Refresh(t.Context())
	m.addKeys()
	m.addPeople()
	m.actors = append(m.actors, actor{name: "anonymous"})
	at := slices.IndexFunc(m.actors, func(a actor) bool { return a.name == owner })
	m.owner = m.actors[at]
	m.actors = slices.Delete(m.actors, at, at+1)
	m.make()
	return m
}

// ordinary are the scopes of most actors.
func ordinary(more ...principal.Scope) []principal.Scope {
	return append([]principal.Scope{principal.Chat, principal.MCP, principal.Read}, more...)
}

func (m *matrix) addKeys() {
	m.t.Helper()
	for _, a := range []actor{
		{name: "ada", org: "acme", user: "ada", scopes: ordinary()},
		{name: "bob", org: "acme", user: "bob", scopes: ordinary()},
		{name: "ada-elsewhere", org: "other", user: "ada", scopes: ordinary()},
		{name: "rival", org: "other", scopes: []principal.Scope{principal.Admin}},
		{name: "viewer", org: "acme", user: "vic", scopes: []principal.Scope{principal.Read}},
		{name: "revoked", org: "acme", user: "bea", scopes: ordinary()},
		{name: "boss", org: "acme", scopes: ordinary(principal.Org), sees: true, chats: true},
		{name: "plain", scopes: ordinary(), chats: true},
	} {
		var err error
		if _, a.token, err = m.srv.keys.Create(m.t.Context(), apikey.Key{Name: a.name, Rights: apikey.Rights{Scopes: a.scopes, Org: a.org, User: a.user}}); err != nil {
			m.t.Fatal(err)
		}
		switch a.name {
		case "rival": // an administrator of one organisation has every scope in it but those about the server
			a.scopes = ordinary(principal.Org)
		case "revoked":
			if _, err := m.srv.keys.Revoke(m.t.Context(), a.name); err != nil {
				m.t.Fatal(err)
			}
			a.scopes = nil
		}
		m.actors = append(m.actors, a)
	}
}

func (m *matrix) addPeople() {
	m.t.Helper()
	ann := m.signIn("ann", map[string][]string{"acme": {"author"}, "other": {"operator"}})
	ben := m.signIn("ben", map[string][]string{"acme": {"author"}})
	oda := m.signIn("oda", map[string][]string{"acme": {"operator"}})
	cid := m.signIn("cid", map[string][]string{"other": {"admin"}})
	bea := m.signIn("bea", map[string][]string{"acme": {"operator"}})
	before := m.begin(bea, "acme")
	if err := m.srv.people.Block(m.t.Context(), bea); err != nil {
		m.t.Fatal(err)
	}
	in := func(person, org string) func() string { return func() string { return m.begin(person, org) } }
	operator := ordinary(principal.Org, principal.Observe, principal.Metrics)
	m.actors = append(m.actors,
		actor{name: "ann", org: "acme", user: ann, scopes: ordinary(), cookie: in(ann, "acme")},
		actor{name: "ann elsewhere", org: "other", user: ann, scopes: operator, cookie: in(ann, "other")},
		actor{name: "ben", org: "acme", user: ben, scopes: ordinary(), cookie: in(ben, "acme")},
		actor{name: "oda", org: "acme", user: oda, scopes: operator, sees: true, chats: true, cookie: in(oda, "acme")},
		actor{name: "cid", org: "other", user: cid, scopes: ordinary(principal.Org), cookie: in(cid, "other")},
		actor{name: "bea, blocked", org: "acme", user: bea, cookie: func() string { return before }},
	)
}

// signIn signs somebody in, as a provider would.
func (m *matrix) signIn(name string, roles map[string][]string) (person string) {
	m.t.Helper()
	p, err := m.srv.people.SignIn(m.t.Context(), people.Arrival{
		Identity: people.Identity{Issuer: "https://login.example", Subject: name}, Name: name, Email: name + "@example.com", Roles: roles, Source: "corp",
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return p.ID
}

// begin begins a session of a person in an organisation.
func (m *matrix) begin(person, org string) (cookie string) {
	m.t.Helper()
	cookie, _, err := m.srv.people.BeginSession(m.t.Context(), people.Begun{Person: person, Org: org, Provider: "corp"})
	if err != nil {
		m.t.Fatal(err)
	}
	return cookie
}

// call calls a tool: keys do so with MCP, people from the page.
func (m *matrix) call(a actor, tool, args string) (status int, text string) {
	m.t.Helper()
	if a.cookie == nil {
		return keyClient{m.t, m.url, a.token}.rpc("/mcp", "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, tool, args))
	}
	return m.request(a, http.MethodPost, "/tools/"+tool, args)
}

func (m *matrix) request(a actor, method, path, body string) (status int, text string) {
	m.t.Helper()
	response, text := httpjsontest.Read(m.t, method, m.url+path, body, append(a.headers(), "X-Org", "acme", "OpenAI-Organization", "acme")...)
	return response.StatusCode, text
}

// member returns a text in an answer.
func (m *matrix) member(answer, name string) string {
	m.t.Helper()
	found := regexp.MustCompile(`"` + name + `": ?"([^"]+)"`).FindStringSubmatch(answer)
	if found == nil {
		m.t.Fatalf("no %s in %s", name, answer)
	}
	return found[1]
}

// make makes one thing of each kind as the owner.
func (m *matrix) make() {
	m.t.Helper()
	call := func(tool, args string) string {
		_, text := m.call(m.owner, tool, args)
		return text
	}
	hash := m.member(call("script_store", `{"content":"function main(p) print(p.m) emit('script.done', {m = p.m}) return p end","tags":["`+mark+`"]}`), "hash")
	run := func(hash, more string) string {
		return call("lua_execute", `{"script_hash":"`+hash+`","params":{"m":"`+mark+`"},"tags":["`+mark+`"]`+more+`}`)
	}
	job := m.member(run(hash, ""), "job_id")
	if text := call("job_poll", `{"job_ids":["`+job+`"],"timeout_ms":60000}`); !strings.Contains(text, mark) {
		m.t.Fatalf("the owner's job: %s", text)
	}
	later := m.member(run(hash, `,"delay_ms":3600000`), "job_id")
	schedule := m.member(run(hash, `,"schedule":"0 0 1 1 *"`), "schedule_id")
	run(m.member(call("script_store", `{"content":"function main(p) return mcp.fine.buy { note = p.m } end"}`), "hash"), "")
	clocktest.Await(m.t, func() bool { return strings.Contains(call("approval_list", `{}`), `"approval_id":"`) })
	approval := m.member(call("approval_list", `{}`), "approval_id")
	session := m.member(call("session_create", `{"name":"`+mark+`"}`), "session_id")
	call("lua_eval", `{"session_id":"`+session+`","code":"mark = '`+mark+`' otel.set_attribute('m', mark) return mark"}`)
	if text := call("lua_eval", `{"code":"local list = {} for i = 1, 10000 do list[i] = '`+mark+`' end return list"}`); !strings.Contains(text, "$r1") {
		m.t.Fatalf("the owner's result: %.500s", text)
	}
	published := m.member(call("script_store", `{"content":"function describe() return {description = 'Says who has it'} end function main() return 'it is of acme' end"}`), "hash")
	call("script_publish", `{"script_hash":"`+published+`","name":"`+orgScript+`"}`)
	m.content = cas.Sum([]byte(mark)).String()
	if text := call("lua_eval", `{"code":"return cas.store('`+mark+`', 'text/plain')"}`); !strings.Contains(text, m.content) {
		m.t.Fatalf("the owner's content: %.500s", text)
	}
	_, chat := m.request(m.owner, http.MethodPost, "/api/v1/chat", fmt.Sprintf(`{"client_id":"t","org":"acme","user_id":%q,"message":%q}`, m.owner.user, mark))
	plans := m.makeConversation()
	m.remember()
	trace := m.trace()
	m.ids = strings.NewReplacer("JOB", job, "LATER", later, "SCHEDULE", schedule, "SESSION", session, "TRACE", trace, "HASH", hash, "APPROVAL", approval, "PUBLISHED", published,
		"CONVERSATION", "acme/"+m.owner.user+"/plans", "MESSAGE", plans, "OWNER", m.owner.user, "RULE", "r-4711")
	m.paths = map[string][]string{
		"{id}": {trace, job, session, approval, hash, "artifact_" + hash[:12]}, "{org}": {"acme"}, "{user}": {m.owner.user}, "{name}": {"job_status"}, "{message}": {m.member(chat, "message_id")},
	}
}

// remember stores a decision of an administrator.
func (m *matrix) remember() {
	m.t.Helper()
	err := m.srv.store.Exec(m.t.Context(), `INSERT INTO approval_rules (id, scope, subject, allow, created, made_by, maker) VALUES ('r-4711', 'tool', $1, $2, 0, 'root', '{"id":"key:root"}')`, mark+".sell", false)
	if err != nil {
		m.t.Fatal(err)
	}
}

// makeConversation makes a conversation with a file as the owner, and returns its message.
func (m *matrix) makeConversation() (message string) {
	m.t.Helper()
	_, text := m.request(m.owner, http.MethodPost, "/api/v1/chat", fmt.Sprintf(`{"client_id":"t","org":"acme","user_id":%q,"chat_id":"plans","message":%q,`+
		`"attachments":[{"name":"plan.txt","mime_type":"text/plain","data":%q}]}`, m.owner.user, mark, base64.StdEncoding.EncodeToString([]byte(mark))))
	return m.member(text, "message_id")
}

// trace returns the trace of what the owner did in the session.
func (m *matrix) trace() string {
	m.t.Helper()
	for _, one := range m.srv.telemetry.Traces().List(m.t.Context(), 100) {
		if raw, err := m.srv.telemetry.Traces().JSON(m.t.Context(), one.ID); err == nil && strings.Contains(string(raw), mark) {
			return one.ID
		}
	}
	m.t.Fatal("no trace of the owner")
	return ""
}

// requests returns the requests of a route, with the owner's ids.
func (m *matrix) requests(pattern string) (method string, paths []string) {
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		method, path = http.MethodPost, pattern
	}
	paths = []string{strings.TrimSuffix(path, "{$}")}
	for wild, values := range m.paths {
		var more []string
		for _, p := range paths {
			if !strings.Contains(p, wild) {
				more = append(more, p)
				continue
			}
			for _, v := range values {
				more = append(more, strings.ReplaceAll(p, wild, v))
			}
		}
		paths = more
	}
	for i := range paths {
		paths[i] = wildcard.ReplaceAllString(paths[i], "x")
		if pattern == "GET /api/v1/events" {
			paths[i] += "?after=all&follow=false"
		}
	}
	return method, paths
}

func (m *matrix) tryRoutes(a actor) {
	for _, route := range m.srv.routes() {
		class := string(route.Scope)
		if endless[route.Pattern] && (a.may(class) || class == "open") {
			continue
		}
		if a.cookie != nil && route.Pattern == "DELETE /api/v1/me" {
			continue // it would erase the actor
		}
		method, paths := m.requests(route.Pattern)
		for _, path := range withOrg(paths) {
			m.tryRoute(a, class, route.Pattern, method, path)
		}
	}
}

func (m *matrix) tryRoute(a actor, class, pattern, method, path string) {
	status, body := m.request(a, method, path, m.body(pattern))
	refused := status == http.StatusUnauthorized || status == http.StatusForbidden
	if class != "open" && !a.may(class) && !refused {
		m.t.Errorf("%s: %s %s: %d", a.name, method, path, status)
	}
	if a.org == "other" && strings.Contains(path, "/orgs/acme") && !refused && status != http.StatusNotFound {
		m.t.Errorf("%s: %s %s of another organisation: %d", a.name, method, path, status)
	}
	own := pattern == "GET /api/v1/me/export" && a.user == m.owner.user // of all organisations
	if a.org != "acme" && !own && strings.Contains(body, orgScript) {
		m.t.Errorf("%s: %s %s tells of a script of another organisation: %.300s", a.name, method, path, body)
	}
	if strings.Contains(body, mark) && !own && !(a.sees && (class == "read" || strings.Contains(pattern, "/library"))) && !(a.chats && (class == "chat" || class == "org")) {
		m.t.Errorf("%s: %s %s shows what is not theirs: %.300s", a.name, method, path, body)
	}
	if a.sees && !strings.Contains(body, mark) && (pattern == "GET /api/v1/events" || pattern == "GET /api/v1/traces/{id}" && strings.HasSuffix(path, m.paths["{id}"][0])) {
		m.t.Errorf("%s: %s %s does not show what people of the organisation do: %.300s", a.name, method, path, body)
	}
}

// withOrg returns paths, and each again with the owner's organisation in the query.
func withOrg(paths []string) []string {
	all := slices.Clone(paths)
	for _, path := range paths {
		if strings.Contains(path, "?") {
			all = append(all, path+"&org=acme")
		} else {
			all = append(all, path+"?org=acme")
		}
	}
	return all
}

// body returns the body of a request: organisations are tried in it, too.
func (m *matrix) body(pattern string) string {
	if strings.HasPrefix(pattern, "POST /tools/") {
		return m.ids.Replace(`{"job_id":"JOB"}`)
	}
	if strings.HasSuffix(pattern, "/conversation/copy") {
		return `{"id":"plans"}`
	}
	return `{"org":"acme"}`
}

func (m *matrix) tryTools(a actor) {
	tools, err := m.srv.ownTools.Load().Tools(m.t.Context())
	if err != nil || len(tools) != len(matrixTools) {
		m.t.Errorf("%d tools (%v), and matrixTools has %d", len(tools), err, len(matrixTools))
	}
	for _, tool := range tools {
		args, known := matrixTools[tool.Name]
		if !known {
			m.t.Errorf("%s is not in matrixTools", tool.Name)
			continue
		}
		status, text := m.call(a, tool.Name, m.ids.Replace(args))
		if !a.may("mcp") {
			if status != http.StatusUnauthorized && status != http.StatusForbidden {
				m.t.Errorf("%s: %s: status %d", a.name, tool.Name, status)
			}
			continue
		}
		if strings.Contains(text, mark) && !(a.sees && slices.Contains([]string{"trace_get", "script_get", "script_search"}, tool.Name)) {
			m.t.Errorf("%s: %s shows what is not theirs: %.400s", a.name, tool.Name, text)
		}
		if names := strings.ContainsAny(args, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"); names && !a.sees && status < 400 && !isFailure(text) {
			m.t.Errorf("%s: %s of another's thing: %.400s", a.name, tool.Name, text)
		}
	}
}

// tryScripts tries to use, replace and withdraw the script of the organisation acme. Its members
// may use it.
func (m *matrix) tryScripts(a actor) {
	if !a.may("mcp") {
		return
	}
	for _, name := range []string{orgScript, orgScript + "@acme", strings.ReplaceAll(orgScript, "-", "_")} {
		if a.org == "acme" && (name != orgScript || a.sees) {
			continue
		}
		for tool, args := range map[string]string{
			name: `{}`, "call_tool": `{"name":"` + name + `"}`, "lua_eval": `{"code":"return mcp['` + name + `'] {}"}`, "script_history": `{"name":"` + name + `"}`,
		} {
			status, text := m.call(a, tool, args)
			if fails := status >= 400 || isFailure(text); fails == (a.org == "acme") {
				m.t.Errorf("%s: %s of %s: %.400s", a.name, tool, name, text)
			}
		}
		if _, text := m.call(a, "script_unpublish", `{"name":"`+name+`"}`); strings.Contains(text, `"removed":true`) {
			m.t.Errorf("%s withdraws %s: %.400s", a.name, name, text)
		}
		if status, text := m.call(a, "script_publish", m.ids.Replace(`{"script_hash":"PUBLISHED","name":"`+orgScript+`@acme"}`)); status < 400 && !isFailure(text) {
			m.t.Errorf("%s publishes into another organisation: %.400s", a.name, text)
		}
	}
	for tool, args := range map[string]string{"search_tools": `{"query":"says who has it"}`, "get_tool_definitions": `{"names":["ledger"]}`, "call_tool": `{"name":"ledger-of-acme-08"}`} {
		if _, text := m.call(a, tool, args); a.org != "acme" && strings.Contains(text, orgScript) {
			m.t.Errorf("%s: %s tells of a script of another organisation: %.400s", a.name, tool, text)
		}
	}
}

// contentReads are all ways of a script to a content of which it knows the hash, CONTENT.
var contentReads = []string{
	"cas.read('CONTENT')", "cas.read('cas:CONTENT')", "cas.read(cas.info('CONTENT').hash)", "fs.read(cas.path('CONTENT'))",
	"fs.read(cas.base_path() .. '/' .. ('CONTENT'):sub(1, 2) .. '/' .. ('CONTENT'):sub(3))", "cas.exists('CONTENT') and '" + mark[:8] + "' .. '" + mark[8:] + "'",
}

// tryContents reads a content of the owner by its hash, in scripts.
func (m *matrix) tryContents(a actor) {
	if !a.may("mcp") {
		return
	}
	for _, read := range contentReads {
		_, text := m.call(a, "lua_eval", fmt.Sprintf(`{"code":%q}`, "return "+strings.ReplaceAll(read, "CONTENT", m.content)))
		if a.sees != strings.Contains(text, mark) {
			m.t.Errorf("%s: %s: %.400s", a.name, read, text)
		}
	}
}

// tryUpstreams tries to connect and to remove upstreams that are not the actor's: at addresses
// that no organisation may use, of other organisations, of the server, and, without the scope
// org, any.
func (m *matrix) tryUpstreams(a actor) {
	if !a.may("mcp") {
		return
	}
	const public = "https://192.0.0.8/mcp" // of no host
	targets := [][2]string{
		{"x", "http://127.0.0.1:1/mcp"}, {"x", "https://10.0.0.1/mcp"}, {"x", "zmq+tcp://127.0.0.1:1"}, {"x", "file:///etc/passwd"},
		{"x@third", public}, {"x@", public},
	}
	if a.org != "acme" || !a.may("org") {
		targets = append(targets, [2]string{"x@acme", public}, [2]string{"fine@acme", public})
	}
	if !a.may("org") {
		targets = append(targets, [2]string{"x", public}, [2]string{"fine", public})
	}
	tries := [][2]string{{"mcp_disconnect", `{"namespace":"fine"}`}}
	for _, target := range targets {
		tries = append(tries, [2]string{"mcp_connect", fmt.Sprintf(`{"namespace":%q,"url":%q,"wait_ms":0}`, target[0], target[1])})
	}
	for _, try := range tries {
		for tool, args := range map[string]string{try[0]: try[1], "call_tool": `{"name":"` + try[0] + `","arguments":` + try[1] + `}`} {
			if status, text := m.call(a, tool, args); status < 400 && !isFailure(text) {
				m.t.Errorf("%s: %s %s: %.400s", a.name, tool, args, text)
			}
		}
	}
}

// ownerHasScript checks that nobody replaced or withdrew the script.
func (m *matrix) ownerHasScript() {
	if _, text := m.call(m.owner, orgScript, `{}`); !strings.Contains(text, "it is of acme") {
		m.t.Errorf("the owner's published script: %.600s", text)
	}
}

// isFailure reports whether a call had an error.
func isFailure(answer string) bool {
	return strings.Contains(answer, `"isError":true`) || strings.Contains(answer, `"error":{`)
}

// ownerHasAll checks that nothing of the owner's was changed by the attempts.
func (m *matrix) ownerHasAll(conversation bool) {
	for tool, args := range map[string]string{
		"job_status": `{"job_id":"JOB"}`, "session_list": `{}`, "schedule_list": `{}`, "lua_eval": `{"code":"return mark","session_id":"SESSION"}`, "trace_get": `{"trace_id":"TRACE"}`,
		"result_read": `{"handle":"$r1","count":10}`, "approval_status": `{"approval_id":"APPROVAL"}`,
	} {
		if _, text := m.call(m.owner, tool, m.ids.Replace(args)); !strings.Contains(text, mark) {
			m.t.Errorf("the owner's %s: %.600s", tool, text)
		}
	}
	for tool, args := range map[string]string{"job_status": `{"job_id":"LATER"}`, "approval_status": `{"approval_id":"APPROVAL"}`} {
		_, text := m.call(m.owner, tool, m.ids.Replace(args))
		if m.member(text, "status") != "pending" {
			m.t.Errorf("the owner's %s: %.600s", tool, text)
		}
	}
	if rules, err := m.srv.approvals.Rules(principal.With(m.t.Context(), principal.Local())); err != nil || len(rules) != 1 {
		m.t.Errorf("decisions of administrators: %+v, %v", rules, err)
	}
	if !conversation { // nor artifacts: those who see them may delete them
		return
	}
	if _, text := m.call(m.owner, "script_get", m.ids.Replace(`{"script_hash":"HASH"}`)); !strings.Contains(text, mark) {
		m.t.Errorf("the owner's script: %.600s", text)
	}
	for _, read := range contentReads {
		if _, text := m.call(m.owner, "lua_eval", fmt.Sprintf(`{"code":%q}`, "return "+strings.ReplaceAll(read, "CONTENT", m.content))); !strings.Contains(text, mark) {
			m.t.Errorf("the owner: %s: %.400s", read, text)
		}
	}
	if _, text := m.request(m.owner, http.MethodGet, "/api/v1/orgs/acme/users/"+m.owner.user+"/history", ""); !strings.Contains(text, mark) {
		m.t.Errorf("the owner's conversation: %.600s", text)
	}
}
