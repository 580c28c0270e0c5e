package hub

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/tool"
)

// memorySessions is a session store that two hubs share.
type memorySessions struct {
	mu          sync.Mutex
	byID        map[string]SessionState
	unavailable error
}

func (v *memorySessions) Save(_ context.Context, id string, one SessionState) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.byID[id] = one
	return nil
}

func (v *memorySessions) Find(_ context.Context, id string) (SessionState, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	one, ok := v.byID[id]
	return one, ok, v.unavailable
}

func (v *memorySessions) Delete(_ context.Context, id string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.byID, id)
	return nil
}

type noTools struct{}

func (noTools) Tools(context.Context) ([]tool.Info, error) { return nil, nil }

func (noTools) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

// Another node can serve a session, also after the node that opened it has stopped, and
// deleting it ends it on all nodes.
func TestSessionIsLoadedOnAnotherNode(t *testing.T) {
	t.Parallel()
	common := &memorySessions{byID: map[string]SessionState{}}
	node := func() *httptest.Server {
		h := New(Options{Name: "node", Version: "1", Tools: noTools{}, SessionStore: common, Principal: func(r *http.Request) string { return r.Header.Get("X-Who") }})
		server := httptest.NewServer(h.Handler())
		t.Cleanup(func() { _ = h.Close(context.Background()); server.Close() })
		return server
	}
	ask := func(server *httptest.Server, method, who, session, body string) (int, string, string) {
		answer, text := httpjsontest.Read(t, method, server.URL+"/mcp", body, "Accept", "application/json, text/event-stream", "X-Who", who, "Mcp-Session-Id", session)
		return answer.StatusCode, answer.Header.Get("Mcp-Session-Id"), text
	}
	a, b := node(), node()
	_, session, text := ask(a, "POST", "ann", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if session == "" {
		t.Fatalf("no session: %s", text)
	}
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	if status, _, text := ask(b, "POST", "ann", session, ping); status != http.StatusOK || !strings.Contains(text, `"result"`) {
		t.Errorf("at another node: %d %s", status, text)
	}
	if status, _, _ := ask(b, "POST", "eve", session, ping); status != http.StatusNotFound {
		t.Errorf("another user: %d", status)
	}
	common.unavailable = errors.New("the database does not answer")
	if status, _, text := ask(node(), "POST", "ann", session, ping); status != http.StatusServiceUnavailable || !strings.Contains(text, "same session") {
		t.Errorf("while the store is unavailable: %d %s", status, text)
	}
	common.unavailable = nil
	if status, _, _ := ask(b, "DELETE", "ann", session, ""); status != http.StatusNoContent {
		t.Errorf("end: %d", status)
	}
	if status, _, _ := ask(node(), "POST", "ann", session, ping); status != http.StatusNotFound {
		t.Errorf("after its end: %d", status)
	}
}
