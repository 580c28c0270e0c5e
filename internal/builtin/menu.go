package builtin

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/tokencount"
	"github.com/luanette/luanette/internal/tools/typedecl"
)

// The menus: which of our own tools clients are shown. Exposed and pinned tools are
// listed in each of them.
const (
	MenuCode     = "code"     // five tools find, describe and call all others
	MenuStandard = "standard" // also what an interactive agent uses most
	MenuFull     = "full"     // all, with output schemas
	MenuDirect   = "direct"   // none: the tools of servers, and scripts, for clients that search by themselves
)

// Menus lists all menus, those with our own tools first, by their size.
var Menus = []string{MenuCode, MenuStandard, MenuFull, MenuDirect}

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

var codeMenu = []string{"search_tools", "get_tool_definitions", tool.CallToolRead, tool.CallTool, "execute_code"}

// SetTools are our own tools that are in every set of tools. They reach what is in it.
var SetTools = append(slices.Clone(codeMenu), "result_read", "approval_status")

// reaching are the tools of the menus that reach all others.
var reaching = codeMenu[3:]

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
	switch menu {
	case MenuFull:
		return slices.Clone(chatTools)
	case MenuDirect:
		menu = MenuCode
	}
	shown := slices.DeleteFunc(slices.Clone(menuTools[menu]), func(name string) bool { return !InChat(name) })
	return append(shown, "lua_eval")
}

// DefaultApps is the number of tools with a page that are listed to clients that show pages.
const DefaultApps = 40

// MenuOptions decide which tools are listed.
type MenuOptions struct {
	Menu    string // of clients that do not ask for another; "" is MenuCode
	Scripts int    // how many published scripts the smaller menus list at most
	Apps    int    // how many tools with a page are listed at most, to clients that show pages
	Own     func(name string) bool
	// InSet is the menu of the set of tools that ctx is in, or ""; may be nil.
	InSet func(ctx context.Context) string
}

// Menu is the list of tools that a client sees. Tools that are not listed can still be
// called.
type Menu struct {
	source catalog.Exposed

	mu      sync.Mutex
	options MenuOptions
	lists   map[string]menuList
}

// menuList is one menu, and the source's list that it was made from.
type menuList struct{ from, shown []tool.Info }

// NewMenu makes the menus of a source.
func NewMenu(source catalog.Exposed, o MenuOptions) *Menu {
	m := &Menu{source: source, options: MenuOptions{Own: o.Own, InSet: o.InSet}}
	m.Set(o.Menu, o.Scripts, o.Apps)
	return m
}

// Set changes which tools are listed.
func (m *Menu) Set(menu string, scripts, apps int) {
	menu = cmp.Or(menu, MenuCode)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.options.Menu, m.options.Scripts, m.options.Apps = menu, scripts, apps
	m.lists = map[string]menuList{} // made again on the next use
}

// InputSchema returns the schema of a tool's arguments, whether or not the tool is shown.
func (m *Menu) InputSchema(ctx context.Context, name string) (json.RawMessage, bool) {
	return m.source.InputSchema(ctx, name)
}

// Tools returns the menu that the client asked for, or the default one. It is the same
// slice until the source's list changes, unless the client shows the pages of tools.
func (m *Menu) Tools(ctx context.Context) ([]tool.Info, error) {
	list, err := m.chosen(ctx)
	if err != nil || !tool.ShowsApps(ctx) {
		return list, err
	}
	return m.withApps(ctx, list)
}

