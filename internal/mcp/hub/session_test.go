package hub_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// post serves one message without a network.
func post(t testing.TB, h http.Handler, header http.Header, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestUnusedSessionsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(hub.Options{Name: "t", Version: "1", Tools: tools{}})
		defer h.Close(t.Context())
		handler := h.Handler()
		session := http.Header{wire.HeaderSession: {post(t, handler, nil, initialize).Header().Get(wire.HeaderSession)}}
		time.Sleep(20 * time.Minute)
		if w := post(t, handler, session, ping); w.Code != http.StatusOK || h.Sessions() != 1 {
			t.Fatalf("after 20 minutes: status %d, %d sessions", w.Code, h.Sessions())
		}
		time.Sleep(20 * time.Minute)
		if w := post(t, handler, session, ping); w.Code != http.StatusOK {
			t.Fatalf("20 minutes after it was used: status %d", w.Code)
		}
		time.Sleep(31 * time.Minute)
		if w := post(t, handler, session, ping); w.Code != http.StatusNotFound || h.Sessions() != 0 {
			t.Errorf("after half an hour: status %d, %d sessions", w.Code, h.Sessions())
		}
	})
}

func TestSessionBelongsToItsPrincipal(t *testing.T) {
	t.Parallel()
	h := hub.New(hub.Options{Name: "t", Version: "1", Tools: tools{}, Principal: func(r *http.Request) string { return r.Header.Get("User") }})
	defer h.Close(t.Context())
	ann := http.Header{"User": {"ann"}}
	id := post(t, h.Handler(), ann, initialize).Header().Get(wire.HeaderSession)
	ann.Set(wire.HeaderSession, id)
	if w := post(t, h.Handler(), ann, ping); w.Code != http.StatusOK {
		t.Errorf("its own: status %d", w.Code)
	}
	if w := post(t, h.Handler(), http.Header{"User": {"bob"}, wire.HeaderSession: {id}}, ping); w.Code != http.StatusNotFound {
		t.Errorf("of another user: status %d", w.Code)
	}
}

func TestSessionLimitEvictsTheOldest(t *testing.T) {
	t.Parallel()
	h := hub.New(hub.Options{Name: "t", Version: "1", Tools: tools{}, Limits: hub.Limits{Sessions: 2}})
	defer h.Close(t.Context())
	var ids []string
	for range 3 {
		ids = append(ids, post(t, h.Handler(), nil, initialize).Header().Get(wire.HeaderSession))
	}
	for i, want := range []int{http.StatusNotFound, http.StatusOK, http.StatusOK} {
		if w := post(t, h.Handler(), http.Header{wire.HeaderSession: {ids[i]}}, ping); w.Code != want {
			t.Errorf("session %d: status %d, want %d", i, w.Code, want)
		}
	}
	if len(ids[0]) < 26 || ids[0] == ids[1] {
		t.Errorf("ids %v are guessable", ids)
	}
}

