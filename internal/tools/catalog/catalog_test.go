package catalog_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

func TestToolsAreMergedInStableOrder(t *testing.T) {
	t.Parallel()
	c := open(catalog.Options{},
		newMemory().with("zeta", "b", "", nil).with("alpha", "z", "", nil).with("alpha", "a", "", nil),
		newMemory().with("", "search_tools", "", nil),
	)
	c.Add(newMemory().with("mid", "m", "", nil))
	want := []string{"search_tools", "alpha.a", "alpha.z", "mid.m", "zeta.b"}
	for range 3 {
		if got := listed(t, c); !slices.Equal(got, want) {
			t.Fatalf("tools = %v, want %v", got, want)
		}
	}
	if got := c.Namespaces(t.Context()); !slices.Equal(got, []string{"alpha", "mid", "zeta"}) {
		t.Errorf("namespaces = %v", got)
	}
}

func TestCallsReachTheirSource(t *testing.T) {
	t.Parallel()
	first, second := newMemory().with("a", "x", "", nil), newMemory().with("b", "x", "", nil)
	c := open(catalog.Options{}, first, second)
	result, err := c.Call(t.Context(), call("b", "x", `{"n":9007199254740993}`))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(result.Raw), "9007199254740993") || first.called() != 0 || second.called() != 1 {
		t.Errorf("result %s, first called %d times, second %d", result.Raw, first.called(), second.called())
	}
}

func TestTheEarlierSourceWins(t *testing.T) {
	t.Parallel()
	first, second := newMemory().with("a", "x", "", nil), newMemory().with("a", "x", "", nil).with("a", "y", "", nil)
	c := open(catalog.Options{}, first, second)
	for _, name := range []string{"x", "y"} {
		if _, err := c.Call(t.Context(), call("a", name, "")); err != nil {
			t.Fatal(err)
		}
	}
	if first.called() != 1 || second.called() != 1 {
		t.Errorf("calls: first %d, second %d, want one each", first.called(), second.called())
	}
	if got := listed(t, c); !slices.Equal(got, []string{"a.x", "a.y"}) {
		t.Errorf("tools = %v", got)
	}
}

func TestOneToolIsFound(t *testing.T) {
	t.Parallel()
	m := newMemory().with("a", "x", "", nil)
	c := open(catalog.Options{}, m)
	_ = listed(t, c)
	m.with("a", "new", "", nil)
	for name, want := range map[string]bool{"x": true, "new": true, "y": false} {
		info, ok := c.Find(t.Context(), ref("a", name))
		if ok != want || ok && info.Name != name {
			t.Errorf("a.%s: found %v %q, want %v", name, ok, info.Name, want)
		}
	}
	if _, ok := c.Find(t.Context(), ref("b", "x")); ok {
		t.Error("a tool of a namespace that is not there was found")
	}
}

func TestListsFollowTheirSources(t *testing.T) {
	t.Parallel()
	m := newMemory().with("a", "x", "", nil)
	c := open(catalog.Options{}, m)
	_ = listed(t, c)
	m.with("a", "new", "", nil)
	if _, err := c.Call(t.Context(), call("a", "new", "")); err != nil {
		t.Errorf("a tool that just appeared: %v", err)
	}
	m.without(ref("a", "x"))
	if got := listed(t, c); !slices.Equal(got, []string{"a.new"}) {
		t.Errorf("tools = %v", got)
	}
	m.breakWith(errors.New("cannot list"))
	if got := listed(t, c); !slices.Equal(got, []string{"a.new"}) {
		t.Errorf("tools of a source in trouble = %v, want the last known", got)
	}
	if _, err := c.Call(t.Context(), call("a", "new", "")); err != nil {
		t.Errorf("call to a source that cannot list: %v", err)
	}
}

func TestANamespaceThatHasNotListedToolsIsCalled(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.spaces = []string{"slow"}
	c := open(catalog.Options{}, m)
	_, err := c.Call(t.Context(), call("slow", "anything", ""))
	f := wantFault(t, err, fault.Unavailable)
	if !strings.Contains(f.Error(), "still connecting") {
		t.Errorf("error = %v, want the source's own", f)
	}
	if got := c.Namespaces(t.Context()); !slices.Equal(got, []string{"slow"}) {
		t.Errorf("namespaces = %v", got)
	}
}

// A tool that was removed since the sources were read is reported with suggestions.
func TestARemovedTool(t *testing.T) {
	t.Parallel()
	m := newMemory().with("a", "old_name", "", fail(fault.NotFound)).with("a", "kept", "", fail(fault.NotFound))
	c := open(catalog.Options{}, m)
	_ = listed(t, c)
	m.without(ref("a", "old_name"))
	m.with("a", "old_names", "", nil)
	_, err := c.Call(t.Context(), call("a", "old_name", ""))
	if f := wantFault(t, err, fault.ToolNotFound); !strings.Contains(f.Hint, "did you mean a.old_names?") {
		t.Errorf("hint %q", f.Hint)
	}
	_, err = c.Call(t.Context(), call("a", "kept", ""))
	wantFault(t, err, fault.NotFound) // its own
}

func TestAPanickingToolIsAFault(t *testing.T) {
	t.Parallel()
	m := newMemory().with("a", "x", "", func(context.Context, tool.Call) (tool.Result, error) { panic("ouch") })
	c := open(catalog.Options{}, m)
	for range 3 {
		_, err := c.Call(t.Context(), call("a", "x", ""))
		wantFault(t, err, fault.Internal)
	}
	if s, _ := c.Stats(t.Context(), "a"); s.InFlight != 0 || s.Errors != 3 {
		t.Errorf("stats = %+v", s)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	m := newMemory().with("a", "x", "", nil)
	c := open(catalog.Options{}, m)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 20 {
				if i == 0 {
					m.with("a", strings.Repeat("n", n+1), "", nil)
				}
				if _, err := c.Call(t.Context(), call("a", "x", "{}")); err != nil {
					t.Error(err)
				}
				c.Search(t.Context(), catalog.Query{Text: "x"})
				c.Expose("a", catalog.Exposure{All: n%2 == 0})
				_ = listed(t, c.Exposed())
			}
		})
	}
	all.Wait()
	if got := len(listed(t, c)); got != 21 {
		t.Errorf("%d tools, want 21", got)
	}
}
