package catalog_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// threeServers is a catalog with three servers, of which "hers" is private.
func threeServers() *catalog.Catalog {
	const schema = `{"type":"object"}`
	return catalog.New(catalog.Options{
		Private: func(space string) bool { return space == "hers" },
		Sources: []tool.Source{newMemory().
			with("", "own", schema, echo).
			with("fs", "read", schema, echo).with("fs", "write", schema, echo).
			with("web", "fetch", schema, echo).
			with("hers", "diary", schema, echo)},
	})
}

func only(refs ...string) *tool.Scope {
	return &tool.Scope{Allows: func(r tool.Ref) bool {
		return slices.ContainsFunc(refs, func(s string) bool { return s == r.String() || r.Name == "" && strings.HasPrefix(s, r.Space+".") })
	}}
}

func TestScopeNarrowsEverything(t *testing.T) {
	t.Parallel()
	c := threeServers()
	ctx := tool.WithScope(t.Context(), only("fs.read", "hers.diary"))
	tools, err := c.Tools(ctx)
	if got := strings.Join(names(tools), " "); err != nil || got != "fs.read hers.diary" {
		t.Errorf("sees %q, %v", got, err)
	}
	if got := c.Namespaces(ctx); !slices.Equal(got, []string{"fs", "hers"}) {
		t.Errorf("namespaces %v", got)
	}
	if _, ok := c.In(ctx, "web"); ok {
		t.Error("web is there")
	}
	if inside, _ := c.In(ctx, "fs"); len(inside) != 1 {
		t.Errorf("fs has %v", names(inside))
	}
	if _, ok := c.Find(ctx, ref("fs", "write")); ok {
		t.Error("fs.write is found")
	}
	if hits, total := c.Search(ctx, catalog.Query{}); total != 2 || len(hits) != 2 {
		t.Errorf("finds %d of %d", len(hits), total)
	}
	if _, total := c.Search(ctx, catalog.Query{Text: "write"}); total != 0 {
		t.Error("finds what it may not see")
	}
	for _, one := range []string{"fs.write", "web.fetch", "own", "mcp.web.fetch", "fs__write"} {
		_, err := c.Resolve(ctx, one)
		f := wantFault(t, err, fault.ToolNotFound)
		if strings.Contains(f.Hint, "web") || strings.Contains(f.Hint, "write") || strings.Contains(f.Hint, "own") {
			t.Errorf("%s: the hint names other tools: %s", one, f.Hint)
		}
	}
	for _, r := range []tool.Ref{ref("fs", "write"), ref("web", "fetch"), ref("", "own")} {
		_, err := c.Call(ctx, tool.Call{Ref: r})
		wantFault(t, err, fault.ToolNotFound)
	}
	if _, err := c.Call(ctx, call("fs", "read", `{}`)); err != nil {
		t.Error(err)
	}
}

func TestPrivateNamespacesAreHidden(t *testing.T) {
	t.Parallel()
	c := threeServers()
	if got := strings.Join(listed(t, c), " "); got != "own fs.read fs.write web.fetch" {
		t.Errorf("without a scope: %q", got)
	}
	_, err := c.Call(t.Context(), call("hers", "diary", `{}`))
	if f := wantFault(t, err, fault.ToolNotFound); strings.Contains(f.Hint, "hers") {
		t.Errorf("the hint names it: %s", f.Hint)
	}
	if _, err := c.Resolve(t.Context(), "hers.diary"); err == nil {
		t.Error("a caller without a scope finds it")
	}
}

