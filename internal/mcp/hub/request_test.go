package hub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// hanging is a tool that reports when it began, and ends only when it is cancelled or
// released.
type hanging struct {
	began     chan tool.Call
	cancelled chan error
	release   chan struct{}
}

func newHanging() *hanging {
	return &hanging{began: make(chan tool.Call), cancelled: make(chan error, 1), release: make(chan struct{})}
}

func (h *hanging) run(ctx context.Context, call tool.Call) (tool.Result, error) {
	h.began <- call
	select {
	case <-ctx.Done():
		h.cancelled <- context.Cause(ctx)
		return tool.Result{}, context.Cause(ctx)
	case <-h.release:
		return textResult("released"), nil
	}
}

func TestClosingTheConnectionCancels(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{true, false} {
		t.Run(map[bool]string{true: "modern", false: "legacy"}[modern], func(t *testing.T) {
			t.Parallel()
			slow := newHanging()
			_, url := serve(t, options(t, tools{"slow": slow.run}))
			c := &client{t: t, url: url + "/mcp", modern: modern}
			if !modern {
				c.initialize(wire.NewestLegacy)
			}
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error)
			go func() {
				r := c.request(ctx, http.MethodPost, c.call("1", "slow", ""))
				answer, err := httpjsontest.Client.Do(r)
				if err == nil {
					answer.Body.Close()
				}
				failed <- err
			}()
			<-slow.began
			cancel()
			if err := <-failed; err == nil {
				t.Error("the cancelled request was answered")
			}
			if why := <-slow.cancelled; why == nil || !strings.Contains(why.Error(), "closed the connection") {
				t.Errorf("cancelled because %v", why)
			}
		})
	}
}

func TestNotificationCancels(t *testing.T) {
	t.Parallel()
	slow := newHanging()
	_, url := serve(t, options(t, tools{"slow": slow.run}))
	c := &client{t: t, url: url + "/mcp"}
	c.initialize(wire.NewestLegacy)
	answers := make(chan *http.Response)
	go func() { answers <- c.post(t.Context(), c.call(`"one"`, "slow", "")) }()
	<-slow.began
	c.post(t.Context(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"two"}}`).Body.Close()
	c.post(t.Context(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"one"}}`).Body.Close()
	<-slow.cancelled
	if m := answer(t, <-answers); m.Error == nil {
		t.Errorf("the cancelled request was answered with %s", m.Result)
	}
}

func TestStdioCancelIsNotAnswered(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{true, false} {
		slow := newHanging()
		h, _ := serve(t, options(t, tools{"slow": slow.run, "echo": echo}))
		in, say := io.Pipe()
		hear, out := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- h.ServeStdio(context.Background(), in, out); out.Close() }()
		lines := bufio.NewScanner(hear)
		c := &client{t: t, modern: modern}
		if !modern {
			io.WriteString(say, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`+"\n")
			lines.Scan()
		}
		io.WriteString(say, c.call("1", "slow", "")+"\n")
		<-slow.began
		io.WriteString(say, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n")
		<-slow.cancelled
		io.WriteString(say, c.call("2", "echo", "")+"\n")
		if lines.Scan(); !strings.Contains(lines.Text(), `"id":2`) {
			t.Errorf("after the cancelled request came %s", lines.Text())
		}
		say.Close()
		if err := <-ended; err != nil {
			t.Errorf("stdio: %v", err)
		}
	}
}

func TestIDInUseIsRefused(t *testing.T) {
	t.Parallel()
	slow := newHanging()
	_, url := serve(t, options(t, tools{"slow": slow.run, "echo": echo}))
	c := &client{t: t, url: url + "/mcp"}
	c.initialize(wire.NewestLegacy)
	answers := make(chan *http.Response)
	go func() { answers <- c.post(t.Context(), c.call("1", "slow", "")) }()
	<-slow.began
	if m := answer(t, c.post(t.Context(), c.call("1", "echo", ""))); m.Error == nil || !strings.Contains(m.Error.Message, "still running") {
		t.Errorf("the same id again: %s, %v", m.Result, m.Error)
	}
	close(slow.release)
	if m := answer(t, <-answers); !strings.Contains(string(m.Result), "released") {
		t.Errorf("the first one: %s, %v", m.Result, m.Error)
	}
	if m := answer(t, c.post(t.Context(), c.call("1", "echo", ""))); m.Error != nil {
		t.Errorf("the id is free again: %v", m.Error)
	}
}

// Revoking a key cancels its calls, also if the client could reconnect for the answer.
// The cause is the reason of the revocation.
func TestRevokedKeyCancelsCalls(t *testing.T) {
	t.Parallel()
	over := fault.New(fault.Denied, "the key was revoked")
	for _, modern := range []bool{true, false} {
		for _, path := range []string{"/mcp", "/mcp/up"} {
			for _, streams := range []bool{true, false} {
				t.Run(fmt.Sprintf("modern %v, %s, streams %v", modern, path, streams), func(t *testing.T) {
					t.Parallel()
					slow := newHanging()
					opts := options(t, tools{"slow": slow.run})
					opts.Upstreams = upstreams{"up": hangingPeer{&scripted{}, slow}}
					url, revoke := serveRevocable(t, opts)
					c := &client{t: t, url: url + path, modern: modern}
					meta := `"progressToken":7`
					if modern {
						meta += "," + c.modernMeta()
					} else {
						c.initialize(wire.NewestLegacy)
					}
					body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{},"_meta":{` + meta + `}}}`
					answers := make(chan *http.Response, 1)
					go func() { answers <- c.post(t.Context(), body) }()
					running := <-slow.began
					if streams {
						running.Caller.Progress(tool.Progress{Progress: 1})
						response := <-answers
						defer response.Body.Close()
						if m := next(t, events(t, response)); m.Method != wire.NoteProgress {
							t.Errorf("first came %+v", m)
						}
					}
					revoke(over)
					if why := <-slow.cancelled; !errors.Is(why, over) {
						t.Errorf("cancelled because %v", why)
					}
					if !streams {
						(<-answers).Body.Close()
					}
				})
			}
		}
	}
}

