package attacks

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/app"
	"github.com/luanette/luanette/internal/oauth/oauthtest"
	"github.com/luanette/luanette/internal/telemetry/otlptest"
)

// planted is a secret that is given somewhere; nothing else begins so.
func planted(where string) string { return "PLANTED-" + where }

// TestSecretsReachNoSink gives secrets in every place that takes one, uses the
// program, and looks for them wherever it writes: logs, telemetry, answers over
// HTTP, errors, events, the configuration as it is shown, and every file it keeps.
func TestSecretsReachNoSink(t *testing.T) {
	t.Parallel()
	sink := otlptest.Start(t)
	n := newNeighbour(t)
	login := oauthtest.New(t, http.NotFoundHandler())
	login.Secret = planted("client-secret")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(planted("file")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := app.Environment{
		"HEADER": planted("env"), "BEARER": planted("bearer"), "MODEL": planted("model"), "HOOK": planted("webhook"),
		"OAUTH": planted("oauth-key-which-is-long"), "CLIENT": planted("client-secret"), "ENGINE_API_KEY": planted("api-key"),
		"CHILD": planted("child-env"), "PATH": os.Getenv("PATH"),
	}
	h, end := serve(t, fmt.Sprintf(`
telemetry.otlp_endpoint = %q
chat.key = "${env:MODEL}"
chat.base_url = "http://user:%s@127.0.0.1:1/v1"
chat.callback_token = "${env:HOOK}"
oauth.key = "${env:OAUTH}"

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
`, sink.HTTP, planted("model-url"), n.URL, planted("header"), file, n.URL, n.URL, planted("query"), planted("argument"), planted("env-table"), file, n.URL, planted("beside"), login.URL()), env)
	key := map[string]string{"Authorization": "Bearer " + planted("api-key")}
	var told bytes.Buffer
	say := func(text string) { told.WriteString(text + "\n") }
	for _, name := range []string{"byheader", "bybearer", "byquery"} {
		say(h.awaitAs(key, "call_tool", map[string]any{"name": name + ".echo", "arguments": map[string]string{"text": "hello"}}, "hello"))
	}
	if seen := n.headers(); !strings.Contains(seen, planted("file")) || !strings.Contains(seen, planted("env")) || !strings.Contains(seen, planted("bearer")) {
		t.Fatalf("the secrets did not reach the server they are for: %s", seen)
	}
	for _, name := range []string{"child", "missing", "robot", "byheader", "byquery"} {
		say(h.call("mcp_status", map[string]any{"namespace": name}, key))
		say(h.call("call_tool", map[string]any{"name": name + ".nothing", "arguments": map[string]string{}}, key))
	}
	say(h.call("lua_eval", map[string]any{"code": `local all = {} for k, v in pairs(_G) do all[#all+1] = tostring(k) .. tostring(v) end return all, os.getenv and os.getenv("HEADER")`}, key))
	say(h.call("session_create", map[string]any{"name": "kept"}, key))
	for _, path := range []string{"/health", "/ready", "/api/v1/config", "/api/v1/traces", "/api/v1/me", "/api/v1/keys", "/api/v1/upstreams/robot/login", "/mcp/byheader", "/api/v1/openapi.json"} {
		_, text := h.ask(http.MethodGet, path, "", key)
		say(text)
	}
	_, text := h.ask(http.MethodPost, "/api/v1/chat", `{"org":"o","user_id":"u","org_id":"o","message":"hello"}`, key)
	say(text)
	say(events(h, key))
	end()
	say(h.log.String())
	say(fmt.Sprintf("%+v", sink.Spans()))
	say(fmt.Sprintf("%+v", sink.Logs()))
	for _, where := range leaks(told.String()) {
		t.Errorf("a secret was told: %s", where)
	}
	err := filepath.WalkDir(h.data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, where := range leaks(string(text)) {
			t.Errorf("a secret is in %s: %s", filepath.Base(path), where)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// leaks are the secrets in a text, with a little of what is around them.
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
