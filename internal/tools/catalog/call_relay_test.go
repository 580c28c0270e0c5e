package catalog_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// forwarder answers relayed requests.
type forwarder func() (json.RawMessage, error)

func (f forwarder) Call(context.Context, tool.Call, json.RawMessage) (tool.Result, error) {
	raw, err := f()
	return tool.Result{Raw: raw}, err
}

func fine() (json.RawMessage, error) { return json.RawMessage(`{"content":[]}`), nil }

// Relayed calls are counted like others, and published while something subscribes.
func TestRelayedCallsAreCountedAndPublished(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	c := open(catalog.Options{Bus: bus}, newMemory().with("a", "x", "", nil))
	relay := func(name string, f forwarder) error {
		_, err := c.Relay(t.Context(), tool.Info{Ref: ref("a", name)}, call("a", name, "{}"), json.RawMessage(`{}`), f)
		return err
	}
	c.Refresh(t.Context()) // publishes that tools have changed
	before := bus.Last()
	if err := relay("x", fine); err != nil {
		t.Fatal(err)
	}
	if bus.Last() != before {
		t.Error("an event was published though nothing subscribes")
	}
	sub := bus.Subscribe(event.Options{Types: []string{"tool.call_*"}})
	defer sub.Close()
	_ = relay("y", func() (json.RawMessage, error) { return nil, fault.New(fault.Upstream, "broken") })
	first, _ := sub.Poll()
	second, _ := sub.Poll()
	if want := (catalog.CallStarted{Call: 2, Namespace: "a", Tool: "y", Depth: 1}); first.Data != want {
		t.Errorf("published %+v", first.Data)
	}
	if ended, ok := second.Data.(catalog.CallEnded); !ok || ended.Call != 2 || ended.ErrorType != "upstream_error" || ended.Error != "broken" {
		t.Errorf("published %+v", second.Data)
	}
	wantFault(t, relay("x", func() (json.RawMessage, error) { panic("on the way") }), fault.Internal)
	if s, _ := c.Stats(t.Context(), "a"); s.Calls != 3 || s.Errors != 2 || s.InFlight != 0 || s.LastTool != "x" || s.LastCall.IsZero() {
		t.Errorf("counted %+v", s)
	}
	_, err := c.Relay(t.Context(), tool.Info{}, call("nowhere", "x", "{}"), nil, forwarder(fine))
	wantFault(t, err, fault.NotFound)
}

// The steps of a relayed call take no memory while nothing subscribes. Now and then the
// garbage collector empties the pool of runs, hence the average.
func TestRelayedCallsTakeNoMemory(t *testing.T) {
	c := open(catalog.Options{Bus: event.New(event.BusOptions{})}, newMemory().with("a", "x", "", nil))
	answer := json.RawMessage(`{"content":[]}`)
	to := forwarder(func() (json.RawMessage, error) { return answer, nil })
	ctx, made, info := principal.With(t.Context(), principal.Local()), call("a", "x", "{}"), tool.Info{Ref: ref("a", "x")}
	if n := testing.AllocsPerRun(1000, func() { _, _ = c.Relay(ctx, info, made, made.Args, to) }); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRelay(b *testing.B) {
	c := open(catalog.Options{Bus: event.New(event.BusOptions{})}, newMemory().with("a", "x", "", nil))
	ctx, made, info := principal.With(b.Context(), principal.Local()), call("a", "x", "{}"), tool.Info{Ref: ref("a", "x")}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Relay(ctx, info, made, made.Args, forwarder(fine)); err != nil {
			b.Fatal(err)
		}
	}
}
