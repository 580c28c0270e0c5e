package attacks

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/config"
)

// TestAttackSSRF connects to addresses that are not on the public internet, while every
// public host is allowed. None of them may be dialled.
func TestAttackSSRF(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, `mcp.allowed_hosts = ["*"]`, nil)
	for i, url := range []string{
		"http://169.254.169.254/latest/meta-data/", "https://169.254.169.254/", "https://[fe80::1]/mcp", "https://[fd00:ec2::254]/",
		"https://100.100.100.200/", "https://100.64.0.1/", "https://10.0.0.1/mcp", "https://192.168.1.1/", "https://172.16.0.1/",
		"https://[::ffff:10.0.0.1]/", "https://[::ffff:169.254.169.254]/", "https://[64:ff9b::a9fe:a9fe]/", "https://[2002:a9fe:a9fe::]/",
		"https://2852039166/", "https://0251.0376.0251.0376/", "https://0xa9fea9fe/", "https://169.254.43518/", "https://0.0.0.0/", "https://[::]/",
		"https://metadata.google.internal/", "https://printer.local/", "https://intranet/",
		"https://user:password@example.com/", "http://example.com/mcp", "file:///etc/passwd", "gopher://127.0.0.1/", "unix:///var/run/docker.sock",
		"zmq+tcp://10.0.0.1:5570",
	} {
		text := h.call("mcp_connect", map[string]any{"namespace": fmt.Sprintf("n%d", i), "url": url, "wait_ms": 0}, nil)
		if !strings.Contains(text, `"isError":true`) && !strings.Contains(text, `"error"`) {
			t.Errorf("%s: %s", url, text)
		}
	}
	if text := h.call("mcp_list_upstreams", map[string]any{}, nil); !strings.Contains(text, `"total":0`) {
		t.Errorf("an upstream was added: %s", text)
	}
}

// TestAttackRedirect connects to an allowed server that redirects to another one.
func TestAttackRedirect(t *testing.T) {
	t.Parallel()
	inside := newToolServer(t)
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		trap := newRedirect(t, inside.URL+"/mcp", status)
		h, _ := serve(t, "", nil)
		h.call("mcp_connect", map[string]any{"namespace": "trap", "url": trap + "/mcp", "wait_ms": 0, "headers": map[string]string{"X-Key": "s3cret"}}, nil)
		h.await("mcp_status", map[string]any{"namespace": "trap"}, "redirected")
		if seen := inside.headers(); seen != "" {
			t.Errorf("%d was followed: %s", status, seen)
		}
	}
}

// TestAttackCommand tries to start a program as a client, from a script in either
// language, and through the chat's registry of servers.
func TestAttackCommand(t *testing.T) {
	t.Parallel()
	h, end := serve(t, `keys.root = { env = "ROOT", scopes = ["admin"] }`, config.Environment{"ROOT": "root-token"})
	key := bearing("root-token")
	mark := filepath.Join(t.TempDir(), "started")
	spec := map[string]any{"namespace": "x", "url": "http://127.0.0.1:1/", "command": "touch", "args": []string{mark}, "transport": "stdio"}
	tries := map[string]string{
		"mcp_connect":         h.call("mcp_connect", spec, key),
		"mcp_connect by url":  h.call("mcp_connect", map[string]any{"namespace": "x", "url": "stdio:touch " + mark}, key),
		"lua":                 h.call("lua_eval", map[string]any{"code": fmt.Sprintf(`return tools.mcp_add("x", {command = "touch", args = {%q}})`, mark)}, key),
		"lua, by its library": h.call("lua_eval", map[string]any{"code": fmt.Sprintf(`return os.execute("touch %s")`, mark)}, key),
		"lua, by a pipe":      h.call("lua_eval", map[string]any{"code": fmt.Sprintf(`return io.popen("touch %s")`, mark)}, key),
		"lua, by a tool":      h.call("lua_eval", map[string]any{"code": fmt.Sprintf(`return tools.run_command{command = "touch %s"}`, mark)}, key),
		"javascript":          h.call("execute_code", map[string]any{"code": fmt.Sprintf(`return await tools.mcp_add("x", {command: "touch", args: [%q]})`, mark)}, key),
	}
	_, tries["registry"] = h.ask(http.MethodPost, "/api/v1/admin/orgs/o/mcp-servers", fmt.Sprintf(`{"id":"x","name":"x","command":"touch","args":[%q],"url":"","enabled":true}`, mark), key)
	for name, text := range tries {
		if !strings.Contains(text, "rror") {
			t.Errorf("%s: %s", name, text)
		}
	}
	end()
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program was started")
	}
}

// TestAttackTokenPassthrough looks for a client's credentials in the requests that an
// upstream receives.
func TestAttackTokenPassthrough(t *testing.T) {
	t.Parallel()
	n := newToolServer(t)
	h, _ := serve(t, "[upstreams.n]\nurl = \""+n.URL+"/mcp\"\nexpose = \"all\"\n", config.Environment{"ENGINE_API_KEY": "clients-own-token"})
	mine := map[string]string{
		"Authorization": "Bearer clients-own-token", "Cookie": "session=clients-own-cookie", "X-Api-Key": "clients-own-header", "Proxy-Authorization": "Basic clients-own-proxy",
	}
	h.awaitAs(mine, "call_tool", map[string]any{"name": "n.echo", "arguments": map[string]string{"text": "hello"}}, "hello")
	if seen := n.headers(); seen == "" || strings.Contains(seen, "clients-own") {
		t.Errorf("the upstream received %s", seen)
	}
}

// TestAttackHandleHijack uses a session of one key with another key.
func TestAttackHandleHijack(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, `
keys.ann = { env = "ANN", scopes = ["mcp"] }
keys.bob = { env = "BOB", scopes = ["mcp"] }
`, config.Environment{"ANN": "ann-token", "BOB": "bob-token"})
	ann, bob := bearing("ann-token"), bearing("bob-token")
	opened := h.call("session_create", map[string]any{}, ann)
	id := sessionID(opened)
	if id == "" || len(id) < 20 {
		t.Fatalf("no session, or a short id: %s", opened)
	}
	h.call("lua_eval", map[string]any{"code": `secret = "of ann"`, "session_id": id}, ann)
	if text := h.call("lua_eval", map[string]any{"code": `return secret`, "session_id": id}, ann); !strings.Contains(text, "of ann") {
		t.Fatalf("ann's own session: %s", text)
	}
	if text := h.call("lua_eval", map[string]any{"code": `return secret`, "session_id": id}, bob); strings.Contains(text, "of ann") {
		t.Errorf("bob reads ann's session: %s", text)
	}
	if text := h.call("session_list", map[string]any{}, bob); strings.Contains(text, id) {
		t.Errorf("bob sees ann's session: %s", text)
	}
}

// TestAttackFileByReference puts references to a file and a variable into headers, as a
// model can.
func TestAttackFileByReference(t *testing.T) {
	t.Parallel()
	n := newToolServer(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("s3cret-of-the-owner"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, _ := serve(t, "", config.Environment{"TOKEN": "s3cret-of-the-owner"})
	for _, reference := range []string{"${file:" + file + "}", "${env:TOKEN}"} {
		text := h.call("mcp_connect", map[string]any{"namespace": "n", "url": n.URL + "/mcp", "headers": map[string]string{"X-A": reference}}, nil)
		if !strings.Contains(text, `"isError":true`) || strings.Contains(text, "s3cret") {
			t.Errorf("%s: %s", reference, text)
		}
	}
	if seen := n.headers(); seen != "" {
		t.Errorf("the server received %s", seen)
	}
}
