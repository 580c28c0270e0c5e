package terminal

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	tea "charm.land/bubbletea/v2"
)

// key handles a key press.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	m.message = message{}
	switch m.mode {
	case filtering:
		m.filterKey(name, k.Text)
		return nil
	case confirming:
		return m.answer(name)
	case showingDetails:
		m.detailsKey(name)
		return nil
	case showingHelp:
		m.mode = browsing
		return nil
	default:
		return m.browseKey(name)
	}
}

// browseKey handles a key while the panes are shown.
func (m *model) browseKey(name string) tea.Cmd {
	switch name {
	case "q":
		return tea.Quit
	case "?":
		m.mode = showingHelp
	case "tab", "right", "l":
		m.focus = (m.focus + 1) % paneCount
	case "shift+tab", "left", "h":
		m.focus = (m.focus + paneCount - 1) % paneCount
	case "1", "2", "3", "4":
		m.focus = paneID(name[0] - '1')
	case "/":
		m.mode = filtering
	case "esc":
		m.panes[m.focus].filter = ""
		m.panes[m.focus].chosen = ""
	case "space", " ":
		m.togglePause()
	case "enter":
		return m.openDetails()
	case "n":
		m.showDetails(m.nodeDetails())
	case "r":
		return m.retry()
	case "x", "delete":
		m.remove()
	case "c":
		m.cancel()
	default:
		m.move(name)
	}
	return nil
}

// move selects another row of the pane.
func (m *model) move(name string) {
	rows := m.rows(m.focus)
	if len(rows) == 0 {
		return
	}
	page := max(m.boxOf(m.focus).height-2, 1)
	at := m.panes[m.focus].at(rows)
	switch name {
	case "down", "j":
		at++
	case "up", "k":
		at--
	case "pgdown", "ctrl+f":
		at += page
	case "pgup", "ctrl+b":
		at -= page
	case "home", "g":
		at = 0
	case "end", "G":
		at = len(rows) - 1
	default:
		return
	}
	at = min(max(at, 0), len(rows)-1)
	m.panes[m.focus].chosen = rows[at].key
	if at == 0 {
		m.panes[m.focus].chosen = "" // keep the newest row selected
	}
}

// togglePause stops or continues updating the screen.
func (m *model) togglePause() {
	if m.paused != nil {
		m.paused = nil
		return
	}
	still := m.state
	still.Upstreams, still.Jobs = slices.Clone(still.Upstreams), slices.Clone(still.Jobs)
	still.Calls, still.Log = slices.Clone(still.Calls), slices.Clone(still.Log)
	m.paused = &still
}

// filterKey edits the filter of a pane.
func (m *model) filterKey(name, text string) {
	filter := &m.panes[m.focus].filter
	switch name {
	case "enter":
		m.mode = browsing
	case "esc":
		*filter = ""
		m.mode = browsing
	case "backspace":
		if letters := []rune(*filter); len(letters) > 0 {
			*filter = clean(string(letters[:len(letters)-1]))
		}
	case "ctrl+u":
		*filter = ""
	default:
		*filter += clean(text)
	}
}

func (m *model) paste(text string) {
	if m.mode == filtering {
		m.panes[m.focus].filter += clean(text)
	}
}

// retry reconnects the selected upstream, or restores it if it was removed.
func (m *model) retry() tea.Cmd {
	u, ok := m.chosenUpstream()
	if !ok {
		m.message = message{"select an upstream first: press 1", true}
		return nil
	}
	if u.isRemoved() {
		name := u.Name
		return m.run(func(ctx context.Context) error {
			return m.server.request(ctx, http.MethodPost, "api/v1/upstreams/"+url.PathEscape(string(name))+"/restore", nil)
		}, name+" restored")
	}
	m.message = message{"reconnecting " + u.Name + " …", false}
	return m.callTool("tools_refresh", map[string]any{"namespace": u.Name}, u.Name+" connected, tools refreshed")
}

func (m *model) remove() {
	u, ok := m.chosenUpstream()
	if !ok {
		m.message = message{"select an upstream first: press 1", true}
		return
	}
	m.mode = confirming
	m.confirmation = confirmation{"Remove " + u.Name + "?", m.callTool("mcp_disconnect", map[string]any{"namespace": u.Name}, u.Name+" removed")}
}

func (m *model) cancel() {
	j, ok := m.chosenJob()
	switch {
	case !ok:
		m.message = message{"select a job first: press 2", true}
	case !j.active():
		m.message = message{j.title() + " is already " + j.Status, true}
	default:
		m.mode = confirming
		m.confirmation = confirmation{"Cancel " + j.title() + "?", m.callTool("job_cancel", map[string]any{"job_id": j.ID}, j.title()+" cancelled")}
	}
}

// answer runs the action if the user confirms it.
func (m *model) answer(name string) tea.Cmd {
	m.mode = browsing
	if name == "y" || name == "Y" {
		return m.confirmation.yes
	}
	m.message = message{"not done", false}
	return nil
}

// callTool calls a tool and shows success or its error.
func (m *model) callTool(name string, args any, well plain) tea.Cmd {
	return m.run(func(ctx context.Context) error { return m.server.call(ctx, name, args, nil) }, well)
}

// run does an action and shows success or its error.
func (m *model) run(do func(context.Context) error, well plain) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(m.ctx, actionTimeout)
		defer stop()
		return actionDone{well, do(ctx)}
	}
}