// A scope holds for whatever a call leads to, and cannot be widened on the way.
func TestScopeReachesThroughTools(t *testing.T) {
	t.Parallel()
	var c *catalog.Catalog
	through := func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		wider := tool.WithScope(ctx, &tool.Scope{Allows: func(tool.Ref) bool { return true }})
		return c.Call(wider, tool.Call{Ref: tool.Ref{Space: "b", Name: "inner"}})
	}
	c = catalog.New(catalog.Options{Sources: []tool.Source{newMemory().
		with("a", "outer", `{"type":"object"}`, through).with("b", "inner", `{"type":"object"}`, echo)}})
	_, err := c.Call(tool.WithScope(t.Context(), only("a.outer")), call("a", "outer", `{}`))
	wantFault(t, err, fault.ToolNotFound)

	var asked atomic.Int32
	counting := only("a.outer", "b.inner")
	counting.Admit = func(tool.Ref) error {
		if asked.Add(1) > 1 {
			return fault.New(fault.Limit, "enough")
		}
		return nil
	}
	_, err = c.Call(tool.WithScope(t.Context(), counting), call("a", "outer", `{}`))
	wantFault(t, err, fault.Limit)
}

// TestNamesOfAScope checks that a scope's own name of a namespace is used everywhere, also
// if another namespace has that name, which the scope does not allow.
func TestNamesOfAScope(t *testing.T) {
	t.Parallel()
	var called []string
	fails := func(_ context.Context, call tool.Call) (tool.Result, error) {
		called = append(called, call.Ref.String())
		return tool.Result{}, fault.New(fault.Unavailable, "%s: no answer", call.Ref).WithHint("ask the owner of %s", call.Ref.Space)
	}
	c := catalog.New(catalog.Options{
		Private: func(space string) bool { return space == "own-fs-1" },
		Sources: []tool.Source{newMemory().with("fs", "read", `{"type":"object"}`, echo).with("own-fs-1", "diary", `{"type":"object"}`, fails)},
	})
	scope := only("own-fs-1.diary")
	scope.Names = map[string]string{"fs": "own-fs-1"}
	ctx := tool.WithScope(tool.WithScope(t.Context(), scope), &tool.Scope{Allows: func(tool.Ref) bool { return true }})
	tools, err := c.Tools(ctx)
	inside, _ := c.In(ctx, "fs")
	hits, _ := c.Search(ctx, catalog.Query{Text: "diary", Namespace: "fs"})
	if err != nil || len(tools) != 1 || len(inside) != 1 || len(hits) != 1 || !slices.Equal(c.Namespaces(ctx), []string{"fs"}) {
		t.Fatalf("%v, %v, %v, %v", names(tools), names(inside), hits, err)
	}
	for _, info := range []tool.Info{tools[0], inside[0], hits[0].Info} {
		if info.Ref != ref("fs", "diary") {
			t.Errorf("it is named %s", info.Ref)
		}
	}
	for _, name := range []string{"fs.diary", "fs__diary", "mcp.fs.diary"} {
		if info, err := c.Resolve(ctx, name); err != nil || info.Ref != ref("fs", "diary") {
			t.Errorf("%s: %s, %v", name, info.Ref, err)
		}
	}
	if info, ok := c.Find(ctx, ref("fs", "diary")); !ok || info.Ref != ref("fs", "diary") || !c.Exists(ctx, "fs") || !c.Shows(ctx, ref("fs", "diary")) {
		t.Errorf("it is found as %s, %v", info.Ref, ok)
	}
	_, err = c.Call(ctx, call("fs", "diary", `{}`))
	f := wantFault(t, err, fault.Unavailable)
	if len(called) != 1 || called[0] != "own-fs-1.diary" || err.Error() != "fs.diary: no answer" || fault.HintOf(f) != "ask the owner of fs" {
		t.Errorf("called %v: %v, %s", called, err, fault.HintOf(f))
	}
	for _, r := range []tool.Ref{ref("fs", "read"), ref("fs", "diray")} {
		_, err := c.Call(ctx, tool.Call{Ref: r})
		if f := wantFault(t, err, fault.ToolNotFound); !strings.Contains(f.Hint, "available in fs: diary") || strings.Contains(f.Error()+f.Hint, "own-fs") {
			t.Errorf("%v, %s", f, f.Hint)
		}
	}
}
