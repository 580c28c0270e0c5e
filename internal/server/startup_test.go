package server

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// TestListensWhileStartupRuns checks that a server answers while startup.lua runs, and that
// calls and lists of tools wait for it, so that its hooks hold for the first one, too.
func TestListensWhileStartupRuns(t *testing.T) {
	t.Parallel()
	slow, ready := slowServer(t)
	startup := configtest.WriteFile(t, `tools.mcp_add("slow", "`+slow.URL+`")
		function on_tool_call(call)
		  if call.arguments.text == "bad" then return { refuse = "not that" } end
		end
		function startup() mcp.slow.echo { text = "the script's own" } end`)
	url, srv := start(t, config.Sources{Flags: map[string]string{"scripts.startup": startup}}, func(o *Options) { o.ListenFirst = true })
	get := func(path string) (int, string) {
		answer, body := httpjsontest.Read(t, http.MethodGet, url+path, "")
		return answer.StatusCode, body
	}
	if status, body := get("/ready"); status != http.StatusServiceUnavailable || !strings.Contains(body, "startup.lua is running") {
		t.Errorf("/ready while the script runs: %d %s", status, body)
	}
	if status, body := get("/health"); status != http.StatusOK {
		t.Errorf("/health while the script runs: %d %s", status, body)
	}
	c := keyClient{t, url, ""}
	answers := make(chan string, 2)
	go func() { answers <- c.call("slow__echo", `{"text":"bad"}`) }()
	go func() {
		_, text := c.rpc("/mcp", "tools/list", "")
		select {
		case <-srv.settled:
		default:
			text = "listed before the script had run: " + text
		}
		answers <- text
	}()
	close(ready)
	for range 2 {
		if text := <-answers; !strings.Contains(text, "not that") && !strings.Contains(text, `"tools":[`) || strings.Contains(text, "listed before") {
			t.Errorf("got %s", text)
		}
	}
	if status, body := get("/ready"); status != http.StatusOK {
		t.Errorf("/ready after the script: %d %s", status, body)
	}
}

// TestMissingStartupIsLogged checks that a startup script that the configuration names and
// that is not there is reported.
func TestMissingStartupIsLogged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "startup.lua")
	_, srv := start(t, config.Sources{Flags: map[string]string{"scripts.startup": path}})
	if log := srv.options.Stderr.(*startOutput).String(); !strings.Contains(log, "startup script") || !strings.Contains(log, path) {
		t.Errorf("log:\n%s", log)
	}
}
