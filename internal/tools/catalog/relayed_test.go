package catalog_test

import (
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// Calls that take another way to their tool are counted like others, and told to
// those who listen.
func TestRelayedCallsAreCountedAndTold(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	c := open(catalog.Options{Bus: bus}, newMemory().with("a", "x", "", nil))
	relay := func(name string, err error) {
		r := c.Relay(t.Context(), call("a", name, "{}"))
		defer r.Broken()
		r.End(t.Context(), tool.Result{Raw: []byte(`{"content":[]}`)}, err)
	}
	c.Refresh(t.Context()) // which tells of tools
	before := bus.Last()
	relay("x", nil)
	if bus.Last() != before {
		t.Error("something was published that nobody wanted")
	}
	sub := bus.Subscribe(event.Options{Types: []string{"tool.call_*"}})
	defer sub.Close()
	relay("y", fault.New(fault.Upstream, "broken"))
	first, _ := sub.Poll()
	second, _ := sub.Poll()
	if want := (catalog.CallStarted{Call: 2, Namespace: "a", Tool: "y", Depth: 1}); first.Data != want {
		t.Errorf("told %+v", first.Data)
	}
	if ended, ok := second.Data.(catalog.CallEnded); !ok || ended.Call != 2 || ended.ErrorType != "upstream_error" || ended.Error != "broken" {
		t.Errorf("told %+v", second.Data)
	}
	func() {
		defer func() { _ = recover() }()
		r := c.Relay(t.Context(), call("a", "x", "{}"))
		defer r.Broken()
		panic("on the way")
	}()
	if s, _ := c.Stats(t.Context(), "a"); s.Calls != 3 || s.Errors != 2 || s.InFlight != 0 || s.LastTool != "x" || s.LastCall.IsZero() {
		t.Errorf("counted %+v", s)
	}
	nowhere := c.Relay(t.Context(), call("nowhere", "x", "{}"))
	nowhere.End(t.Context(), tool.Result{}, nil)
}

// While nobody listens that takes no memory.
func TestRelayedCallsTakeNoMemory(t *testing.T) {
	c := open(catalog.Options{Bus: event.New(event.BusOptions{})}, newMemory().with("a", "x", "", nil))
	ctx, made, answer := t.Context(), call("a", "x", "{}"), tool.Result{Raw: []byte(`{"content":[]}`)}
	if n := testing.AllocsPerRun(100, func() {
		r := c.Relay(ctx, made)
		defer r.Broken()
		r.End(ctx, answer, nil)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRelayed(b *testing.B) {
	c := open(catalog.Options{Bus: event.New(event.BusOptions{})}, newMemory().with("a", "x", "", nil))
	ctx, made, answer := b.Context(), call("a", "x", "{}"), tool.Result{Raw: []byte(`{"content":[]}`)}
	b.ReportAllocs()
	for b.Loop() {
		r := c.Relay(ctx, made)
		r.End(ctx, answer, nil)
	}
}
