package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/tokencount"
)

// manyTools offers count tools of a server.
func (h toolFixture) manyTools(t *testing.T, namespace string, count int) {
	t.Helper()
	tools := map[string]string{}
	for i := range count {
		tools[fmt.Sprintf("tool_%d", i)] = `{"type":"object","properties":{"path":{"type":"string","description":"where it is, and some more words about that"}},"required":["path"]}`
	}
	h.servers.offer(namespace, tools)
	if err := h.servers.Add(t.Context(), upstreamset.Server{Namespace: namespace, URL: "http://127.0.0.1:9/x"}); err != nil {
		t.Fatal(err)
	}
	h.catalog.Expose(namespace, catalog.Exposure{All: true})
	h.catalog.Refresh(t.Context())
}

func (h toolFixture) menu(mode string, threshold int) *builtin.Menu {
	return builtin.NewMenu(h.catalog.Exposed(), builtin.MenuOptions{Mode: mode, Threshold: threshold, Own: h.set.Has})
}

func listed(t *testing.T, m *builtin.Menu) (names []string, cost int) {
	t.Helper()
	infos, err := m.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		names = append(names, info.Name)
		cost += tokencount.Estimate(string(info.Raw))
	}
	return names, cost + tokencount.Estimate(m.Instructions(t.Context()))
}

func TestTheMenuOfCodeModeIsShort(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.manyTools(t, "crowd", 1000)
	names, cost := listed(t, h.menu(builtin.ModeCode, 0))
	if !slices.Contains(names, "search_tools") || !slices.Contains(names, "get_tool_definitions") || len(names) > 3 {
		t.Errorf("shown are %v", names)
	}
	if cost > 700 {
		t.Errorf("%d tokens, want at most 700", cost)
	}
	if names, cost := listed(t, h.menu(builtin.ModeDirect, 0)); len(names) < 1000 || cost < 20_000 {
		t.Errorf("directly %d tools in %d tokens", len(names), cost)
	}
}

func TestTheModeFollowsTheCatalog(t *testing.T) {
	t.Parallel()
	h := open(t)
	m := h.menu(builtin.ModeAuto, 20)
	h.manyTools(t, "crowd", 20)
	if names, _ := listed(t, m); !slices.Contains(names, "crowd__tool_7") || !strings.Contains(m.Instructions(t.Context()), "call_tool") {
		t.Errorf("few tools show as %v", names)
	}
	first, _ := m.Tools(t.Context())
	if again, _ := m.Tools(t.Context()); &first[0] != &again[0] {
		t.Error("the list is another one though nothing changed")
	}
	h.manyTools(t, "crowd", 21)
	if names, _ := listed(t, m); slices.Contains(names, "crowd__tool_7") || !strings.Contains(m.Instructions(t.Context()), "execute_code") {
		t.Errorf("many tools show as %v", names)
	}
	h.catalog.Pin([]string{"crowd.tool_7", "lua_help", "fs.read_file"})
	if names, _ := listed(t, m); !slices.Contains(names, "crowd__tool_7") || !slices.Contains(names, "lua_help") || !slices.Contains(names, "fs__read_file") {
		t.Errorf("favourites are missing in %v", names)
	}
	call := tool.Call{Ref: tool.Ref{Name: "crowd__tool_3"}, Args: json.RawMessage(`{"path":"x"}`)}
	if _, err := m.Call(t.Context(), call); err != nil {
		t.Errorf("what is not shown cannot be called: %v", err)
	}
}

func TestCosts(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.manyTools(t, "crowd", 5)
	text, err := builtin.CostResources(h.catalog, h.menu(builtin.ModeAuto, 60))[0].Read(context.Background(), "")
	var costs builtin.TokenCosts
	if err != nil || json.Unmarshal([]byte(text), &costs) != nil {
		t.Fatalf("%s, %v", text, err)
	}
	if costs.Mode != builtin.ModeDirect || costs.Code > 700 || costs.Menu <= costs.Code || costs.All < costs.Menu {
		t.Errorf("%+v", costs)
	}
	if u := costs.Upstreams[0]; u.Namespace != "crowd" || len(u.Tools) != 5 || u.Tokens < 5*u.Tools[4].Tokens || u.Tools[0].TypeScript == 0 {
		t.Errorf("%+v", u)
	}
}
