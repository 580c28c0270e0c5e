package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// matrixRoutes are all routes by who may use them: everybody ("open"), or holders of a scope.
// A new route is listed here with thought: what does it show of others?
var matrixRoutes = map[string][]string{
	"open": {
		"GET /health", "GET /ready", "/", "GET /{$}", "GET /icon.svg", "GET /assets/", "POST /api/v1/login", "POST /api/v1/logout", "GET /api/v1/me", "POST /api/v1/me/org",
		"GET /api/v1/me/logins", "DELETE /api/v1/me/logins/{namespace}", "GET /connect/{namespace}", "POST /connect/{namespace}", "GET /oauth/callback/finish",
		"GET /api/v1/me/secrets", "PUT /api/v1/me/secrets/{name}", "DELETE /api/v1/me/secrets/{name}",
		"GET /api/v1/me/keys", "POST /api/v1/me/keys", "DELETE /api/v1/me/keys/{name}", "GET /signin", "GET /signin/to/{provider}", "GET /signin/callback",
		"POST /signin/ended/{provider}", "GET /signout", "POST /signout", "GET /.well-known/oauth-authorization-server", "GET /oauth/authorize", "GET /oauth/consent",
		"POST /oauth/consent", "POST /oauth/token", "POST /oauth/revoke", "POST /oauth/register", "POST /oauth/device", "GET /device", "POST /device", "GET /api/v1/me/grants",
		"DELETE /api/v1/me/grants/{id}", "GET /api/v1/me/export", "DELETE /api/v1/me", "/.well-known/", "/mcp/.well-known/", "GET /oauth/callback", "GET /oauth/client.json",
		"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "GET /api/v1/openapi.json", "/api/v1/", "/v1/", "POST /hooks/{hook}",
	},
	"admin": {
		"GET /api/v1/keys", "POST /api/v1/keys", "DELETE /api/v1/keys/{name}", "GET /api/v1/people", "POST /api/v1/people/{id}/block", "POST /api/v1/people/{id}/unblock",
		"POST /api/v1/people/{id}/orgs", "DELETE /api/v1/people/{id}/orgs/{name}", "GET /api/v1/people/{id}/export", "DELETE /api/v1/people/{id}", "GET /api/v1/policy/check",
		"GET /api/v1/audit/chains", "GET /api/v1/audit/verify", "GET /api/v1/pins", "POST /api/v1/pins/approve", "GET /api/v1/pins/{id}", "POST /api/v1/pins/{id}/decide",
		"POST /api/v1/upstreams", "PATCH /api/v1/upstreams/{name}", "DELETE /api/v1/upstreams/{name}", "POST /api/v1/upstreams/{name}/restore",
		"POST /api/v1/upstreams/{name}/retry", "POST /api/v1/upstreams/{name}/disable", "POST /api/v1/upstreams/{name}/restart", "PATCH /api/v1/tools/{name}",
		"DELETE /api/v1/search/learned/all", "GET /api/v1/setup/registry", "POST /api/v1/setup/registry", "GET /api/v1/setup/import", "POST /api/v1/setup/import",
		"POST /api/v1/setup/servers", "GET /api/v1/setup/servers/{name}", "PATCH /api/v1/setup/servers/{name}", "DELETE /api/v1/setup/servers/{name}",
		"POST /api/v1/setup/servers/{name}/restore", "POST /api/v1/upstreams/{namespace}/login", "DELETE /api/v1/upstreams/{namespace}/login", "GET /debug/pprof/{$}",
		"GET /debug/pprof/profile", "GET /debug/pprof/trace", "GET /debug/pprof/symbol", "GET /debug/pprof/{name}", "GET /debug/goroutines", "DELETE /api/v1/library/{id}",
		"POST /api/v1/library/{id}/restore",
	},
	"mcp": {
		"/mcp", "/mcp/sse", "/mcp/message", "/mcp/{namespace}", "DELETE /api/v1/search/learned", "GET /openapi.json", "POST /tools/{name}", "POST /tools/{space}/{name}",
		"GET /api/v1/library", "GET /api/v1/library/{id}", "GET /api/v1/library/{id}/content", "GET /api/v1/library/{id}/midi",
	},
	"read": {
		"GET /api/v1/events", "GET /api/v1/calls", "GET /api/v1/traces", "GET /api/v1/traces/{id}", "GET /api/v1/config", "GET /api/v1/audit", "GET /api/v1/upstreams",
		"GET /api/v1/upstreams/{name}", "GET /api/v1/upstreams/{name}/connections", "GET /api/v1/upstreams/{name}/refusals", "GET /api/v1/tools", "GET /api/v1/nodes",
		"GET /api/v1/setup", "GET /api/v1/upstreams/{namespace}/login",
	},
	"chat": {
		"POST /api/v1/chat", "POST /api/v1/chat/stream", "POST /api/v1/chat/callback", "GET /api/v1/chat/{message}", "GET /api/v1/chat/{message}/stream",
		"GET /api/v1/chat/{message}/media/{media}", "POST /api/v1/chat/{message}/stop", "GET /api/v1/usage", "GET /api/v1/model", "GET /api/v1/languages",
		"GET /api/v1/orgs/{org}/users/{user}/preferences", "PUT /api/v1/orgs/{org}/users/{user}/preferences", "GET /api/v1/orgs/{org}/users/{user}/history",
		"GET /api/v1/orgs/{org}/users/{user}/conversations", "GET /api/v1/orgs/{org}/users/{user}/conversation", "DELETE /api/v1/orgs/{org}/users/{user}/conversation",
		"GET /api/v1/orgs/{org}/users/{user}/modes", "PUT /api/v1/orgs/{org}/users/{user}/modes", "DELETE /api/v1/orgs/{org}/users/{user}/history",
		"POST /v1/chat/completions", "GET /v1/models", "GET /v1/models/{model...}",
	},
	"org": {
		"GET /api/v1/orgs/{org}/usage", "GET /api/v1/admin/orgs/{org}/mcp-servers", "PUT /api/v1/admin/orgs/{org}/mcp-servers", "POST /api/v1/admin/orgs/{org}/mcp-servers",
		"PUT /api/v1/admin/orgs/{org}/mcp-servers/{server}", "PATCH /api/v1/admin/orgs/{org}/mcp-servers/{server}", "DELETE /api/v1/admin/orgs/{org}/mcp-servers/{server}",
		"GET /api/v1/admin/orgs/{org}/config", "PUT /api/v1/admin/orgs/{org}/config", "DELETE /api/v1/admin/orgs/{org}/config",
		"GET /api/v1/admin/orgs/{org}/prompt-overrides", "PUT /api/v1/admin/orgs/{org}/prompt-overrides", "DELETE /api/v1/admin/orgs/{org}/prompt-overrides",
		"GET /api/v1/admin/orgs/{org}/modes", "GET /api/v1/admin/orgs/{org}/modes/{mode}", "PUT /api/v1/admin/orgs/{org}/modes/{mode}",
		"DELETE /api/v1/admin/orgs/{org}/modes/{mode}", "GET /api/v1/admin/orgs/{org}/usage", "GET /api/v1/admin/orgs/{org}/users/{user}/mcp-servers",
		"PUT /api/v1/admin/orgs/{org}/users/{user}/mcp-servers", "POST /api/v1/admin/orgs/{org}/users/{user}/mcp-servers",
		"PUT /api/v1/admin/orgs/{org}/users/{user}/mcp-servers/{server}", "PATCH /api/v1/admin/orgs/{org}/users/{user}/mcp-servers/{server}",
		"DELETE /api/v1/admin/orgs/{org}/users/{user}/mcp-servers/{server}", "GET /api/v1/admin/orgs/{org}/users/{user}/prompt-overrides",
		"PUT /api/v1/admin/orgs/{org}/users/{user}/prompt-overrides", "DELETE /api/v1/admin/orgs/{org}/users/{user}/prompt-overrides",
		"GET /api/v1/admin/orgs/{org}/users/{user}/memory", "DELETE /api/v1/admin/orgs/{org}/users/{user}/memory", "GET /api/v1/admin/orgs/{org}/users/{user}/mode",
		"PUT /api/v1/admin/orgs/{org}/users/{user}/mode", "DELETE /api/v1/admin/orgs/{org}/users/{user}/history",
	},
	"metrics": {
		"GET /metrics",
	},
}

