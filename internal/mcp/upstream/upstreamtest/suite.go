// Package upstreamtest is the test suite for upstream transports: connect, list,
// call, lose the server, reconnect, cancel a call.
package upstreamtest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Server is a server under test. It has the tools
//
//	echo{text}    answers with the text; says that it only reads
//	wait{}        reports progress once, then waits until it is cancelled
//	cancelled{}   answers with how many waits were cancelled; only reads
type Server struct {
	Spec    upstream.Spec
	Options upstream.Options
	Kill    func(t *testing.T) // ends the server at once, like a crash
	Restart func(t *testing.T) // starts it again; nil if the manager does
}

// Run runs the suite. newServerUnderTest makes a server for each of its parts.
func Run(t *testing.T, newServerUnderTest func(t *testing.T) Server) {
	t.Run("lists and calls", func(t *testing.T) {
		t.Parallel()
		listsAndCalls(t, newServerUnderTest(t))
	})
	t.Run("reconnects", func(t *testing.T) {
		t.Parallel()
		reconnects(t, newServerUnderTest(t))
	})
	t.Run("cancels", func(t *testing.T) {
		t.Parallel()
		cancels(t, newServerUnderTest(t))
	})
}

func listsAndCalls(t *testing.T, srv Server) {
	h := Start(t, srv)
	infos, err := h.Manager.Tools(t.Context())
	if err != nil || len(infos) < 3 {
		t.Fatalf("tools = %v, %v", infos, err)
	}
	for i := 1; i < len(infos); i++ {
		if infos[i-1].Name >= infos[i].Name {
			t.Errorf("%q is listed before %q", infos[i-1].Name, infos[i].Name)
		}
	}
	if text := h.Echo(t, "grüß dich"); text != "grüß dich" {
		t.Errorf("echo said %q", text)
	}
	none, err := h.Manager.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: srv.Spec.Name, Name: "no such tool"}})
	if view, _ := none.View(); !view.IsError && fault.CodeOf(err) != fault.Upstream {
		t.Errorf("calling what does not exist: %s, %v", none.Raw, err)
	}
	status, _ := h.Manager.Status(srv.Spec.Name)
	if status.State != upstream.StateConnected || status.Stats.Calls != 2 || status.Stats.Errors != 1 {
		t.Errorf("status = %+v", status)
	}
}

func reconnects(t *testing.T, srv Server) {
	h := Start(t, srv)
	for range 3 {
		srv.Kill(t)
		if srv.Restart != nil {
			h.Await(t, "upstream.lost")
			h.Await(t, "upstream.reconnecting")
			infos, _ := h.Manager.Tools(t.Context())
			if len(infos) == 0 || !infos[0].Stale {
				t.Errorf("the tools of a disconnected server are %v", infos)
			}
			srv.Restart(t)
		}
		if text := h.Echo(t, "again"); text != "again" {
			t.Errorf("echo said %q", text)
		}
		h.Await(t, "upstream.connected")
	}
}

func cancels(t *testing.T, srv Server) {
	h := Start(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	caller := &tool.Caller{Progress: func(tool.Progress) { cancel() }}
	_, err := h.Manager.Call(ctx, tool.Call{Ref: h.ref("wait"), Caller: caller})
	if fault.CodeOf(err) != fault.Cancelled {
		t.Fatalf("cancelled call ended with %v", err)
	}
	for h.Text(t, "cancelled", nil) == "0" {
		if t.Context().Err() != nil {
			t.Fatal("the server never received the cancellation")
		}
	}
}

// Harness is a manager with one upstream, and a subscription to its events.
type Harness struct {
	Manager *upstream.Manager
	Name    string
	events  *event.Subscription
}

// Start adds the server to a manager of its own and waits until it is
// connected. All of it ends with the test.
func Start(t *testing.T, srv Server) *Harness {
	t.Helper()
	h := Open(t, srv)
	h.Await(t, "upstream.connected")
	return h
}

// Open is Start without waiting.
func Open(t *testing.T, srv Server) *Harness {
	t.Helper()
	bus := event.New(event.BusOptions{})
	options := srv.Options
	options.Events = bus
	h := &Harness{Manager: upstream.New(options), Name: srv.Spec.Name, events: bus.Subscribe(event.Options{Buffer: 100_000})}
	t.Cleanup(func() {
		h.Manager.Close()
		h.events.Close()
	})
	if err := h.Manager.Add(srv.Spec); err != nil {
		t.Fatal(err)
	}
	return h
}

// Await waits for the next event of that type.
func (h *Harness) Await(t *testing.T, kind string) event.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.Timeout)
	defer cancel()
	var seen []string
	for {
		e, err := h.events.Next(ctx)
		if err != nil {
			status, _ := h.Manager.Status(h.Name)
			t.Fatalf("no %s after %v; status %+v", kind, seen, status)
		}
		if seen = append(seen, e.Type); e.Type == kind {
			return e
		}
	}
}

// Poll is the next event, if there is one.
func (h *Harness) Poll() (event.Event, bool) { return h.events.Poll() }

// Echo calls the tool of that name.
func (h *Harness) Echo(t *testing.T, text string) string {
	t.Helper()
	args, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	return h.Text(t, "echo", args)
}

// Text calls a tool that must succeed and returns its text.
func (h *Harness) Text(t *testing.T, name string, args json.RawMessage) string {
	t.Helper()
	result, err := h.Manager.Call(t.Context(), tool.Call{Ref: h.ref(name), Args: args})
	if err != nil {
		t.Fatalf("call %s: %v", name, err)
	}
	view, err := result.View()
	if err != nil || view.IsError {
		t.Fatalf("call %s: %s, %v", name, result.Raw, err)
	}
	return view.Text()
}

func (h *Harness) ref(name string) tool.Ref { return tool.Ref{Space: h.Name, Name: name} }