// withApps adds to a list the tools with a page, which a client shows only for tools that it
// calls itself, and those that such pages call.
func (m *Menu) withApps(ctx context.Context, list []tool.Info) ([]tool.Info, error) {
	all, err := m.source.All(ctx)
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for i := range list {
		listed[list[i].Name] = true
	}
	m.mu.Lock()
	most := len(list) + m.options.Apps
	m.mu.Unlock()
	list = slices.Clone(list)
	for i := range all {
		if isApp := all[i].App.Page != "" || all[i].App.Hidden; isApp && !listed[all[i].Name] && len(list) < most {
			if m.options.Own(all[i].Name) {
				all[i] = withoutExtras(all[i])
			}
			list = append(list, all[i])
		}
	}
	slices.SortFunc(list, func(a, b tool.Info) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

func (m *Menu) chosen(ctx context.Context) ([]tool.Info, error) {
	name := m.NameFor(ctx)
	if name == MenuDirect {
		return m.direct(ctx)
	}
	all, err := m.source.Tools(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list, known := m.lists[name]
	if !known || len(all) != len(list.from) || len(all) > 0 && &all[0] != &list.from[0] {
		list = menuList{all, m.choose(ctx, name, all)}
		m.lists[name] = list
	}
	return list.shown, nil
}

// NameFor returns which menu the client of ctx is shown: the one that it asked for, that of
// its set, or the default one.
func (m *Menu) NameFor(ctx context.Context) string {
	if name := tool.MenuOf(ctx); slices.Contains(Menus, name) {
		return name
	}
	if m.options.InSet != nil {
		if name := m.options.InSet(ctx); name != "" {
			return name
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.options.Menu
}

// direct returns all tools but our own, and those of ours that are pinned or that a set names.
func (m *Menu) direct(ctx context.Context) ([]tool.Info, error) {
	all, err := m.source.All(ctx)
	if err != nil {
		return nil, err
	}
	named := principal.Of(ctx).Set != ""
	return slices.DeleteFunc(all, func(info tool.Info) bool {
		return m.options.Own(info.Name) && !m.source.Pinned(ctx, info.Name) && (!named || slices.Contains(SetTools, info.Name))
	}), nil
}

// choose returns the tools of a menu. A client whose key allows neither call_tool nor
// execute_code is shown all it may use. The caller holds mu.
func (m *Menu) choose(ctx context.Context, menu string, all []tool.Info) []tool.Info {
	if menu == MenuFull {
		return all
	}
	canReach := slices.ContainsFunc(all, func(info tool.Info) bool { return slices.Contains(reaching, info.Name) })
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
// title, the output schema, and the bounds of arguments, which are checked all the same. The
// tools of the menu code are marked for clients that search tools by themselves: they would
// hide those that search, too.
func withoutExtras(info tool.Info) tool.Info {
	info.Title, info.Output = "", nil
	for _, key := range []string{"title", "outputSchema"} {
		info.Raw = rawjson.Delete(info.Raw, key)
	}
	isMenu := slices.Contains(codeMenu, info.Name)
	if isMenu {
		info.Raw = rawjson.Set(info.Raw, "_meta", json.RawMessage(`{"anthropic/alwaysLoad":true}`))
	}
	info.Input = shorter(info.Input, isMenu)
	info.Raw = rawjson.Set(info.Raw, "inputSchema", info.Input)
	return info
}

// bounds are what the arguments of a schema need not be listed with.
var bounds = []string{"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"}

// plain are the arguments of the menu code whose names say enough.
var plain = []string{"arguments", "code", "limit", "names"}

// shorter removes from a schema the bounds of arguments, and that there are no others.
func shorter(schema json.RawMessage, isMenu bool) json.RawMessage {
	schema = rawjson.Delete(schema, "additionalProperties")
	properties, _ := rawjson.Get(schema, "properties")
	rawjson.Each(properties, func(name string, property json.RawMessage) bool {
		for _, bound := range bounds {
			property = rawjson.Delete(property, bound)
		}
		if isMenu && slices.Contains(plain, name) {
			property = rawjson.Delete(property, "description")
		}
		properties = rawjson.Set(properties, name, property)
		return true
	})
	return rawjson.Set(schema, "properties", properties)
}

// Call runs a tool.
func (m *Menu) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return m.source.Call(ctx, call)
}

var _ tool.Source = (*Menu)(nil)

// TokenCosts is the estimated number of tokens that tools take in a model's context.
type TokenCosts struct {
	Menu      string          `json:"menu"`  // what clients see unless they ask for another
	Menus     []MenuCosts     `json:"menus"` // the smallest first
	Apps      AppCosts        `json:"apps"`  // on top, for clients that show the pages of tools
	All       int             `json:"all"`   // if every tool of every upstream were listed
	Upstreams []UpstreamCosts `json:"upstreams"`
}

// AppCosts is the cost of tools with a page.
type AppCosts struct {
	Tools  int `json:"tools"` // number of tools
	Tokens int `json:"tokens"`
	Limit  int `json:"limit"` // how many are listed at most
}

// MenuCosts is the cost of a menu.
type MenuCosts struct {
	Name         string `json:"name"`
	Tools        int    `json:"tools"`        // number of tools
	Own          int    `json:"own"`          // tokens of our own tools
	Others       int    `json:"others"`       // tokens of exposed and pinned tools and of scripts
	Instructions int    `json:"instructions"` // tokens
	Tokens       int    `json:"tokens"`       // of all that
}

// UpstreamCosts is the cost of one server's tools.
type UpstreamCosts struct {
	Namespace string      `json:"namespace"`
	Tokens    int         `json:"tokens"`
	Tools     []ToolCosts `json:"tools"` // most expensive first
}

// ToolCosts is the cost of one tool: listed directly, and as a declaration from
// get_tool_definitions.
type ToolCosts struct {
	Name       string `json:"name"`
	Tokens     int    `json:"tokens"`
	TypeScript int    `json:"typescript"`
}

// CostResources makes the resource with the token costs of tools.
func CostResources(c *catalog.Catalog, m *Menu) []Resource {
	return []Resource{{
		URI: "lua://tokens", Name: "tokens", Title: "Token costs of tools", MIMEType: "application/json",
		Description: "Estimated number of tokens that each menu, server and tool takes in a model's context",
		Read: func(ctx context.Context, _ string) (string, error) {
			return AsJSON(m.costs(ctx, c))
		},
	}}
}

func (m *Menu) costs(ctx context.Context, c *catalog.Catalog) (TokenCosts, error) {
	costs := TokenCosts{Upstreams: []UpstreamCosts{}}
	m.mu.Lock()
	costs.Menu = m.options.Menu
	m.mu.Unlock()
	for _, name := range Menus {
		one, err := m.menuCosts(tool.WithoutApps(tool.WithMenu(ctx, name)), name)
		if err != nil {
			return costs, err
		}
		costs.Menus = append(costs.Menus, one)
	}
	var err error
	if costs.Apps, err = m.appCosts(ctx); err != nil {
		return costs, err
	}
	own, _ := c.In(ctx, "")
	costs.All = tokencount.Estimate(instructions) + listed(own)
	for _, namespace := range c.Namespaces(ctx) {
		u := upstreamCosts(ctx, c, namespace)
		costs.All += u.Tokens
		costs.Upstreams = append(costs.Upstreams, u)
	}
	slices.SortStableFunc(costs.Upstreams, func(a, b UpstreamCosts) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return costs, nil
}

// appCosts returns what the menu code lists besides to clients that show pages.
func (m *Menu) appCosts(ctx context.Context) (costs AppCosts, err error) {
	m.mu.Lock()
	costs.Limit = m.options.Apps
	m.mu.Unlock()
	list, err := m.withApps(tool.WithApps(ctx), nil)
	costs.Tools, costs.Tokens = len(list), listed(list)
	return costs, err
}

// menuCosts returns the costs of the menu that ctx asks for.
func (m *Menu) menuCosts(ctx context.Context, name string) (MenuCosts, error) {
	shown, err := m.Tools(ctx)
	costs := MenuCosts{Name: name, Tools: len(shown), Instructions: tokencount.Estimate(Instructions(name))}
	for i := range shown {
		if n := listed(shown[i : i+1]); m.options.Own(shown[i].Name) {
			costs.Own += n
		} else {
			costs.Others += n
		}
	}
	costs.Tokens = costs.Own + costs.Others + costs.Instructions
	return costs, err
}

func upstreamCosts(ctx context.Context, c *catalog.Catalog, namespace string) UpstreamCosts {
	tools, _ := c.In(ctx, namespace)
	u := UpstreamCosts{Namespace: namespace, Tools: make([]ToolCosts, len(tools))}
	for i := range tools {
		u.Tools[i] = costsOf(&tools[i], tools[i].Name)
		u.Tokens += u.Tools[i].Tokens
	}
	slices.SortStableFunc(u.Tools, func(a, b ToolCosts) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return u
}

// costsOf is the cost of a tool under a name.
func costsOf(info *tool.Info, name string) ToolCosts {
	return ToolCosts{name, listed([]tool.Info{*info}), tokencount.Estimate(typedecl.TypeScript([]typedecl.Tool{typedecl.Of(info)}))}
}

// ListedTokens estimates how many tokens tools take when a client lists them.
func ListedTokens(tools []tool.Info) int { return listed(tools) }

// listed returns the cost of tools when a client lists them.
func listed(tools []tool.Info) int {
	n := 0
	for i := range tools {
		if tools[i].Raw != nil {
			n += tokencount.Estimate(string(tools[i].Raw))
			continue
		}
		raw, err := json.Marshal(map[string]any{
			"name": tools[i].Name, "description": tools[i].Description, "inputSchema": tools[i].Input,
		})
		if err == nil {
			n += tokencount.Estimate(string(raw))
		}
	}
	return n
}

// Types of events: changed settings, whose key is the setting, and changed lists of tools.
const (
	configUpdate   = "config.update"
	toolsRefreshed = "upstream.tools_refreshed"
	listsRefreshed = "upstream.lists_refreshed"
)

// Changes notifies MCP clients when what they listed or read has changed: the exposed
// tools, the resources about upstreams and jobs, and jobs as tasks. Nobody is notified of
// what they cannot see.
func Changes(exposed catalog.Exposed, bus *event.Bus) func(notify hub.Notify) (stop func()) {
	return func(notify hub.Notify) func() {
		unwatch := exposed.Watch(func() { notify(wire.NoteToolsChanged, nil, nil) })
		ctx, cancel := context.WithCancel(context.Background())
		sub := bus.Subscribe(event.Options{Types: []string{
			"upstream.connecting", "upstream.installing", "upstream.connected", "upstream.reconnecting", "upstream.failed", "upstream.needs_auth", "upstream.asleep",
			toolsRefreshed, listsRefreshed, "upstream.removed", "job.*", "script.*", configUpdate,
		}, Mode: event.Latest, IncludeRemote: true})
		var work sync.WaitGroup
		work.Go(func() {
			for e := range sub.All(ctx) {
				notifyOf(e, notify)
			}
		})
		return func() {
			unwatch()
			cancel()
			work.Wait()
			sub.Close()
		}
	}
}

// notifyOf notifies clients of what an event changes for them.
func notifyOf(e event.Event, notify hub.Notify) {
	if job, ok := e.Data.(event.Keyed); ok && strings.HasPrefix(e.Type, "job.") {
		notify(wire.NoteTask, rawjson.SetText(nil, "taskId", job.EventKey()), e.VisibleTo)
	}
	if changesListedTools(e) {
		notify(wire.NoteToolsChanged, nil, nil)
	}
	if isScript(e) { // that may be a skill
		notify(wire.NoteResourcesChanged, nil, nil)
		return
	}
	if e.Type == listsRefreshed || e.Type == "upstream.removed" {
		notify(wire.NotePromptsChanged, nil, nil)
		notify(wire.NoteResourcesChanged, nil, nil)
	}
	for _, uri := range resourcesAbout(e) {
		notify(wire.NoteResourceUpdated, rawjson.SetText(nil, "uri", uri), e.VisibleTo)
	}
}

// isScript tells whether an event is about a published script.
func isScript(e event.Event) bool { return strings.HasPrefix(e.Type, "script.") }

// changesListedTools reports whether somebody may be shown other tools after an event, even if
// all tools together stay the same.
func changesListedTools(e event.Event) bool {
	if e.Type == toolsRefreshed {
		return true
	}
	setting, ok := e.Data.(event.Keyed)
	return ok && e.Type == configUpdate && (setting.EventKey() == "mcp.menu" || setting.EventKey() == "mcp.list_scripts")
}

// resourcesAbout lists the resources that an event about an upstream or a job changes.
func resourcesAbout(e event.Event) []string {
	about, ok := e.Data.(event.Keyed)
	if !ok || e.Type == configUpdate || e.Node != "" && !strings.HasPrefix(e.Type, "job.") { // connections are each node's own
		return nil
	}
	name := about.EventKey()
	if strings.HasPrefix(e.Type, "job.") {
		return []string{"lua://jobs", "lua://jobs/stats", "lua://jobs/" + name}
	}
	uris := []string{"lua://namespaces", "lua://namespaces/" + name}
	shown, org := principal.SplitNamespace(name)
	if org != "" {
		uris = append(uris, "lua://namespaces/"+shown) // for its members
	}
	if e.Type != toolsRefreshed && e.Type != "upstream.removed" {
		return uris
	}
	if org != "" {
		uris = append(uris, "lua://tools/"+shown)
	}
	return append(uris, "lua://tools", "lua://tools/"+name)
}

//go:embed instructions.md
var instructions string

// Instructions teach a model to find and call the tools that are not listed, with every menu that
// lists ours for that. They are sent when a client initializes.
func Instructions(menu string) string {
	if menu == MenuDirect {
		return ""
	}
	return instructions
}