// endless are routes whose responses do not end, or last long.
var endless = map[string]bool{"/mcp/sse": true, "GET /debug/pprof/profile": true, "GET /debug/pprof/trace": true}

// matrixTools are all tools of ours, with arguments that name what belongs to the owner: JOB,
// LATER (a job that waits), SCHEDULE, SESSION, TRACE. Those with ids must say to others
// that there is no such thing.
var matrixTools = map[string]string{
	"approval_decide": `{"id":"a-x","decision":"allow"}`, "approval_delegate": `{"role":"finance","to":"person:x"}`, "approval_forget": `{"id":"x"}`,
	"approval_list": `{}`, "approval_status": `{"id":"a-x"}`,
	"call_tool": `{"name":"job_status","arguments":{"job_id":"JOB"}}`, "execute_code": `{"language":"lua","code":"return 1","session_id":"SESSION"}`,
	"get_tool_definitions": `{"names":["job_status"]}`,
	"job_cancel":           `{"job_id":"LATER"}`, "job_journal": `{"job_id":"JOB"}`, "job_list": `{}`, "job_logs": `{"job_id":"JOB"}`,
	"job_poll": `{"job_ids":["JOB"],"timeout_ms":1}`, "job_replay": `{"job_id":"JOB"}`, "job_stats": `{}`, "job_status": `{"job_id":"JOB"}`, "job_undo": `{"job_id":"JOB"}`,
	"lua_describe": `{"script_hash":"HASH"}`, "lua_eval": `{"code":"return mark","session_id":"SESSION"}`, "lua_execute": `{"script_hash":"000000000000"}`,
	"lua_help": `{}`, "lua_preview": `{"code":"return 1","session_id":"SESSION"}`,
	"mcp_connect": `{"namespace":"x","url":"http://127.0.0.1:1/mcp"}`, "mcp_disconnect": `{"namespace":"x"}`, "mcp_list_upstreams": `{}`, "mcp_status": `{}`,
	"result_read":   `{"handle":"r-x"}`,
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

// actor is somebody who tries everything.
type actor struct {
	name, token string
	org         string
	scopes      []principal.Scope
	sees        bool // what the owner does: events, traces, audit
}

// may reports whether the actor's scopes include that of a class of routes.
func (a actor) may(class string) bool { return slices.Contains(a.scopes, principal.Scope(class)) }

// TestAttackMatrix tries every route and every tool of ours as people of the same and of
// another organisation, with the ids of what somebody else made, on both databases.
func TestAttackMatrix(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": nil, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startMatrix(t, database)
			for _, a := range m.actors {
				m.tryRoutes(a)
				m.tryTools(a)
			}
			m.ownerHasAll()
		})
	}
}

