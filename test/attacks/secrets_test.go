package attacks

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/observe/telemetry/otlptest"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// planted returns a secret for a setting; no other text begins like it.
func planted(where string) string { return "PLANTED-" + where }

// TestSecretsReachNoSink sets secrets in every setting that takes one, uses the program,
// and looks for them in everything it writes: logs, telemetry, HTTP responses, errors,
// events, the audit log, sessions, journals of jobs, the configuration as it is shown,
// every table of its database, every file of its data folder, and a backup.
func TestSecretsReachNoSink(t *testing.T) {
	t.Parallel()
	for kind, fresh := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			reachNoSink(t, fresh(t))
		})
	}
}

func reachNoSink(t *testing.T, database string) {
	sink := otlptest.Start(t)
	h, end := serveSecrets(t, database, sink)
	output := use(h)
	end()
	output += h.log.String() + fmt.Sprintf("%+v%+v", sink.Spans(), sink.Logs())
	rows := tables(t, database)
	stored := files(t, h.data)
	if strings.HasPrefix(database, "sqlite:") {
		stored += unpackedBackup(t, h, database)
	}
	// The search works: texts that are no secrets are found.
	for where, text := range map[string]string{"the output": output, "the database": rows} {
		if !strings.Contains(text, "MARKED-journal") || !strings.Contains(text, "MARKED-session") {
			t.Errorf("the output of a script is not found in %s", where)
		}
	}
	if !strings.Contains(rows, "MARKED-javascript") {
		t.Error("the state of a JavaScript session is not found in the database")
	}
	for where, text := range map[string]string{"the output": output, "the database": rows, "a file": stored} {
		for _, found := range leaks(text) {
			t.Errorf("a secret is in %s: %s", where, found)
		}
	}
}