// serveRevocable serves a hub whose clients' keys can be revoked.
func serveRevocable(t *testing.T, opts hub.Options) (url string, revoke func(why error)) {
	t.Helper()
	h := hub.New(opts)
	rights, revoke := context.WithCancelCause(context.Background())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		stop := context.AfterFunc(rights, func() { cancel(context.Cause(rights)) })
		defer stop()
		h.Handler().ServeHTTP(w, r.WithContext(ctx))
		cancel(nil)
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // cancels what still runs
		h.Close(ctx)
		server.Close()
		revoke(nil)
	})
	return server.URL, revoke
}

// everyMethod lists the methods that clients may request, in both eras.
var everyMethod = []string{
	wire.MethodInitialize, wire.MethodPing, wire.MethodDiscover, wire.MethodListen,
	wire.MethodToolsList, wire.MethodToolsCall, wire.MethodPromptsList, wire.MethodPromptsGet,
	wire.MethodResourcesList, wire.MethodResourceTemplates, wire.MethodResourcesRead, wire.MethodSubscribe, wire.MethodUnsubscribe,
	wire.MethodComplete, wire.MethodSetLevel,
	wire.MethodTasksGet, wire.MethodTasksCancel, wire.MethodTasksUpdate, wire.MethodTasksList, wire.MethodTasksResult,
	"no/such/method",
}

// channel is a connection with one stream for all answers.
type channel struct {
	send func(body string)
	next func() wire.Message
	end  func() // the client disconnects; it returns when the hub has noticed
}

// stdioChannel connects a client over pipes.
func stdioChannel(t *testing.T, h *hub.Hub, _ string) channel {
	in, say := io.Pipe()
	hear, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- h.ServeStdio(context.Background(), in, out); out.Close() }()
	lines := bufio.NewReader(hear)
	return channel{
		send: func(body string) {
			if _, err := io.WriteString(say, body+"\n"); err != nil {
				t.Fatal(err)
			}
		},
		next: func() wire.Message {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			m, err := wire.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
		end: func() {
			say.Close()
			if err := <-ended; err != nil {
				t.Errorf("stdio: %v", err)
			}
		},
	}
}

// sseChannel connects a client over HTTP+SSE. When the test ends, the server waits for the
// handlers of what was posted.
func sseChannel(t *testing.T, _ *hub.Hub, url string) channel {
	open := httpjsontest.Open(t, http.MethodGet, url+"/mcp/sse", "")
	stream := events(t, open)
	first, err := stream.Next()
	if err != nil {
		t.Fatal(err)
	}
	address := url + string(first.Data)
	return channel{
		send: func(body string) {
			if posted := httpjsontest.Open(t, http.MethodPost, address, body); posted.StatusCode != http.StatusAccepted {
				t.Fatalf("%s: %s", body, posted.Status)
			}
		},
		next: func() wire.Message { return next(t, stream) },
		end:  func() { open.Body.Close() },
	}
}