func TestLargeMessagesAreRefused(t *testing.T) {
	t.Parallel()
	opts := options(t, tools{})
	opts.Limits.Body = 100
	_, url := serve(t, opts)
	large := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 200) + `"}}`
	for _, chunked := range []bool{false, true} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(large))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if chunked {
			r.ContentLength = -1
		}
		answer, err := httpjsontest.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("chunked %t: status %d", chunked, answer.StatusCode)
		}
	}
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	slow := newHanging()
	h, url := serve(t, options(t, tools{"slow": slow.run, "ask": asks(askName)}))
	legacy := &client{t: t, url: url + "/mcp"}
	legacy.initialize(wire.NewestLegacy)
	get, err := httpjsontest.Client.Do(legacy.request(t.Context(), http.MethodGet, ""))
	if err != nil {
		t.Fatal(err)
	}
	main := events(t, get)
	modern := &client{t: t, url: url + "/mcp", modern: true, caps: `{"elicitation":{}}`}
	listen := events(t, modern.post(t.Context(), `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{`+modern.modernMeta()+`}}}`))
	if m := next(t, listen); m.Method != wire.NoteListenAcknowledged {
		t.Fatalf("first came %s", m.Method)
	}
	if m := answer(t, modern.post(t.Context(), modern.call("1", "ask", ""))); !strings.Contains(string(m.Result), wire.ResultInputRequired) {
		t.Fatalf("asking: %s", m.Result)
	}
	answers := make(chan *http.Response)
	go func() { answers <- modern.post(t.Context(), modern.call("2", "slow", "")) }()
	<-slow.began

	closed := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { closed <- h.Close(ctx) }()
	if m := next(t, listen); m.ID != `"l"` || !strings.Contains(string(m.Result), `"io.modelcontextprotocol/subscriptionId":"l"`) {
		t.Errorf("the listener's result is %s", m.Result)
	}
	for {
		if _, err := main.Next(); err != nil {
			break // the session's stream ended
		}
	}
	if r := modern.post(t.Context(), modern.call("3", "slow", "")); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a new request while closing: status %d", r.StatusCode)
	}
	cancel() // no more time for what still runs
	<-slow.cancelled
	if m := answer(t, <-answers); m.Error == nil {
		t.Errorf("the running call was answered with %s", m.Result)
	}
	if err := <-closed; err == nil {
		t.Error("Close does not tell that it had to cancel")
	}
	if err := h.Close(t.Context()); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestHealthCountsSessionsOfAllEndpoints(t *testing.T) {
	t.Parallel()
	opts := options(t, tools{})
	opts.Upstreams = upstreams{"up": echoPeer{}}
	h, url := serve(t, opts)
	var c *client
	for _, path := range []string{"/mcp", "/mcp/up"} {
		c = &client{t: t, url: url + path}
		c.initialize(wire.NewestLegacy)
	}
	listening, err := httpjsontest.Client.Do(c.request(t.Context(), http.MethodGet, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Body.Close()
	if sessions, connected := h.Sessions(), h.Connected(); sessions != 2 || connected != 1 {
		t.Errorf("%d sessions, %d of them connected; want 2 and 1", sessions, connected)
	}
}

func TestRemovedUpstreamEndsItsSessions(t *testing.T) {
	t.Parallel()
	opts := options(t, tools{})
	up := upstreams{"up": echoPeer{}}
	opts.Upstreams = up
	h, url := serve(t, opts)
	c := &client{t: t, url: url + "/mcp/up"}
	c.initialize(wire.NewestLegacy)
	delete(up, "up")
	gone := c.post(t.Context(), ping)
	gone.Body.Close()
	if gone.StatusCode != http.StatusNotFound || h.Sessions() != 0 {
		t.Errorf("status %d, %d sessions", gone.StatusCode, h.Sessions())
	}
}

func TestHostCheckIsForLoopbackOnly(t *testing.T) {
	t.Parallel()
	h := hub.New(hub.Options{Name: "t", Version: "1", Tools: tools{}, Origins: []string{"https://app.test"}})
	defer h.Close(t.Context())
	for _, c := range []struct {
		local, host, origin string
		want                int
	}{
		{"127.0.0.1:80", "localhost", "", http.StatusOK},
		{"127.0.0.1:80", "[::1]:80", "", http.StatusOK},
		{"127.0.0.1:80", "evil.test", "", http.StatusForbidden},
		{"10.0.0.1:80", "any.test", "", http.StatusOK},
		{"10.0.0.1:80", "any.test", "https://any.test", http.StatusOK},
		{"10.0.0.1:80", "any.test", "https://evil.test", http.StatusForbidden},
		{"10.0.0.1:80", "any.test", "https://app.test", http.StatusOK},
		{"10.0.0.1:80", "any.test", "http://localhost:3000", http.StatusForbidden},
		{"127.0.0.1:80", "localhost:80", "http://127.0.0.1:3000", http.StatusOK},
	} {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, address(c.local)),
			http.MethodPost, "/mcp", strings.NewReader(initialize))
		r.Host = c.host
		r.Header.Set("Content-Type", "application/json")
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%+v: status %d", c, w.Code)
		}
	}
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// A session's id is a secret of its client, so tools, which may store and show the caller,
// get another name of the session.
func TestToolsDoNotLearnTheSessionID(t *testing.T) {
	t.Parallel()
	var callers []string
	remember := func(_ context.Context, call tool.Call) (tool.Result, error) {
		callers = append(callers, call.Caller.ID)
		return textResult("ok"), nil
	}
	h := hub.New(hub.Options{Name: "t", Version: "1", Tools: tools{"remember": remember}})
	defer h.Close(t.Context())
	handler := h.Handler()
	var ids []string
	for range 2 {
		id := post(t, handler, nil, initialize).Header().Get(wire.HeaderSession)
		ids = append(ids, id)
		for range 2 {
			post(t, handler, http.Header{wire.HeaderSession: {id}}, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"remember"}}`)
		}
	}
	if len(callers) != 4 || callers[0] != callers[1] || callers[0] == callers[2] {
		t.Errorf("callers are %q: want one name per session", callers)
	}
	for _, caller := range callers {
		if strings.Contains(caller, ids[0]) || strings.Contains(caller, ids[1]) {
			t.Errorf("the caller %q tells the session's id", caller)
		}
	}
}
