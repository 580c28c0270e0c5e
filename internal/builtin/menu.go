package builtin

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// The menus: which of our own tools clients are shown. Exposed and pinned tools are
// listed in each of them.
const (
	MenuCode     = "code"     // four tools find, describe and call all others
	MenuStandard = "standard" // also what an interactive agent uses most
	MenuFull     = "full"     // all, with output schemas
)

// Menus lists all menus, the smallest first.
var Menus = []string{MenuCode, MenuStandard, MenuFull}

// DefaultScripts is the number of published scripts up to which the smaller menus list
// them.
const DefaultScripts = 10

// menuTools are our own tools in the smaller menus.
var menuTools = map[string][]string{
	MenuCode: codeMenu,
	MenuStandard: append(slices.Clone(codeMenu),
		"lua_execute", "job_poll", "job_status", "job_list", "job_cancel",
		"session_create", "session_list", "script_store", "script_search", "mcp_list_upstreams"),
}

var codeMenu = []string{"search_tools", "get_tool_definitions", "call_tool", "execute_code"}

// chatTools are our own tools that the model of a chat may use: those that find and call
// others, run code, and start and follow jobs. Tools for administration are not among
// them, nor those that show what belongs to other people of the same key.
var chatTools = append(slices.Clone(codeMenu), "lua_eval", "result_read",
	"lua_execute", "lua_describe", "lua_help", "job_poll", "job_status", "job_list", "job_cancel", "job_logs",
	"script_store", "script_search", "script_get")

// InChat reports whether the model of a chat may use one of our own tools.
func InChat(name string) bool { return slices.Contains(chatTools, name) }

// ChatMenu returns our own tools that the model of a chat is shown: those of the menu that
// it may use, and lua_eval, which keeps the variables of the conversation.
func ChatMenu(menu string) []string {
	if menu == MenuFull {
		return slices.Clone(chatTools)
	}
	shown := slices.DeleteFunc(slices.Clone(menuTools[menu]), func(name string) bool { return !InChat(name) })
	return append(shown, "lua_eval")
}

// MenuSource is the source of the tools to list.
type MenuSource interface {
	tool.Source
	// Pinned reports whether a tool is listed in every menu.
	Pinned(ctx context.Context, name string) bool
	// Namespace returns the namespace of a listed tool; "" for our own and for published
	// scripts.
	Namespace(ctx context.Context, name string) string
	// InputSchema returns the schema of a tool's arguments.
	InputSchema(ctx context.Context, name string) (json.RawMessage, bool)
}

// MenuOptions decide which tools are listed.
type MenuOptions struct {
	Menu    string // of clients that do not ask for another; "" is MenuCode
	Scripts int    // how many published scripts the smaller menus list at most
	Own     func(name string) bool
}

// Menu is the list of tools that a client sees. Tools that are not listed can still be
// called.
type Menu struct {
	source MenuSource

	mu      sync.Mutex
	options MenuOptions
	lists   map[string]menuList
}

// menuList is one menu, and the source's list that it was made from.
type menuList struct{ from, shown []tool.Info }

// NewMenu makes the menus of a source.
func NewMenu(source MenuSource, o MenuOptions) *Menu {
	m := &Menu{source: source, options: MenuOptions{Own: o.Own}}
	m.Set(o.Menu, o.Scripts)
	return m
}

// Set changes which tools are listed.
func (m *Menu) Set(menu string, scripts int) {
	if menu == "" {
		menu = MenuCode
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.options.Menu, m.options.Scripts = menu, scripts
	m.lists = map[string]menuList{} // made again on the next use
}

// InputSchema returns the schema of a tool's arguments, whether or not the tool is shown.
func (m *Menu) InputSchema(ctx context.Context, name string) (json.RawMessage, bool) {
	return m.source.InputSchema(ctx, name)
}

// Tools returns the menu that the client asked for, or the default one. It is the same
// slice until the source's list changes.
func (m *Menu) Tools(ctx context.Context) ([]tool.Info, error) {
	all, err := m.source.Tools(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	name := tool.MenuOf(ctx)
	if !slices.Contains(Menus, name) {
		name = m.options.Menu
	}
	list, known := m.lists[name]
	if !known || len(all) != len(list.from) || len(all) > 0 && &all[0] != &list.from[0] {
		list = menuList{all, m.choose(ctx, name, all)}
		m.lists[name] = list
	}
	return list.shown, nil
}

// choose returns the tools of a menu. A client whose key allows neither call_tool nor
// execute_code is shown all it may use. The caller holds mu.
func (m *Menu) choose(ctx context.Context, menu string, all []tool.Info) []tool.Info {
	if menu == MenuFull {
		return all
	}
	canReach := slices.ContainsFunc(all, func(info tool.Info) bool { return slices.Contains(codeMenu[2:], info.Name) })
	few := m.scripts(ctx, all) <= m.options.Scripts
	shown := []tool.Info{}
	for i := range all {
		name := all[i].Name
		switch pinned := m.source.Pinned(ctx, name); {
		case m.options.Own(name):
			if pinned || !canReach || slices.Contains(menuTools[menu], name) {
				shown = append(shown, withoutExtras(all[i]))
			}
		case pinned || few || !m.isScript(ctx, name):
			shown = append(shown, all[i])
		}
	}
	return shown
}

// scripts counts the published scripts.
func (m *Menu) scripts(ctx context.Context, all []tool.Info) int {
	n := 0
	for i := range all {
		if m.isScript(ctx, all[i].Name) {
			n++
		}
	}
	return n
}

func (m *Menu) isScript(ctx context.Context, name string) bool {
	return m.source.Namespace(ctx, name) == "" && !m.options.Own(name)
}

// withoutExtras removes what costs tokens and helps a model little from a definition: the
// title, the output schema, and all annotations but the one by which clients decide
// whether to ask before a call.
func withoutExtras(info tool.Info) tool.Info {
	info.Title, info.Output = "", nil
	for _, key := range []string{"title", "outputSchema", "annotations"} {
		info.Raw = rawjson.Delete(info.Raw, key)
	}
	if info.Hints.ReadOnly {
		info.Raw = rawjson.Set(info.Raw, "annotations", json.RawMessage(`{"readOnlyHint":true}`))
	}
	return info
}

// Call runs a tool.
func (m *Menu) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return m.source.Call(ctx, call)
}

var _ tool.Source = (*Menu)(nil)
