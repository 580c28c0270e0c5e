package hub_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// authenticated serves a hub of the cluster; the header User names the principal.
func (t *cluster) authenticated(test testing.TB, name string, source tool.Source) string {
	t.serve(test, name, source)
	inner := t.hubs[name].Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := principal.Principal{ID: r.Header.Get("User"), Scopes: []principal.Scope{principal.MCP}}
		inner.ServeHTTP(w, r.WithContext(principal.With(r.Context(), who)))
	}))
	test.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// ask sends a request of a user.
func ask(t *testing.T, user, method, address, body string) *http.Response {
	t.Helper()
	return httpjsontest.Open(t, method, address, body, "User", user)
}

// A message that is posted to one node for the stream of another is handled there, on
// behalf of its sender, if the stream belongs to the sender.
func TestPostsReachTheStreamOfAnotherNode(t *testing.T) {
	t.Parallel()
	all := newCluster()
	source := tools{"who": func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		return tool.Output("asked by "+principal.Of(ctx).ID, nil)
	}}
	a, b := all.authenticated(t, "a", source), all.authenticated(t, "b", source)
	stream := events(t, ask(t, "ann", http.MethodGet, a+"/mcp/sse", ""))
	first, err := stream.Next()
	if err != nil || first.Name != "endpoint" {
		t.Fatalf("first event %+v: %v", first, err)
	}
	post := func(user, body string) (int, string) {
		t.Helper()
		answer := ask(t, user, http.MethodPost, b+string(first.Data), body)
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"who","arguments":{}}}`
	if status, said := post("eve", hello); status != http.StatusNotFound || !strings.Contains(said, "no such session") {
		t.Errorf("another user: %d %s", status, said)
	}
	send := func(body string) wire.Message { // one after the other: answers come in any order
		t.Helper()
		if status, said := post("ann", body); status != http.StatusAccepted {
			t.Errorf("%d %s", status, said)
		}
		return next(t, stream)
	}
	if m := send(hello); m.ID != "1" || m.Error != nil {
		t.Errorf("initialize: %s %v", m.Result, m.Error)
	}
	if m := send(call); m.ID != "2" || !strings.Contains(string(m.Result), "asked by ann") {
		t.Errorf("the call: %s %v", m.Result, m.Error)
	}
	all.mu.Lock()
	delete(all.hubs, "a")
	all.mu.Unlock()
	if status, said := post("ann", call); status != http.StatusNotFound || !strings.Contains(said, "connect to /mcp/sse again") {
		t.Errorf("a node that has stopped: %d %s", status, said)
	}
}

// The client of the TypeScript SDK does not notice that what it posts arrives at another
// node than the one it listens to.
func TestTypeScriptClientBetweenTwoNodes(t *testing.T) {
	t.Parallel()
	dir := npmtest.Modules(t)
	all := newCluster()
	toward := func(name string) http.Handler {
		at, err := url.Parse(strings.TrimSuffix(all.serve(t, name, protocolTools()), "/mcp"))
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(at)
		proxy.FlushInterval = -1
		return proxy
	}
	a, b := toward("a"), toward("b")
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			b.ServeHTTP(w, r)
		} else {
			a.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { balancer.CloseClientConnections(); balancer.Close() })
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "typescript", "client1.js"), dir, balancer.URL+"/mcp/sse", "sse")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"report":"done"`) || !strings.Contains(string(out), `Ada`) {
		t.Errorf("it saw %s: %v: %s", out, err, complaints.String())
	}
}
