package hootclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/zmq/hootclient"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/hootserver"
)

// echoTool is a source of one tool.
type echoTool struct{}

func (echoTool) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Name: "echo"}, Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (echoTool) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Output("said "+string(call.Args), call.Args)
}

// A hootserver answers everything that a client asks.
func TestServer(t *testing.T) {
	t.Parallel()
	server, err := hootserver.Listen(t.Context(), hootserver.Options{Name: "stage", Listen: "tcp://127.0.0.1:0", Source: echoTool{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	defer func() {
		if stop(); <-served != nil {
			t.Error("the server failed")
		}
	}()
	c, err := hootclient.Dial(t.Context(), server.Addr(), hootclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	catalog, service, err := c.Ready(t.Context())
	if err != nil || service != "stage" || len(catalog.Tools) != 1 || catalog.Tools[0].Name != "echo" {
		t.Errorf("catalog %+v of %q: %v", catalog, service, err)
	}
	if err := c.Heartbeat(t.Context()); err != nil {
		t.Error(err)
	}
	if got := <-call(t.Context(), c, "echo"); got.err != nil || got.Output.Text != `said {"n":1}` || got.Err != nil {
		t.Errorf("echo: %+v", got)
	}
	if got := <-call(t.Context(), c, "none"); got.err != nil || got.Err == nil || got.Err.Code != hootproto.CodeToolNotFound {
		t.Errorf("no tool: %+v", got)
	}
	raw, err := c.Request(t.Context(), hootproto.NewID(), json.RawMessage(`{"type":"tool_call","name":"echo","arguments":{"n":2}}`))
	if err != nil || !strings.Contains(string(raw), `said {\"n\":2}`) {
		t.Errorf("request: %s, %v", raw, err)
	}
	if _, err := c.Request(t.Context(), hootproto.NewID(), json.RawMessage(`{`)); !errors.Is(err, hootclient.ErrNotSent) {
		t.Errorf("a body that is no JSON: %v", err)
	}
}

// The catalog must be readable and name the protocol.
func TestReadyChecksTheCatalog(t *testing.T) {
	t.Parallel()
	b := listen(t)
	c := b.dial(hootclient.Options{})
	if err := b.ready(c, hootproto.Catalog{Protocol: "HOOT99"}); fault.CodeOf(err) != fault.Upstream || !strings.Contains(err.Error(), "HOOT99") {
		t.Errorf("another protocol: %v", err)
	}
	if err := b.ready(c, []int{1}); fault.CodeOf(err) != fault.Upstream {
		t.Errorf("no catalog: %v", err)
	}
	if err := b.ready(c, hootproto.Catalog{Protocol: hootproto.Hoot01}); err != nil {
		t.Errorf("a catalog without tools: %v", err)
	}
}

// A reply that is too large or cannot be decoded fails its call, and no other.
func TestUnusableReplies(t *testing.T) {
	t.Parallel()
	b := listen(t)
	c := b.dial(hootclient.Options{MaxBody: 1000})
	for _, reply := range []struct {
		body any
		want error
	}{
		{text(strings.Repeat("x", 2000)), hootclient.ErrTooLarge},
		{[]int{1}, hootclient.ErrUnreadable},
		{text("fits"), nil},
	} {
		pending := call(t.Context(), c, "echo")
		b.send(b.next(hootproto.Request).Answer(hootproto.Reply), reply.body)
		if got := <-pending; !errors.Is(got.err, reply.want) || errors.Is(got.err, hootclient.ErrNotSent) {
			t.Errorf("%.20v: %v, want %v", reply.body, got.err, reply.want)
		}
	}
	pending := call(t.Context(), c, "echo")
	b.send(b.next(hootproto.Request).Answer(hootproto.Reply), text(strings.Repeat("x", 100_000)))
	if got := <-pending; got.err == nil {
		t.Errorf("a reply of more than four times the limit: %+v", got)
	}
	<-c.Done()
}

// A call whose context ends is cancelled at backends that support it.
func TestCancelledCall(t *testing.T) {
	t.Parallel()
	for _, accepts := range []bool{true, false} {
		b := listen(t)
		c := b.dial(hootclient.Options{})
		if err := b.ready(c, hootproto.Catalog{Protocol: hootproto.Hoot01, AcceptsCancel: accepts}); err != nil {
			t.Fatal(err)
		}
		errEnough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		pending := call(ctx, c, "echo")
		request := b.next(hootproto.Request)
		cancel(errEnough)
		if got := <-pending; !errors.Is(got.err, errEnough) || errors.Is(got.err, hootclient.ErrNotSent) {
			t.Errorf("the call: %v", got.err)
		}
		if accepts {
			raw, err := b.next(hootproto.Request).JSON()
			if id, ok := hootproto.ReadCancel(raw); err != nil || !ok || id != request.ID {
				t.Errorf("cancelled by %s, %v", raw, err)
			}
		}
		b.send(request.Answer(hootproto.Reply), text("too late"))
		c.Close()
		b.next(hootproto.Disconnect) // and nothing before it
	}
}

// A backend that refuses a call because it shuts down gets no more calls. The refused
// call returns when the connection has ended, so that a retry reaches another backend.
func TestCallRefusedBecauseOfShutdown(t *testing.T) {
	t.Parallel()
	b := listen(t)
	c := b.dial(hootclient.Options{})
	pending := call(t.Context(), c, "echo")
	b.send(b.next(hootproto.Request).Answer(hootproto.Reply), hootproto.Outcome{Err: &hootproto.ToolError{
		Code: hootproto.CodeUnavailable, Message: "shutting down", Details: hootproto.Unexecuted,
	}})
	got := <-pending
	if !errors.Is(got.err, hootclient.ErrNotSent) || got.err.Error() != "shutting down" || got.Err == nil {
		t.Errorf("the refused call: %+v", got)
	}
	<-c.Done()
}
