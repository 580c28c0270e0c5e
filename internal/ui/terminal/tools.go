package terminal

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// toolEntry is a tool as search_tools returns it.
type toolEntry struct {
	Name        plain `json:"name"`
	Signature   plain `json:"signature"`
	Description plain `json:"description"`
	ReadOnly    bool  `json:"read_only"`
	Stale       bool  `json:"stale"`
}

// toolCalls is how often a tool was called in the last hour.
type toolCalls struct {
	Name          string
	Calls, Errors int
}

func byName(list []toolCalls) map[string]toolCalls {
	all := make(map[string]toolCalls, len(list))
	for _, t := range list {
		all[t.Name] = t
	}
	return all
}

// toolPage is the most tools that search_tools returns at once.
const toolPage = 100

// loadTools loads all tools: those of each server, if there are too many for one
// response.
func loadTools(ctx context.Context, s *server, _ time.Time) (store, error) {
	tools, total, err := s.searchTools(ctx, map[string]any{"query": "", "limit": toolPage})
	if err != nil {
		return nil, err
	}
	if total > len(tools) {
		tools, err = s.toolsOfAll(ctx)
	}
	return func(b *state) { b.tools, b.toolTotal = tools, total }, err
}

func (s *server) searchTools(ctx context.Context, args map[string]any) (found []toolEntry, total int, err error) {
	var response struct {
		Tools []toolEntry
		Total int
	}
	err = s.call(ctx, "search_tools", args, &response)
	return response.Tools, response.Total, err
}

