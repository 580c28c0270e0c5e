package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/searchtools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
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
	if err := h.servers.Add(t.Context(), namespace, upstream.Settings{URL: "http://127.0.0.1:9/x"}); err != nil {
		t.Fatal(err)
	}
	h.catalog.Refresh(t.Context())
}

func (h toolFixture) menu(name string) *builtin.Menu {
	return builtin.NewMenu(h.catalog.Exposed(), builtin.MenuOptions{Menu: name, Scripts: builtin.DefaultScripts, Own: h.set.Has})
}

func listed(t *testing.T, m *builtin.Menu) (infos []tool.Info, names []string, tokens int) {
	t.Helper()
	infos, err := m.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		names = append(names, info.Name)
		tokens += tokencount.Estimate(string(info.Raw))
	}
	return infos, names, tokens
}

// TestMenusAreSmall checks what the menus take of a model's context, whatever is
// connected. The estimate is not below what o200k counts: see package tokencount.
func TestMenusAreSmall(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.manyTools(t, "crowd", 1000)
	instructions := tokencount.Estimate(builtin.Instructions(builtin.MenuCode))
	if instructions > 250 {
		t.Errorf("the instructions have %d tokens, want at most 250", instructions)
	}
	for name, limit := range map[string]int{builtin.MenuCode: 780, builtin.MenuStandard: 2600} {
		infos, names, tokens := listed(t, h.menu(name))
		if tokens+instructions > limit {
			t.Errorf("menu %s: %d tokens, want at most %d", name, tokens+instructions, limit)
		}
		for _, info := range infos {
			if info.Output != nil || strings.Contains(string(info.Raw), "outputSchema") || strings.Contains(string(info.Raw), `"title"`) {
				t.Errorf("menu %s: %s has more than a model needs: %s", name, info.Name, info.Raw)
			}
		}
		if name == builtin.MenuCode && !slices.Equal(names, []string{"call_tool", "call_tool_read", "execute_code", "get_tool_definitions", "search_tools"}) {
			t.Errorf("menu code has %v", names)
		}
	}
	infos, names, _ := listed(t, h.menu(builtin.MenuFull))
	if own, _ := h.set.Tools(t.Context()); len(names) != len(own) {
		t.Errorf("menu full has %d tools, want %d", len(names), len(own))
	}
	if i := slices.Index(names, "search_tools"); infos[i].Output == nil || !strings.Contains(string(infos[i].Raw), "outputSchema") {
		t.Errorf("menu full has no output schemas: %s", infos[i].Raw)
	}
}

// TestHintsAreExplicit checks that clients can tell what each tool of ours does, whatever
// they take a missing hint for, and that those which search tools do not hide ours.
func TestHintsAreExplicit(t *testing.T) {
	t.Parallel()
	h := open(t)
	type shown struct {
		Annotations map[string]bool
		Meta        map[string]any `json:"_meta"`
	}
	for _, menu := range builtin.Menus {
		infos, _, _ := listed(t, h.menu(menu))
		for _, info := range infos {
			if !h.set.Has(info.Name) {
				continue
			}
			var got shown
			if err := json.Unmarshal(info.Raw, &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Annotations) != 4 || got.Annotations["readOnlyHint"] == got.Annotations["destructiveHint"] && got.Annotations["readOnlyHint"] {
				t.Errorf("menu %s: %s has %v", menu, info.Name, got.Annotations)
			}
			isMenu := slices.Contains([]string{"search_tools", "get_tool_definitions", "call_tool_read", "call_tool", "execute_code"}, info.Name)
			if (got.Meta["anthropic/alwaysLoad"] == true) != (isMenu && menu != builtin.MenuFull) {
				t.Errorf("menu %s: %s has _meta %v", menu, info.Name, got.Meta)
			}
			if want, isRelay := map[string]bool{"call_tool": false, "execute_code": false, "call_tool_read": true}[info.Name]; isRelay && got.Annotations["readOnlyHint"] != want {
				t.Errorf("menu %s: %s has %v", menu, info.Name, got.Annotations)
			}
		}
	}
}

// TestBoundsThatAreNotListedHold checks that arguments are checked with the whole schema.
func TestBoundsThatAreNotListedHold(t *testing.T) {
	t.Parallel()
	m := open(t).menu(builtin.MenuCode)
	for name, args := range map[string]string{"get_tool_definitions": `{"names":[]}`, "execute_code": `{"code":"1","timeout_ms":0}`, "call_tool": `{"name":"job_list","args":{}}`} {
		if _, err := m.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: name}, Args: json.RawMessage(args)}); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s %s: %v", name, args, err)
		}
	}
}

func TestExposedAndPinnedToolsAreInEveryMenu(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.manyTools(t, "crowd", 5)
	h.catalog.Expose("crowd", catalog.Exposure{Names: []string{"tool_2"}})
	h.catalog.Pin([]string{"crowd.tool_4", "lua_help"})
	for _, name := range builtin.Menus {
		infos, names, _ := listed(t, h.menu(name))
		for _, want := range []string{"crowd__tool_2", "crowd__tool_4", "lua_help"} {
			if !slices.Contains(names, want) {
				t.Errorf("menu %s: %s is not in %v", name, want, names)
			}
		}
		if slices.Contains(names, "crowd__tool_3") != (name == builtin.MenuDirect) {
			t.Errorf("menu %s has a tool that is not exposed", name)
		}
		help := infos[slices.Index(names, "lua_help")]
		if listsWhole := name == builtin.MenuFull || name == builtin.MenuDirect; (help.Output == nil) == listsWhole {
			t.Errorf("menu %s: %s", name, help.Raw)
		}
	}
}

