package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
	"github.com/luanette/luanette/internal/mcp/wire"
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

// everyWay runs a test against the suite's server in both eras, over HTTP and as
// a child process.
func everyWay(t *testing.T, test func(t *testing.T, h *upstreamtest.Harness)) {
	for name, srv := range map[string]func(t *testing.T) upstreamtest.Server{
		"http legacy":  func(t *testing.T) upstreamtest.Server { return httpServer(t, legacyHandler, upstream.Spec{}) },
		"http modern":  func(t *testing.T) upstreamtest.Server { return httpServer(t, modernHandler, upstream.Spec{}) },
		"sse":          func(t *testing.T) upstreamtest.Server { return httpServer(t, sseHandler, upstream.Spec{}) },
		"child legacy": func(t *testing.T) upstreamtest.Server { return stdioServer(t, stdioSpec(t, "sdk")) },
		"child modern": func(t *testing.T) upstreamtest.Server {
			spec := stdioSpec(t, "sdk")
			spec.Protocol = upstream.ProtocolModern
			return stdioServer(t, spec)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, upstreamtest.Start(t, srv(t)))
		})
	}
}

func ref(name string) tool.Ref { return tool.Ref{Space: "test", Name: name} }

func TestProgressArrivesInOrderAndBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, h *upstreamtest.Harness) {
		var received []tool.Progress
		caller := &tool.Caller{Progress: func(p tool.Progress) { received = append(received, p) }}
		if _, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("steps"), Caller: caller}); err != nil {
			t.Fatal(err)
		}
		if len(received) != 5 || received[4] != (tool.Progress{Progress: 5, Total: 5, Message: "step 5"}) {
			t.Errorf("received %v", received)
		}
	})
}

func TestQuestionsReachTheCaller(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, h *upstreamtest.Harness) {
		var asked []tool.Question
		caller := &tool.Caller{
			Capabilities: json.RawMessage(`{"elicitation":{"form":{}}}`),
			Ask: func(_ context.Context, questions []tool.Question) ([]json.RawMessage, error) {
				asked = append(asked, questions...)
				return []json.RawMessage{json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)}, nil
			},
		}
		result, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("ask"), Caller: caller})
		if err != nil {
			t.Fatal(err)
		}
		if view, err := result.View(); err != nil || view.Text() != "accept Ada" {
			t.Errorf("result = %s, %v", result.Raw, err)
		}
		message, _ := rawjson.GetText(asked[0].Params, "message")
		if len(asked) != 1 || asked[0].Method != wire.MethodElicit || message != "who are you?" {
			t.Errorf("asked %+v", asked)
		}
	})
}

func TestCallerThatCannotBeAskedIsNotAsked(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, h *upstreamtest.Harness) {
		caller := &tool.Caller{
			Capabilities: json.RawMessage(`{}`),
			Ask: func(context.Context, []tool.Question) ([]json.RawMessage, error) {
				t.Error("it was asked")
				return nil, nil
			},
		}
		result, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("ask"), Caller: caller})
		view, _ := result.View()
		if err == nil && !view.IsError && !strings.HasPrefix(view.Text(), "cancel") {
			t.Errorf("the call went through: %s", result.Raw)
		}
	})
}

func TestCancellingWhileAskingEndsTheAsking(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, h *upstreamtest.Harness) {
		ctx, cancel := context.WithCancel(t.Context())
		asking := make(chan error, 1)
		caller := &tool.Caller{Ask: func(ctx context.Context, _ []tool.Question) ([]json.RawMessage, error) {
			cancel()
			<-ctx.Done()
			asking <- ctx.Err()
			return nil, ctx.Err()
		}}
		_, err := h.Manager.Call(ctx, tool.Call{Ref: ref("ask"), Caller: caller})
		if fault.CodeOf(err) != fault.Cancelled {
			t.Errorf("call ended with %v", err)
		}
		if err := <-asking; err == nil {
			t.Error("asking did not end")
		}
	})
}

func TestToolsAreListedAgainWhenTheyChange(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, h *upstreamtest.Harness) {
		h.Text(t, "grow", nil)
		e := h.Await(t, "upstream.tools_refreshed")
		if data := e.Data.(upstream.ToolsRefreshed); !slices.Equal(data.Added, []string{"grown"}) {
			t.Errorf("refreshed %+v", data)
		}
		if text := h.Text(t, "grown", nil); text != "tall" {
			t.Errorf("grown said %q", text)
		}
	})
}

func TestPeerRelaysAllRequests(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, h *upstreamtest.Harness) {
		peer, ok := h.Manager.Peer("test")
		if !ok {
			t.Fatal("no peer")
		}
		capabilities, info, instructions, err := peer.Describe(t.Context())
		name, _ := rawjson.GetText(info, "name")
		if err != nil || name != "peer" || string(instructions) != `"be nice"` || !rawjson.IsObject(capabilities) {
			t.Errorf("describes itself as %s %s %s %v", capabilities, info, instructions, err)
		}
		noted := make(chan string, 10)
		stop := peer.Watch(func(method string, _ json.RawMessage) { noted <- method })
		defer stop()
		result, err := peer.Call(t.Context(), tool.Call{Ref: ref("grow"), Meta: json.RawMessage(`{"progressToken":"mine"}`)},
			json.RawMessage(`{"name":"grow","arguments":{},"_meta":{"progressToken":"mine"}}`))
		if err != nil || !strings.Contains(string(result.Raw), "growing") || strings.Contains(string(result.Raw), wire.ProtocolPrefix) {
			t.Errorf("result = %s, %v", result.Raw, err)
		}
		if method := <-noted; method != wire.NoteToolsChanged {
			t.Errorf("noted %s", method)
		}
		_, err = peer.Request(t.Context(), wire.MethodPromptsGet, json.RawMessage(`{"name":"unknown"}`), nil)
		if e := wire.ErrorFrom(err); e.Code != wire.CodeInvalidParams {
			t.Errorf("unknown prompt: %v", err)
		}
		if _, err := peer.Request(t.Context(), "no/such", nil, nil); fault.CodeOf(err) != fault.Upstream {
			t.Errorf("unknown method: %v", err)
		}
		for _, method := range []string{wire.MethodPing, wire.MethodToolsList} {
			if _, err := peer.Request(t.Context(), method, nil, nil); err != nil {
				t.Errorf("%s: %v", method, err)
			}
		}
	})
}

func TestManyCallsShareOneConnection(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, h *upstreamtest.Harness) {
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				text := strings.Repeat("x", i*100)
				if got := h.Echo(t, text); got != text {
					t.Errorf("echo of %d bytes gave %d", len(text), len(got))
				}
			})
		}
		wg.Wait()
	})
}

func TestSlowCallTimesOutUnlessItProgresses(t *testing.T) {
	t.Parallel()
	srv := httpServer(t, legacyHandler, upstream.Spec{Settings: upstream.Settings{Timeout: duration.Duration(time.Second)}})
	h := upstreamtest.Start(t, srv)
	_, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("wait")})
	if fault.CodeOf(err) != fault.Timeout || fault.HintOf(err) == "" {
		t.Errorf("slow call ended with %v", err)
	}
	if text := h.Echo(t, "still here"); text != "still here" {
		t.Errorf("echo said %q", text)
	}
}
