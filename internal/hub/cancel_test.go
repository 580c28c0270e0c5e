package hub_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/tool"
	"github.com/luanette/luanette/internal/wire"
)

// hanging is a tool that tells when it began, and ends only when it is cancelled
// or let go.
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
				answer, err := http.DefaultClient.Do(r)
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
