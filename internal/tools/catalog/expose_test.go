package catalog_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

func TestNothingIsExposedByDefault(t *testing.T) {
	t.Parallel()
	m := newMemory().with("", "search_tools", "", nil).with("fs", "read", "", nil).with("fs", "write", "", nil)
	c := open(catalog.Options{}, m)
	if got := listed(t, c.Exposed()); !slices.Equal(got, []string{"search_tools"}) {
		t.Errorf("exposed = %v, want our own tools only", got)
	}
	for _, name := range []string{"fs__read", "fs.read", "mcp.fs.read"} {
		if _, err := c.Exposed().Call(t.Context(), call("", name, "")); err != nil {
			t.Errorf("what is not listed cannot be called as %s: %v", name, err)
		}
	}
	if len(m.calls) != 3 || m.calls[0].Ref != ref("fs", "read") {
		t.Errorf("the source was asked for %v", m.calls)
	}
	_, err := c.Exposed().Call(t.Context(), call("", "serch_tools", ""))
	if f := wantFault(t, err, fault.ToolNotFound); !strings.Contains(f.Hint, "did you mean search_tools?") {
		t.Errorf("hint %q", f.Hint)
	}
}

func TestExposure(t *testing.T) {
	t.Parallel()
	m := newMemory().with("", "own", "", nil).with("fs", "read", "", nil).with("fs", "write", "", nil).with("zz", "top", "", nil)
	c := open(catalog.Options{}, m)
	c.Expose("fs", catalog.Exposure{Names: []string{"read", "unknown"}})
	c.Expose("zz", catalog.Exposure{All: true})
	x := c.Exposed()
	if got := listed(t, x); !slices.Equal(got, []string{"fs__read", "own", "zz__top"}) {
		t.Errorf("exposed = %v", got)
	}
	tools, _ := x.Tools(t.Context())
	want := `{"name":"fs__read","x-kept":9007199254740993,"inputSchema":{"type":"object"}}`
	if got := string(tools[0].Raw); got != want {
		t.Errorf("definition %s, want %s", got, want)
	}
	if _, err := x.Call(t.Context(), call("", "fs__read", `{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	if got := m.calls[0]; got.Ref != ref("fs", "read") || string(got.Args) != `{"a":1}` {
		t.Errorf("the source was asked for %v %s", got.Ref, got.Args)
	}
}

func TestTheSignalComesWhenTheExposedSetChanges(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	sub := bus.Subscribe(event.Options{Types: []string{"catalog.*"}})
	defer sub.Close()
	m := newMemory().with("a", "x", "", nil).with("b", "x", "", nil)
	c := open(catalog.Options{Bus: bus}, m)
	c.Expose("a", catalog.Exposure{All: true})
	signals := 0
	stop := c.Exposed().Watch(func() { signals++ })
	last := ""
	step := func(what string, want int, do func()) {
		t.Helper()
		before := signals
		do()
		c.Refresh(t.Context())
		hash := c.Exposed().Hash(t.Context())
		if signals-before != want || (hash != last) != (want > 0) {
			t.Errorf("%s: %d signals, want %d; hash %s after %s", what, signals-before, want, hash, last)
		}
		last = hash
	}
	step("first reading", 1, func() {})
	step("nothing new", 0, func() {})
	step("a hidden tool comes", 0, func() { m.with("b", "y", "", nil) })
	step("an exposed one comes", 1, func() { m.with("a", "y", "", nil) })
	step("an exposed one goes", 1, func() { m.without(ref("a", "x")) })
	step("another definition", 1, func() { m.without(ref("a", "y")); m.with("a", "y", `{"required":[]}`, nil) })
	step("more is exposed", 1, func() { c.Expose("b", catalog.Exposure{Names: []string{"y"}}) })
	step("the same is exposed otherwise", 0, func() { c.Expose("b", catalog.Exposure{Names: []string{"y", "none"}}) })
	stop()
	m.with("a", "z", "", nil)
	c.Refresh(t.Context())
	if signals != 5 {
		t.Errorf("%d signals, want 5: none after stop", signals)
	}
	events := 0
	for _, ok := sub.Poll(); ok; _, ok = sub.Poll() {
		events++
	}
	if events != 6 {
		t.Errorf("%d events, want 6", events)
	}
}

// A source that returns a new slice with equal tools each time changes nothing.
type forgetful struct{ *memory }

func (f forgetful) Tools(ctx context.Context) ([]tool.Info, error) {
	tools, err := f.memory.Tools(ctx)
	return slices.Clone(tools), err
}

func TestEqualListsAreTheSameList(t *testing.T) {
	t.Parallel()
	c := open(catalog.Options{}, forgetful{newMemory().with("", "own", "", nil)})
	signals := 0
	defer c.Exposed().Watch(func() { signals++ })()
	first, _ := c.Tools(t.Context())
	second, _ := c.Tools(t.Context())
	if &first[0] != &second[0] || signals != 1 {
		t.Errorf("the list was made anew; %d signals", signals)
	}
}

// Names follow the tools when as many are there as before.
func TestNamesFollow(t *testing.T) {
	t.Parallel()
	m := newMemory().with("fs", "read_file", "", nil)
	c := open(catalog.Options{}, m)
	c.Expose("fs", catalog.Exposure{All: true})
	step := func(what string, shown string, known, unknown []string) {
		t.Helper()
		if got := listed(t, c.Exposed()); !slices.Equal(got, []string{shown}) {
			t.Errorf("%s: %q shows, want %q", what, got, shown)
		}
		for _, name := range known {
			if _, err := c.Resolve(t.Context(), name); err != nil {
				t.Errorf("%s: %s is not known: %v", what, name, err)
			}
		}
		for _, name := range unknown {
			if got, err := c.Resolve(t.Context(), name); err == nil {
				t.Errorf("%s: %s is known as %v", what, name, got)
			}
		}
	}
	step("first", "fs__read_file", []string{"fs__read_file", "fs.read_file"}, []string{"fs__write_file", "fs.slurp"})
	m.without(ref("fs", "read_file"))
	m.with("fs", "write_file", "", nil)
	step("another tool", "fs__write_file", []string{"fs__write_file", "fs.write_file"}, []string{"fs__read_file", "fs.slurp"})
	m.tools = slices.Clone(m.tools)
	m.tools[0].Original = "slurp"
	step("its owner's name", "fs__write_file", []string{"fs__write_file", "fs.slurp"}, nil)
	c.Expose("fs", catalog.Exposure{All: true, Prefixes: []string{"write_"}})
	step("a route", "write_file", []string{"fs.write_file"}, nil)
}
