package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
)

// On a stream that all calls share, a question belongs to the only client that can
// answer; with several such clients it belongs to none.
func TestQuestionOnASharedStreamNeedsOneCandidate(t *testing.T) {
	t.Parallel()
	c := startSharedStream(t, stdioSpec(t, "asks"))
	var logged []tool.Log
	able := c.caller(`{"action":"accept"}`)
	able.Log = func(l tool.Log) { logged = append(logged, l) }
	if got := <-c.call(able, "1"); !strings.Contains(got, "accept") {
		t.Errorf("the only call received %q", got)
	}
	if len(logged) != 1 || logged[0].Level != "info" || string(logged[0].Data) != `"asking"` {
		t.Errorf("logged %+v", logged)
	}
	if got := c.callBeside(nil, able); !strings.Contains(got, "accept") {
		t.Errorf("the only able caller received %q", got)
	}
	if got := c.callBeside(c.caller(`{}`), c.caller(`{}`)); !strings.Contains(got, "does not say to which") {
		t.Errorf("two able callers received %q", got)
	}
	one, two := c.caller(`{"action":"accept"}`), c.caller(`{"action":"accept"}`)
	one.Client = newTestClient("")
	two.Client = one.Client
	if got := c.callBeside(one, two); !strings.Contains(got, "accept") {
		t.Errorf("two calls of one client received %q", got)
	}
	if got := <-c.call(nil, "1"); !strings.Contains(got, `{"action":"cancel"}`) {
		t.Errorf("no able caller: %q", got)
	}
}

// Roots are those of the client whose call the request belongs to, or else those of the
// configuration.
func TestRoots(t *testing.T) {
	t.Parallel()
	spec := stdioSpec(t, "asks for roots")
	spec.Roots = []string{"/srv/my notes", "file:///data", "~/x"}
	c := startSharedStream(t, spec)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	configured := `{"roots":[{"uri":"file:///srv/my%20notes","name":"my notes"},{"uri":"file:///data","name":"data"},{"uri":"file://` + home + `/x","name":"x"}]}`
	mine := `{"roots":[{"uri":"file:///mine"}]}`
	if got := <-c.call(c.caller(mine), "1"); !strings.Contains(got, mine) {
		t.Errorf("a client with roots: %q", got)
	}
	if got := <-c.call(nil, "1"); !strings.Contains(got, configured) {
		t.Errorf("no client: %q, want %s", got, configured)
	}
	if got := c.callBeside(c.caller(mine), c.caller(mine)); !strings.Contains(got, configured) {
		t.Errorf("two clients: %q", got)
	}
	// A request that belongs to no call: the client has used the server before.
	with := c.caller(`{}`)
	client := newTestClient(mine)
	with.Client = client
	<-c.call(with, "1")
	if got := <-c.call(nil, "1"); !strings.Contains(got, mine) {
		t.Errorf("one client behind the server: %q", got)
	}
	with.Client = &testClient{away: true, ended: make(chan struct{})}
	<-c.call(with, "1")
	if got := <-c.call(nil, "1"); !strings.Contains(got, mine) {
		t.Errorf("another client, which is not connected: %q", got)
	}
	with.Client = newTestClient(`{}`)
	<-c.call(with, "1")
	if got := <-c.call(nil, "1"); !strings.Contains(got, configured) {
		t.Errorf("two clients behind the server: %q", got)
	}
	close(with.Client.(*testClient).ended)
	if got := <-c.call(nil, "1"); !strings.Contains(got, mine) {
		t.Errorf("the other client has left: %q", got)
	}
	close(client.ended)
	if got := <-c.call(nil, "1"); !strings.Contains(got, configured) {
		t.Errorf("after the client's session: %q", got)
	}
}

// A client that may not do everything cannot change what a server serves to others.
func TestRootsOfARestrictedClientStayInItsCalls(t *testing.T) {
	t.Parallel()
	c := startSharedStream(t, stdioSpec(t, "asks for roots"))
	with := c.caller(`{"roots":[{"uri":"file:///mine"}]}`)
	with.Client = newTestClient(`{"roots":[{"uri":"file:///"}]}`)
	restricted := principal.With(t.Context(), principal.Principal{ID: "key:agent", Scopes: []principal.Scope{principal.MCP}})
	if got := <-c.callAs(restricted, with, "1"); !strings.Contains(got, "file:///mine") {
		t.Errorf("in its call: %q", got)
	}
	if got := <-c.call(nil, "1"); !strings.Contains(got, `{"roots":[]}`) {
		t.Errorf("in the call of another: %q", got)
	}
}

// sharedStream is a server over stdio that asks during calls.
type sharedStream struct {
	t *testing.T
	h *upstreamtest.Harness
}

func startSharedStream(t *testing.T, spec upstream.Spec) *sharedStream {
	return &sharedStream{t: t, h: upstreamtest.Start(t, stdioServer(t, spec))}
}

func (c *sharedStream) caller(answer string) *tool.Caller {
	return &tool.Caller{Ask: func(context.Context, []tool.Question) ([]json.RawMessage, error) {
		return []json.RawMessage{json.RawMessage(answer)}, nil
	}}
}

// call calls the server, which asks when it has as many calls as count says.
func (c *sharedStream) call(caller *tool.Caller, count string) chan string {
	return c.callAs(c.t.Context(), caller, count)
}

func (c *sharedStream) callAs(ctx context.Context, caller *tool.Caller, count string) chan string {
	answer := make(chan string, 1)
	go func() {
		result, err := c.h.Manager.Call(ctx, tool.Call{Ref: ref("echo"), Args: json.RawMessage(`{"text":"` + count + `"}`), Caller: caller})
		view, _ := result.View()
		answer <- fmt.Sprint(view.Text(), err)
	}()
	return answer
}

// callBeside calls the server while another call is in progress.
func (c *sharedStream) callBeside(other, caller *tool.Caller) string {
	before := c.call(other, "-")
	clocktest.Await(c.t, func() bool { st, _ := c.h.Manager.Status("test"); return st.Stats.InFlight == 1 })
	answer := <-c.call(caller, "2")
	<-before
	return answer
}

// testClient is a client with roots.
type testClient struct {
	roots string
	away  bool
	ended chan struct{}
}

func newTestClient(roots string) *testClient {
	return &testClient{roots: roots, ended: make(chan struct{})}
}

func (c *testClient) Connected() bool { return !c.away }

func (c *testClient) Roots(context.Context) (json.RawMessage, error) {
	return json.RawMessage(c.roots), nil
}
func (c *testClient) Ended() <-chan struct{} { return c.ended }