// serveSecrets starts the program with a secret in every setting that takes one.
func serveSecrets(t *testing.T, database string, sink *otlptest.Sink) (h *program, end func()) {
	n := newToolServer(t)
	login := oauthtest.New(t, http.NotFoundHandler())
	login.Secret = planted("client-secret")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(planted("file")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := config.Environment{
		"HEADER": planted("env"), "BEARER": planted("bearer"), "MODEL": planted("model"), "HOOK": planted("webhook"), "SIGN": "whsec_" + base64.StdEncoding.EncodeToString([]byte(planted("sign"))),
		"OAUTH": planted("oauth-key-which-is-long"), "CLIENT": planted("client-secret"), "ENGINE_API_KEY": planted("api-key"),
		"CHILD": planted("child-env"), "PATH": os.Getenv("PATH"),
	}
	h, end = serve(t, fmt.Sprintf(`
database = %q
telemetry.otlp_endpoint = %q
chat.key = "${env:MODEL}"
chat.base_url = "http://user:%s@127.0.0.1:1/v1"
chat.callback_token = "${env:HOOK}"
chat.callback_secret = "${env:SIGN}"
oauth.key = "${env:OAUTH}"
jobs.upstream_wait = "1ms"

[upstreams.byheader]
url = "%s/mcp"
headers = { X-Plain = %q, X-Env = "${HEADER}", X-File = "Bearer ${file:%s}" }
[upstreams.bybearer]
url = "%s/mcp"
bearer_env = "BEARER"
[upstreams.byquery]
url = "%s/mcp?key=%s"
[upstreams.child]
command = "sh"
args = ["-c", "exit 3", "--token", %q]
env = { TOKEN = "${CHILD}", OTHER = %q, MORE = "${file:%s}" }
[upstreams.missing]
url = "%s/mcp"
headers = { X-File = "%s${file:/nowhere/at/all}" }
[upstreams.robot]
url = %q
oauth = { grant = "credentials", client_id = "robot", client_secret = "${env:CLIENT}" }
`, database, sink.HTTP, planted("model-url"), n.URL, planted("header"), file, n.URL, n.URL, planted("query"), planted("argument"), planted("env-table"), file, n.URL, planted("beside"), login.URL()), env)
	for _, name := range []string{"byheader", "bybearer", "byquery"} {
		h.awaitAs(keyholder, "call_tool", map[string]any{"name": name + ".echo", "arguments": map[string]string{"text": "hello"}}, "hello")
	}
	if seen := n.headers(); !strings.Contains(seen, planted("file")) || !strings.Contains(seen, planted("env")) || !strings.Contains(seen, planted("bearer")) {
		t.Fatalf("the upstream did not receive its secrets: %s", seen)
	}
	return h, end
}

var keyholder = bearing(planted("api-key"))

// use calls the program's tools and endpoints, and returns all their output.
func use(h *program) string {
	var output strings.Builder
	add := func(text string) { output.WriteString(text + "\n") }
	call := func(tool string, args map[string]any) string {
		text := h.call(tool, args, keyholder)
		add(text)
		return text
	}
	for _, name := range []string{"child", "missing", "robot", "byheader", "byquery"} {
		call("mcp_status", map[string]any{"namespace": name})
		call("call_tool", map[string]any{"name": name + ".nothing", "arguments": map[string]string{}})
	}
	call("lua_eval", map[string]any{"code": `local all = {} for k, v in pairs(_G) do all[#all+1] = tostring(k) .. tostring(v) end return all, os.getenv and os.getenv("HEADER")`})
	lua := sessionID(call("session_create", map[string]any{"name": "kept"}))
	call("lua_eval", map[string]any{"session_id": lua, "code": `kept = mcp.byheader.echo{text = "MARKED-session"} failed = {pcall(mcp.missing.echo, {})} return kept, failed`})
	javascript := sessionID(call("session_create", map[string]any{"language": "javascript"}))
	call("lua_eval", map[string]any{"session_id": javascript, "code": `globalThis.kept = await mcp.byquery.echo({text: "MARKED-javascript"}); kept`})
	script := call("script_store", map[string]any{"content": `function main() mcp.byheader.echo{text = "MARKED-journal"} pcall(mcp.child.nothing, {}) return mcp.bybearer.echo{text = "MARKED-journal"} end`})
	job := submatch(`"job_id":"([^"]+)"`, call("lua_execute", map[string]any{"script_hash": submatch(`"hash":"([^"]+)"`, script)}))
	add(h.awaitAs(keyholder, "job_status", map[string]any{"job_id": job}, "completed"))
	call("job_journal", map[string]any{"job_id": job})
	call("job_logs", map[string]any{"job_id": job})
	ask := func(method, path, body string) {
		_, text := h.ask(method, path, body, keyholder)
		add(text)
	}
	ask(http.MethodPost, "/api/v1/admin/orgs/o/mcp-servers", `{"id":"theirs","name":"theirs","url":"http://127.0.0.1:1/mcp","authToken":"`+planted("servers-token")+`"}`)
	ask(http.MethodGet, "/api/v1/admin/orgs/o/mcp-servers?discover=true", "")
	for _, path := range []string{
		"/", "/health", "/ready", "/api/v1/config", "/api/v1/traces", "/api/v1/me", "/api/v1/keys", "/api/v1/upstreams/robot/login", "/mcp/byheader", "/api/v1/openapi.json",
		"/api/v1/audit?limit=1000", "/api/v1/activity?own=true", "/api/v1/audit/chains", "/api/v1/audit/verify", "/api/v1/pins", "/artifacts",
	} {
		ask(http.MethodGet, path, "")
	}
	ask(http.MethodPost, "/api/v1/chat", `{"client_id":"o","user_id":"u","message":"hello"}`)
	return output.String() + events(h, keyholder)
}

// leaks returns the secrets in a text, with some text around each.
func leaks(text string) (found []string) {
	for at := 0; ; {
		i := strings.Index(text[at:], "PLANTED-")
		if i < 0 {
			return found
		}
		at += i
		found = append(found, fmt.Sprintf("%q", text[max(at-120, 0):min(at+60, len(text))]))
		at += len("PLANTED-")
	}
}
