package hub_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// orgTools, also prompts and resources, are numbered for each organisation; those of "" are
// for everybody.
type orgTools struct {
	things
	mu     sync.Mutex
	number map[string]int
}

func (o *orgTools) add(org string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.number[org]++
}

func (o *orgTools) name(ctx context.Context) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return "a" + strconv.Itoa(o.number[""]) + "_" + strconv.Itoa(o.number[principal.Of(ctx).ActingOrg()])
}

func (o *orgTools) Tools(ctx context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Name: o.name(ctx)}}}, nil
}

func (o *orgTools) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

func (o *orgTools) List(ctx context.Context, method string) ([]json.RawMessage, error) {
	switch method {
	case wire.MethodPromptsList:
		return []json.RawMessage{json.RawMessage(`{"name":"` + o.name(ctx) + `"}`)}, nil
	case wire.MethodResourcesList:
		return []json.RawMessage{json.RawMessage(`{"uri":"test://a","name":"` + o.name(ctx) + `"}`)}, nil
	}
	return o.things.List(ctx, method)
}

// TestOnlyThoseWhoSeeAChangeAreNotified checks, in both eras, that a change of what one
// organisation has is announced to its members alone, and one of what everybody has to all.
func TestOnlyThoseWhoSeeAChangeAreNotified(t *testing.T) {
	t.Parallel()
	for _, method := range []string{wire.NoteToolsChanged, wire.NotePromptsChanged, wire.NoteResourcesChanged} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			source, told := &orgTools{number: map[string]int{}}, new(changes)
			opts := options(t, source)
			opts.Offers, opts.Changes = source, told.watch
			h := hub.New(opts)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				org := r.URL.Query().Get("org")
				who := principal.Principal{ID: "key:" + org, Org: org, Scopes: []principal.Scope{principal.MCP}}
				h.Handler().ServeHTTP(w, r.WithContext(principal.With(r.Context(), who)))
			}))
			t.Cleanup(func() {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				h.Close(ctx)
				server.Close()
			})
			streams := map[string][]*sse.Reader{}
			for _, org := range []string{"acme", "beta"} {
				streams[org] = []*sse.Reader{inSession(t, server.URL+"/mcp?org="+org), listening(t, server.URL+"/mcp?org="+org)}
			}
			expect := func(want string, orgs ...string) {
				t.Helper()
				for _, org := range orgs {
					for era, stream := range streams[org] {
						if m := next(t, stream); m.Method != want {
							t.Errorf("%s, era %d: %s instead of %s", org, era, m.Method, want)
						}
					}
				}
			}
			source.add("acme")
			told.tell(method, nil)
			expect(method, "acme")
			source.add("")
			told.tell(method, nil)
			expect(method, "acme", "beta")
			told.notify(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"test://a"}`), func(who principal.Principal) bool { return who.Org == "acme" })
			expect(wire.NoteResourceUpdated, "acme")
			told.tell(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"test://a","_meta":{"for":"all"}}`))
			for _, stream := range streams["beta"] {
				if m := next(t, stream); m.Method != wire.NoteResourceUpdated || !strings.Contains(string(m.Params), `"for":"all"`) {
					t.Errorf("beta got %s %s", m.Method, m.Params)
				}
			}
		})
	}
}

// inSession is the stream of a session that is subscribed to test://a.
func inSession(t *testing.T, url string) *sse.Reader {
	t.Helper()
	c := &client{t: t, url: url}
	c.initialize(wire.NewestLegacy)
	c.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://a"}}`).Body.Close()
	r, err := httpjsontest.Client.Do(c.request(t.Context(), http.MethodGet, ""))
	if err != nil {
		t.Fatal(err)
	}
	return events(t, r)
}

// listening is a subscription to everything in the modern era.
func listening(t *testing.T, url string) *sse.Reader {
	t.Helper()
	c := &client{t: t, url: url, modern: true}
	stream := events(t, c.post(t.Context(), c.listen("1", `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["test://a"]}`)))
	if m := next(t, stream); m.Method != wire.NoteListenAcknowledged {
		t.Fatalf("first came %s", m.Method)
	}
	return stream
}