type matrix struct {
	t      *testing.T
	url    string
	srv    *Server
	owner  keyClient
	actors []actor
	ids    *strings.Replacer
	paths  map[string][]string // values of wildcards
}

func startMatrix(t *testing.T, database func(testing.TB) string) *matrix {
	t.Helper()
	env := config.Environment{"ENGINE_API_KEY": "root-token"}
	flags := map[string]string{}
	if database != nil {
		flags["database"] = database(t)
		flags["node"] = "west"
		env["OAUTH_KEY"] = "0123456789abcdef0123456789abcdef"
	}
	m := &matrix{t: t}
	m.url, m.srv = start(t, config.Sources{File: configtest.WriteFile(t, "hud.recent_traces = 100000\nhud.recent_events = 100000\n"+withPeople), Env: env, Flags: flags})
	use := []principal.Scope{principal.Chat, principal.MCP, principal.Read}
	for _, one := range []struct {
		name, org string
		user      string
		scopes    []principal.Scope
		sees      bool
	}{
		{"ada", "acme", "ada", use, true},
		{"bob", "acme", "bob", use, false},
		{"ada-elsewhere", "other", "ada", use, false},
		{"rival", "other", "", []principal.Scope{principal.Admin}, false},
		{"viewer", "acme", "vic", []principal.Scope{principal.Read}, false},
		{"blocked", "acme", "bea", use, false},
		{"boss", "acme", "", append(slices.Clone(use), principal.Org), true},
		{"plain", "", "", use, false},
	} {
		_, token, err := m.srv.keys.Create(t.Context(), apikey.Key{Name: one.name, Rights: apikey.Rights{Scopes: one.scopes, Org: one.org, User: one.user}})
		if err != nil {
			t.Fatal(err)
		}
		a := actor{one.name, token, one.org, one.scopes, one.sees}
		switch one.name {
		case "ada":
			m.owner = keyClient{t, m.url, token}
			continue
		case "rival": // an administrator of one organisation has every scope in it but those about the server
			a.scopes = append(use, principal.Org)
		case "blocked":
			if _, err := m.srv.keys.Revoke(t.Context(), one.name); err != nil {
				t.Fatal(err)
			}
			a.scopes = nil
		}
		m.actors = append(m.actors, a)
	}
	m.actors = append(m.actors, actor{name: "anonymous"})
	m.make()
	return m
}