// toolsOfAll loads up to toolPage tools of each server.
func (s *server) toolsOfAll(ctx context.Context) (all []toolEntry, err error) {
	var list struct{ Upstreams []upstream }
	if err := s.get(ctx, "/api/v1/upstreams", &list); err != nil {
		return nil, err
	}
	for i := range list.Upstreams {
		found, _, err := s.searchTools(ctx, map[string]any{"query": "", "namespace": list.Upstreams[i].Name, "limit": toolPage})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// toolsFound are tools that a search found.
type toolsFound struct {
	tools []toolEntry
	err   error
}

// searchMore asks the server for tools that match the filter, if not all are loaded.
func (m *model) searchMore(t *table) tea.Cmd {
	if _, ok := t.view.(toolsView); !ok || t.filter == "" || m.state.toolTotal <= len(m.state.tools) {
		return nil
	}
	args := map[string]any{"query": t.filter, "limit": toolPage}
	if t.of.server != "" {
		args["namespace"] = t.of.server
	}
	return func() tea.Msg {
		found, _, err := m.server.searchTools(m.ctx, args)
		return toolsFound{found, err}
	}
}

// addFound adds tools that are not in the list.
func (b *state) addFound(found []toolEntry) {
	for _, t := range found {
		if !slices.ContainsFunc(b.tools, func(known toolEntry) bool { return known.Name == t.Name }) {
			b.tools = append(slices.Clip(b.tools), t)
		}
	}
}

// toolsView lists tools, of one server or of all.
type toolsView struct{}

func (toolsView) name() string { return "tools" }

func (toolsView) columns() []column {
	return []column{
		{title: "Name", width: 30},
		{title: "Calls", width: 6, right: true, from: 70},
		{title: "Errors", width: 7, right: true, from: 70},
		{title: "Kind", width: 9, from: 100},
		{title: "arguments", width: 30, from: 130},
		{title: "Description"},
	}
}

func (toolsView) rows(b *state, of scope, _ time.Time) (rows []row) {
	for i := range b.tools {
		t := &b.tools[i]
		name := t.Name
		if of.server != "" {
			short, ok := strings.CutPrefix(string(name), string(of.server)+".")
			if !ok {
				continue
			}
			name = plain(short)
		}
		kind := cell{text: "changes"}
		if t.ReadOnly {
			kind = cell{text: "reads", style: faint}
		}
		if t.Stale {
			kind = cell{text: "offline", style: yellow}
		}
		calls := b.toolCalls[string(t.Name)]
		rows = append(rows, row{string(t.Name), []cell{
			{text: name, style: bold}, number(calls.Calls), problems(calls.Errors), kind, {text: t.Signature, style: faint}, {text: t.Description, style: faint},
		}})
	}
	return rows
}

// head describes the server above its tools.
func (toolsView) head(b *state, of scope, now time.Time) []styled {
	u := b.server(string(of.server))
	if u == nil {
		return nil
	}
	state := u.stateCell()
	lines := []styled{{state.text + "  " + u.Endpoint, state.style}}
	if note := u.note(now); !u.isConnected() && note.text != "" {
		lines = append(lines, styled{note.text, note.style})
	}
	if u.Hint != "" && !u.isConnected() {
		lines = append(lines, styled{u.Hint, normal})
	}
	return lines
}

// open shows the tool's description and schemas.
func (toolsView) open(m *model, of scope, row string) tea.Cmd {
	name := clean(row)
	if of.server != "" {
		name = plain(strings.TrimPrefix(string(name), string(of.server)+"."))
	}
	return m.push(&document{name: name, row: row, does: toolActions(), reload: setOf(toolList), load: func(ctx context.Context) (body, error) {
		return m.server.toolText(ctx, row)
	}})
}

// toolText writes the definition of a tool.
func (s *server) toolText(ctx context.Context, name string) (body, error) {
	var response struct {
		Tools []struct {
			Name        plain
			Title       plain
			Description string
			LuaPath     plain           `json:"lua_path"`
			Input       json.RawMessage `json:"input_schema"`
			Output      json.RawMessage `json:"output_schema"`
			Learned     json.RawMessage `json:"learned_output_schema"`
			Annotations json.RawMessage
		}
	}
	if err := s.call(ctx, "get_tool_definitions", map[string]any{"names": []string{name}}, &response); err != nil {
		return nil, err
	}
	if len(response.Tools) == 0 {
		return fixed([]styled{{"The server has no tool " + clean(name) + " any more.", yellow}}), nil
	}
	t := response.Tools[0]
	all := slices.Concat(field("tool", t.Name), field("title", t.Title), field("in scripts", t.LuaPath), []styled{{}}, unstyled(lines(t.Description)))
	for _, part := range []struct {
		title plain
		raw   json.RawMessage
	}{{"Arguments", t.Input}, {"Result", t.Output}, {"Result, learned from calls", t.Learned}, {"Annotations", t.Annotations}} {
		if len(part.raw) > 0 && string(part.raw) != "null" {
			all = slices.Concat(all, heading(part.title), pretty(part.raw))
		}
	}
	return fixed(all), nil
}

// actions are those of a tool, and those of the server whose tools are shown.
func (toolsView) actions(of scope) []action {
	all := toolActions()
	if of.server == "" {
		return all
	}
	for _, a := range (serversView{}).actions(of) {
		switch a.key {
		case "i", "r", "l":
			do := a.do
			all = append(all, action{a.key, a.does, func(m *model, _ string) tea.Cmd { return do(m, string(of.server)) }, true})
		}
	}
	return all
}

// tracesOfTool is the action that shows the traces of a tool.
func tracesOfTool() []action {
	return []action{{key: "t", does: "traces", do: func(m *model, row string) tea.Cmd { return m.showTraces(scope{tool: clean(row)}) }}}
}

// toolsOfServer are the actions of a page about one server.
func toolsOfServer(of scope) []action {
	own := serversView{}.actions(of)[1:] // without the one that opens that page
	return append([]action{{key: "enter", does: "tools", do: func(m *model, _ string) tea.Cmd { return m.push(&table{view: toolsView{}, of: of}) }}}, own...)
}

func (toolsView) empty(of scope) plain {
	if of.server != "" {
		return "none known; r reconnects the server, l shows what it writes to standard error"
	}
	return "none; connect a server: `luanette upstream add NAME URL`"
}

func (toolsView) needs() lists { return setOf(toolList) }
