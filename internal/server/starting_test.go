package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// slowServer is an upstream that answers nothing until it is ready.
func slowServer(t *testing.T) (server *httptest.Server, ready chan struct{}) {
	ready = make(chan struct{})
	h := hub.New(hub.Options{Name: "slow", Version: "1", Tools: echoTool{}})
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-ready:
			h.Handler().ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		_ = h.Close(context.WithoutCancel(t.Context()))
		server.CloseClientConnections()
		server.Close()
	})
	return server, ready
}

// jobOf stores a script and starts it as a job.
func jobOf(c keyClient, source string) string {
	hash := regexp.MustCompile(`[0-9a-f]{64}`).FindString(c.own("script_store", `{"content":"`+source+`"}`))
	return regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).FindString(c.own("lua_execute", `{"script_hash":"`+hash+`"}`))
}

// own calls a tool that is not listed.
func (v keyClient) own(tool, args string) string {
	v.t.Helper()
	return v.call("call_tool", `{"name":"`+tool+`","arguments":`+args+`}`)
}

// TestUpstreamThatStarts checks that while an upstream starts, jobs that do not use it run,
// and that calls of its tools wait for it, in jobs and by the names that clients will see.
// When it is down later, its tools stay listed at its own address, too.
func TestUpstreamThatStarts(t *testing.T) {
	t.Parallel()
	slow, ready := slowServer(t)
	file := configtest.WriteFile(t, "[upstreams.slow]\nurl = \""+slow.URL+"\"\nexpose = \"all\"\nwait = \"100ms\"\n")
	url, srv := start(t, config.Sources{File: file})
	c := keyClient{t, url, ""}

	free, user := jobOf(c, "function main() return 42 end"), jobOf(c, "function main() return mcp.slow.echo{text='by a job'} end")
	if text := c.own("job_poll", `{"job_ids":["`+free+`"],"timeout_ms":20000}`); !strings.Contains(text, "42") {
		t.Errorf("a job that uses no upstream: %s", text)
	}
	direct := make(chan string, 1)
	go func() { direct <- c.call("slow__echo", `{"text":"directly"}`) }()
	clocktest.Await(t, func() bool {
		stats, _ := srv.catalog.Stats(t.Context(), "slow")
		return stats.InFlight > 0
	})
	close(ready)
	if text := <-direct; !strings.Contains(text, "directly") {
		t.Errorf("a direct call: %s", text)
	}
	if text := c.own("job_poll", `{"job_ids":["`+user+`"],"timeout_ms":60000}`); !strings.Contains(text, "by a job") {
		t.Errorf("a job that uses it: %s", text)
	}

	slow.CloseClientConnections()
	slow.Close()
	if status, text := c.rpc("/mcp/slow", "tools/list", ""); status != http.StatusOK || !strings.Contains(text, `"name":"echo"`) {
		t.Errorf("tools/list while it is down: %d %s", status, text)
	}
}
