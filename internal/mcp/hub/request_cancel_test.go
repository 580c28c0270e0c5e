package hub_test

import (
	"bufio"
	"context"
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
