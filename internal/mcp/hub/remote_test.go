package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// cluster is what several hubs share: their nodes and sessions.
type cluster struct {
	mu       sync.Mutex
	hubs     map[string]*hub.Hub
	sessions map[string]hub.SessionState
}

// clusterNode is one of its nodes.
type clusterNode struct {
	*cluster
	name string
}

func (r clusterNode) Self() string { return r.name }

func (r clusterNode) Send(ctx context.Context, node string, body []byte) ([]byte, error) {
	r.mu.Lock()
	var others []*hub.Hub
	for name, h := range r.hubs {
		if name != r.name && (node == "" || node == name) {
			others = append(others, h)
		}
	}
	r.mu.Unlock()
	for _, h := range others {
		if answer, mine := h.HandleRemote(ctx, body); mine {
			return answer, ctx.Err()
		}
	}
	return nil, fault.New(fault.NotFound, "node %s is gone", node)
}

func (t *cluster) Save(_ context.Context, id string, v hub.SessionState) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions[id] = v
	return nil
}

func (t *cluster) Find(_ context.Context, id string) (hub.SessionState, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.sessions[id]
	return v, ok, nil
}

func (t *cluster) Delete(context.Context, string) error { return nil }

// serve makes a hub of the cluster.
func (t *cluster) serve(test testing.TB, name string, source tool.Source) string {
	return t.serveWith(test, name, options(test, source))
}

func (t *cluster) serveWith(test testing.TB, name string, opts hub.Options) string {
	opts.SessionStore, opts.Nodes = t, clusterNode{t, name}
	opts.Principal = func(r *http.Request) string { return r.Header.Get("User") }
	h, url := serve(test, opts)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hubs[name] = h
	return url + "/mcp"
}

func newCluster() *cluster {
	return &cluster{hubs: map[string]*hub.Hub{}, sessions: map[string]hub.SessionState{}}
}

// A call that waits on one node is resumed when its client returns to another one: only
// for the same user, and only once.
func TestPendingCallIsResumedFromAnotherNode(t *testing.T) {
	t.Parallel()
	all, ask := newCluster(), tools{"ask": asks(askName)}
	a, b := all.serve(t, "a", ask), all.serve(t, "b", ask)
	c := &client{t: t, url: a, modern: true, caps: `{"elicitation":{}}`}
	_, state := inputRequired(t, answer(t, c.post(t.Context(), c.call("1", "ask", ""))))
	retry := c.call("2", "ask", `,"requestState":"`+state+`","inputResponses":{"name":{"action":"accept"}}`)
	c.url = b
	eve := c.request(t.Context(), http.MethodPost, retry)
	eve.Header.Set("User", "eve")
	refused, err := httpjsontest.Client.Do(eve)
	if err != nil {
		t.Fatal(err)
	}
	if m := answer(t, refused); m.Error == nil || !strings.Contains(m.Error.Message, "not valid") {
		t.Errorf("another user: %s %v", m.Result, m.Error)
	}
	if m := answer(t, c.post(t.Context(), retry)); m.ID != "2" || !strings.Contains(string(m.Result), "accept") {
		t.Errorf("at another node: %s %v", m.Result, m.Error)
	}
	if m := answer(t, c.post(t.Context(), retry)); m.Error == nil || !strings.Contains(m.Error.Message, "no longer waits") {
		t.Errorf("a second time: %s %v", m.Result, m.Error)
	}
}

// The pending calls of a node that has stopped are lost: the client has to make them again.
func TestPendingCallOfAStoppedNode(t *testing.T) {
	t.Parallel()
	all, ask := newCluster(), tools{"ask": asks(askName)}
	a, b := all.serve(t, "a", ask), all.serve(t, "b", ask)
	c := &client{t: t, url: a, modern: true, caps: `{"elicitation":{}}`}
	_, state := inputRequired(t, answer(t, c.post(t.Context(), c.call("1", "ask", ""))))
	all.mu.Lock()
	delete(all.hubs, "a")
	all.mu.Unlock()
	c.url = b
	m := answer(t, c.post(t.Context(), c.call("2", "ask", `,"requestState":"`+state+`"`)))
	if m.Error == nil || m.Error.Code != wire.CodeInvalidParams || !strings.Contains(m.Error.Message, "make the request again") {
		t.Errorf("%s %v", m.Result, m.Error)
	}
}