// A request that reuses the id of a running one is refused, whatever its method is, and the
// connection goes on: what follows is answered, and it ends when the client disconnects.
func TestRefusedRequestsEnd(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*testing.T, *hub.Hub, string) channel{"stdio": stdioChannel, "sse": sseChannel} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := newHanging()
			h, url := serve(t, options(t, tools{"slow": slow.run, "echo": echo}))
			c := connect(t, h, url)
			c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}`)
			c.next()
			c.send((&client{t: t}).call("1", "slow", ""))
			<-slow.began
			for _, method := range everyMethod {
				for _, params := range []string{`{}`, `{"_meta":{` + (&client{}).modernMeta() + `}}`} {
					c.send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
					if m := c.next(); m.ID != "1" || m.Error == nil {
						t.Fatalf("%s %s: answered with %s %s", method, params, m.ID, m.Result)
					}
				}
			}
			c.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			if m := c.next(); m.ID != "2" || m.Error != nil {
				t.Errorf("a ping afterwards: %s %v", m.ID, m.Error)
			}
			close(slow.release)
			if m := c.next(); m.ID != "1" || m.Error != nil {
				t.Errorf("the first request: %s %v", m.ID, m.Error)
			}
			c.end()
		})
	}
}

// hangingPeer is an upstream whose calls hang.
type hangingPeer struct {
	*scripted
	*hanging
}

func (p hangingPeer) Call(ctx context.Context, call tool.Call, _ json.RawMessage) (tool.Result, error) {
	return p.run(ctx, call)
}

// eachEra runs a test in both eras with a function that calls a hanging tool through a
// relay, where the goroutine of the HTTP request makes the call.
func eachEra(t *testing.T, test func(t *testing.T, c *client, slow *hanging, call func(context.Context) <-chan *http.Response)) {
	t.Helper()
	for _, modern := range []bool{true, false} {
		t.Run(map[bool]string{true: "modern", false: "legacy"}[modern], func(t *testing.T) {
			t.Parallel()
			slow := newHanging()
			opts := options(t, tools{})
			opts.Upstreams = upstreams{"up": hangingPeer{&scripted{}, slow}}
			_, url := serve(t, opts)
			c := &client{t: t, url: url + "/mcp/up", modern: modern}
			meta := `,"_meta":{"progressToken":7}`
			if modern {
				meta = `,"_meta":{"progressToken":7,` + c.modernMeta() + `}`
			} else {
				c.initialize(wire.NewestLegacy)
			}
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{}` + meta + `}}`
			test(t, c, slow, func(ctx context.Context) <-chan *http.Response {
				answers := make(chan *http.Response, 1)
				go func() {
					answer, err := httpjsontest.Client.Do(c.request(ctx, http.MethodPost, body))
					if err == nil {
						answers <- answer
					}
					close(answers)
				}()
				return answers
			})
		})
	}
}

func TestInlineAnswerIsJSON(t *testing.T) {
	t.Parallel()
	eachEra(t, func(t *testing.T, _ *client, slow *hanging, call func(context.Context) <-chan *http.Response) {
		answers := call(t.Context())
		<-slow.began
		close(slow.release)
		response := <-answers
		if kind := response.Header.Get("Content-Type"); kind != wire.ContentJSON {
			t.Errorf("answered with %s", kind)
		}
		if m := answer(t, response); !strings.Contains(string(m.Result), "released") {
			t.Errorf("the answer is %s", m.Result)
		}
	})
}

func TestInlineMessagesAreStreamed(t *testing.T) {
	t.Parallel()
	eachEra(t, func(t *testing.T, _ *client, slow *hanging, call func(context.Context) <-chan *http.Response) {
		answers := call(t.Context())
		running := <-slow.began
		running.Caller.Progress(tool.Progress{Progress: 1})
		stream := events(t, <-answers) // it is there before the answer is
		if m := next(t, stream); m.Method != wire.NoteProgress {
			t.Errorf("first came %+v", m)
		}
		close(slow.release)
		if m := next(t, stream); m.ID != "1" || !strings.Contains(string(m.Result), "released") {
			t.Errorf("the answer is %+v", m)
		}
	})
}

func TestInlineDisconnectCancels(t *testing.T) {
	t.Parallel()
	eachEra(t, func(t *testing.T, _ *client, slow *hanging, call func(context.Context) <-chan *http.Response) {
		ctx, leave := context.WithCancel(t.Context())
		answers := call(ctx)
		<-slow.began
		leave()
		<-answers
		if err := <-slow.cancelled; err == nil || !strings.Contains(err.Error(), "closed the connection") {
			t.Errorf("cancelled because of %v", err)
		}
	})
}

// A client of the sessions era that loses a stream reconnects for the rest.
func TestInlineStreamIsResumed(t *testing.T) {
	t.Parallel()
	eachEra(t, func(t *testing.T, c *client, slow *hanging, call func(context.Context) <-chan *http.Response) {
		ctx, leave := context.WithCancel(t.Context())
		answers := call(ctx)
		running := <-slow.began
		running.Caller.Progress(tool.Progress{Progress: 1})
		stream := events(t, <-answers)
		next(t, stream)
		last := stream.LastID()
		leave()
		if c.modern {
			<-slow.cancelled
			return
		}
		r := c.request(t.Context(), http.MethodGet, "")
		r.Header.Set(wire.HeaderLastEventID, last)
		again, err := httpjsontest.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resumed := events(t, again)
		close(slow.release)
		if m := next(t, resumed); m.ID != "1" || !strings.Contains(string(m.Result), "released") {
			t.Errorf("the answer is %+v", m)
		}
	})
}