// make makes one thing of each kind as the owner.
func (m *matrix) make() {
	m.t.Helper()
	call := func(tool, args, member string) string { return structured(m.t, m.owner.call(tool, args), member) }
	hash := call("script_store", `{"content":"function main(p) print(p.m) emit('script.done', {m = p.m}) return p end"}`, "hash")
	run := func(more string) string {
		return `{"script_hash":"` + hash + `","params":{"m":"` + mark + `"},"tags":["` + mark + `"]` + more + `}`
	}
	job := call("lua_execute", run(""), "job_id")
	if text := m.owner.call("job_poll", `{"job_ids":["`+job+`"],"timeout_ms":60000}`); !strings.Contains(text, mark) {
		m.t.Fatalf("the owner's job: %s", text)
	}
	later := call("lua_execute", run(`,"delay_ms":3600000`), "job_id")
	schedule := call("lua_execute", run(`,"schedule":"0 0 1 1 *"`), "schedule_id")
	session := call("session_create", `{"name":"`+mark+`"}`, "session_id")
	m.owner.call("lua_eval", `{"session_id":"`+session+`","code":"mark = '`+mark+`' otel.set_attribute('m', mark) return mark"}`)
	trace := ""
	for _, one := range m.srv.telemetry.Traces().List(m.t.Context(), 100) {
		if raw, err := m.srv.telemetry.Traces().JSON(m.t.Context(), one.ID); err == nil && strings.Contains(string(raw), mark) {
			trace = one.ID
		}
	}
	if trace == "" {
		m.t.Fatal("no trace of the owner")
	}
	m.ids = strings.NewReplacer("JOB", job, "LATER", later, "SCHEDULE", schedule, "SESSION", session, "TRACE", trace, "HASH", hash)
	m.paths = map[string][]string{"{id}": {trace, job, session}, "{org}": {"acme"}, "{user}": {"ada"}, "{name}": {"job_status"}}
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
	classes := map[string]string{}
	for class, patterns := range matrixRoutes {
		for _, p := range patterns {
			classes[p] = class
		}
	}
	for _, route := range m.srv.routes() {
		class, known := classes[route.Pattern]
		if !known {
			m.t.Errorf("%s is not in matrixRoutes", route.Pattern)
			continue
		}
		delete(classes, route.Pattern)
		if endless[route.Pattern] && (a.may(class) || class == "open") {
			continue
		}
		method, paths := m.requests(route.Pattern)
		for _, path := range withOrg(paths) {
			name, value := httpjsontest.Bearer(a.token)
			response, body := httpjsontest.Read(m.t, method, m.url+path, m.body(route.Pattern), name, value, "X-Org", "acme", "OpenAI-Organization", "acme")
			refused := response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden
			if class != "open" && !a.may(class) && !refused {
				m.t.Errorf("%s: %s %s: %s", a.name, method, path, response.Status)
			}
			if a.org == "other" && strings.Contains(path, "/orgs/acme") && !refused && response.StatusCode != http.StatusNotFound {
				m.t.Errorf("%s: %s %s of another organisation: %s", a.name, method, path, response.Status)
			}
			if strings.Contains(body, mark) && !(a.sees && class == "read") {
				m.t.Errorf("%s: %s %s shows what is not theirs: %.300s", a.name, method, path, body)
			}
			if a.sees && !strings.Contains(body, mark) && (route.Pattern == "GET /api/v1/events" || route.Pattern == "GET /api/v1/traces/{id}" && strings.HasSuffix(path, m.paths["{id}"][0])) {
				m.t.Errorf("%s: %s %s does not show what people of the organisation do: %.300s", a.name, method, path, body)
			}
		}
	}
	for pattern := range classes {
		m.t.Errorf("there is no route %s", pattern)
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
	return `{"org":"acme"}`
}

func (m *matrix) tryTools(a actor) {
	tools, err := m.srv.ownTools.Tools(m.t.Context())
	if err != nil || len(tools) != len(matrixTools) {
		m.t.Errorf("%d tools (%v), and matrixTools has %d", len(tools), err, len(matrixTools))
	}
	client := keyClient{m.t, m.url, a.token}
	for _, tool := range tools {
		args, known := matrixTools[tool.Name]
		if !known {
			m.t.Errorf("%s is not in matrixTools", tool.Name)
			continue
		}
		status, text := client.rpc("/mcp", "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, tool.Name, m.ids.Replace(args)))
		if !a.may("mcp") {
			if status != http.StatusUnauthorized && status != http.StatusForbidden {
				m.t.Errorf("%s: %s: status %d", a.name, tool.Name, status)
			}
			continue
		}
		if strings.Contains(text, mark) && !(a.sees && tool.Name == "trace_get") {
			m.t.Errorf("%s: %s shows what is not theirs: %.400s", a.name, tool.Name, text)
		}
		if names := strings.ContainsAny(args, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && !strings.Contains(args, "HASH"); names && !a.sees && !isFailure(text) {
			m.t.Errorf("%s: %s of another's thing: %.400s", a.name, tool.Name, text)
		}
	}
}

// isFailure reports whether a call had an error.
func isFailure(answer string) bool {
	return strings.Contains(answer, `"isError":true`) || strings.Contains(answer, `"error":{`)
}

// ownerHasAll checks that nothing of the owner's was changed by the attempts.
func (m *matrix) ownerHasAll() {
	for tool, args := range map[string]string{
		"job_status": `{"job_id":"JOB"}`, "session_list": `{}`, "schedule_list": `{}`, "lua_eval": `{"code":"return mark","session_id":"SESSION"}`, "trace_get": `{"trace_id":"TRACE"}`,
	} {
		if text := m.owner.call(tool, m.ids.Replace(args)); !strings.Contains(text, mark) {
			m.t.Errorf("the owner's %s: %.600s", tool, text)
		}
	}
	var status struct {
		Result struct {
			StructuredContent struct{ Status string }
		}
	}
	text := m.owner.call("job_status", m.ids.Replace(`{"job_id":"LATER"}`))
	if decodeMessage(m.t, text, &status); status.Result.StructuredContent.Status != "pending" {
		m.t.Errorf("the owner's job that starts later: %.600s", text)
	}
}