func TestToolsThatAreNotListedCanBeCalled(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.manyTools(t, "crowd", 5)
	m := h.menu(builtin.MenuCode)
	for name, args := range map[string]string{"crowd__tool_3": `{"path":"x"}`, "crowd.tool_3": `{"path":"x"}`, "mcp_list_upstreams": "{}"} {
		if _, err := m.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: name}, Args: json.RawMessage(args)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	view := h.mustCall(t, "call_tool", `{"name": "mcp_list_upstreams"}`, nil)
	if !strings.Contains(view.Text(), "crowd") {
		t.Errorf("call_tool of our own tool: %s", view.Text())
	}
}

func TestAClientCanAskForAnotherMenu(t *testing.T) {
	t.Parallel()
	h := open(t)
	m := h.menu(builtin.MenuCode)
	first, _ := m.Tools(t.Context())
	full, _ := m.Tools(tool.WithMenu(t.Context(), builtin.MenuFull))
	if len(first) != 5 || len(full) < 40 {
		t.Errorf("%d tools, %d in full", len(first), len(full))
	}
	if again, _ := m.Tools(t.Context()); &first[0] != &again[0] {
		t.Error("the list is another one though nothing changed")
	}
	m.Set(builtin.MenuStandard, 0, 0)
	if standard, _ := m.Tools(t.Context()); len(standard) <= len(first) || len(standard) >= len(full) {
		t.Errorf("standard has %d tools", len(standard))
	}
}

// TestPublishedScriptsAreListedWhileTheyAreFew checks that they are found in any case.
func TestPublishedScriptsAreListedWhileTheyAreFew(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, name := range []string{"tidy_notes", "count_words"} {
		hash := h.storeScript(t, fmt.Sprintf("function describe() return { name = %q, description = 'Works on my notes' } end function main() return 1 end", name), "")
		h.mustCall(t, "script_publish", `{"script_hash":"`+hash+`"}`, nil)
	}
	h.catalog.Refresh(t.Context())
	m := h.menu(builtin.MenuCode)
	for most, want := range map[int]int{0: 5, 1: 5, 2: 7, 10: 7} {
		m.Set(builtin.MenuCode, most, 0)
		if _, names, _ := listed(t, m); len(names) != want {
			t.Errorf("list_scripts = %d: %v", most, names)
		}
	}
	m.Set(builtin.MenuCode, 0, 0)
	h.catalog.Pin([]string{"tidy_notes"})
	if _, names, _ := listed(t, m); !slices.Contains(names, "tidy_notes") || slices.Contains(names, "count_words") {
		t.Errorf("with one pinned: %v", names)
	}
	var found searchtools.Found
	h.mustCall(t, "search_tools", `{"query":"my notes","limit":2}`, &found)
	if len(found.Tools) != 2 || found.Tools[0].Family != "published" {
		t.Errorf("found %+v", found.Tools)
	}
	if view := h.mustCall(t, "search_tools", `{"query":""}`, nil); !strings.Contains(view.Text(), "published: count_words, tidy_notes") {
		t.Errorf("the overview has no published scripts: %s", view.Text())
	}
}

// shop is a source with one tool that has a page.
type shop struct{ tool.Source }

func (shop) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Space: "shop", Name: "cart"}, Input: json.RawMessage(`{"type":"object"}`), App: tool.App{Page: "ui://cart.html"}}}, nil
}

func TestCosts(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.manyTools(t, "crowd", 5)
	h.catalog.Add(shop{})
	h.catalog.Refresh(t.Context())
	// What a client that shows pages is listed beside a menu is none of its costs.
	m := h.menu(builtin.MenuStandard)
	m.Set(builtin.MenuStandard, 0, builtin.DefaultApps)
	text, err := builtin.CostResources(h.catalog, m)[0].Read(tool.WithApps(t.Context()), "")
	var costs builtin.TokenCosts
	if err != nil || json.Unmarshal([]byte(text), &costs) != nil {
		t.Fatalf("%s, %v", text, err)
	}
	code, standard, full := costs.Menus[0], costs.Menus[1], costs.Menus[2]
	if costs.Menu != builtin.MenuStandard || code.Tools != 5 || costs.Apps.Tools != 1 || code.Tokens != code.Own+code.Instructions || standard.Tokens <= code.Tokens || full.Tokens <= standard.Tokens || costs.All <= full.Tokens {
		t.Errorf("%+v", costs)
	}
	if direct := costs.Menus[3]; direct.Instructions != 0 || direct.Tokens != direct.Others {
		t.Errorf("who is not shown our tools is told to use them: %+v", direct)
	}
	if u := costs.Upstreams[0]; u.Namespace != "crowd" || len(u.Tools) != 5 || u.Tokens < 5*u.Tools[4].Tokens || u.Tools[0].TypeScript == 0 {
		t.Errorf("%+v", u)
	}
}