// A client's answers and cancellations reach the node that waits for them, and no
// other node's question of the same session is taken for it.
func TestAnswersReachTheNodeThatAsked(t *testing.T) {
	t.Parallel()
	cancelled := make(chan error, 1)
	source := tools{"ask": asks(askName), "hang": func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		<-ctx.Done()
		cancelled <- context.Cause(ctx)
		return tool.Result{}, context.Cause(ctx)
	}}
	all := newCluster()
	a, b := all.serve(t, "a", source), all.serve(t, "b", source)
	here := &client{t: t, url: a, caps: `{"elicitation":{}}`}
	here.initialize(wire.NewestLegacy)
	there := &client{t: t, url: b, caps: here.caps, session: here.session}
	streamA, streamB := events(t, here.post(t.Context(), here.call("1", "ask", ""))), events(t, there.post(t.Context(), there.call("2", "ask", "")))
	askedA, askedB := next(t, streamA), next(t, streamB)
	if askedA.ID == askedB.ID {
		t.Fatalf("two nodes ask under the id %s", askedA.ID)
	}
	for to, reply := range map[*client]string{
		there: `{"jsonrpc":"2.0","id":` + string(askedA.ID) + `,"result":{"action":"accept","content":{"name":"for a"}}}`,
		here:  `{"jsonrpc":"2.0","id":` + string(askedB.ID) + `,"result":{"action":"accept","content":{"name":"for b"}}}`,
	} {
		to.post(t.Context(), reply).Body.Close()
	}
	if m := next(t, streamA); !strings.Contains(string(m.Result), "for a") {
		t.Errorf("the first call ended with %s %v", m.Result, m.Error)
	}
	if m := next(t, streamB); !strings.Contains(string(m.Result), "for b") {
		t.Errorf("the second call ended with %s %v", m.Result, m.Error)
	}
	go func() {
		if r, err := httpjsontest.Client.Do(here.request(context.WithoutCancel(t.Context()), http.MethodPost, here.call("3", "hang", ""))); err == nil {
			r.Body.Close()
		}
	}()
	for over := false; !over; { // it may not have begun yet
		there.post(t.Context(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`).Body.Close()
		select {
		case <-cancelled:
			over = true
		default:
		}
	}
}

// released are things that tell when a subscription ends.
type released struct {
	things
	ended chan struct{}
}

func (r released) Subscribe(context.Context, string) (release func(), err error) {
	return func() { close(r.ended) }, nil
}

// TestNotificationsReachTheStreamAtAnotherNode reads a session's stream at the node that opened
// it, while the other one gets what the client posts: that it is initialized, and to which
// resource it subscribes. It unsubscribes where it reads.
func TestNotificationsReachTheStreamAtAnotherNode(t *testing.T) {
	t.Parallel()
	all, toldA, toldB, offers := newCluster(), new(changes), new(changes), released{ended: make(chan struct{})}
	serveTold := func(name string, told *changes) string {
		opts := options(t, tools{})
		opts.Offers, opts.Changes = offers, told.watch
		return all.serveWith(t, name, opts)
	}
	a, b := serveTold("a", toldA), serveTold("b", toldB)
	here := &client{t: t, url: a}
	opened := here.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+wire.NewestLegacy+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	opened.Body.Close()
	here.session = opened.Header.Get(wire.HeaderSession)
	there := &client{t: t, url: b, session: here.session}
	there.post(t.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`).Body.Close()
	r, err := httpjsontest.Client.Do(here.request(t.Context(), http.MethodGet, ""))
	if err != nil {
		t.Fatal(err)
	}
	stream, heard := events(t, r), make(chan struct{})
	go func() {
		defer close(heard)
		for e, err := stream.Next(); err == nil && len(e.Data) == 0; e, err = stream.Next() {
		}
	}()
	clocktest.Await(t, func() bool { // the other node passes on that the client is initialized
		toldA.tell(wire.NoteElicitationComplete, json.RawMessage(`{"elicitationId":"e"}`))
		select {
		case <-heard:
			return true
		default:
			return false
		}
	})
	there.post(t.Context(), `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"test://a"}}`).Body.Close()
	toldB.tell(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"test://b"}`))
	toldB.tell(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"test://a"}`))
	m := next(t, stream)
	for m.Method == wire.NoteElicitationComplete {
		m = next(t, stream)
	}
	if m.Method != wire.NoteResourceUpdated || string(m.Params) != `{"uri":"test://a"}` {
		t.Errorf("the client got %s %s", m.Method, m.Params)
	}
	here.post(t.Context(), `{"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"test://a"}}`).Body.Close()
	<-offers.ended
}

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
