package terminal

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
)

// actionTimeout is how long an action may take.
const actionTimeout = 30 * time.Second

// views are all tables, in the order of their keys; 1 is the overview.
func views() []view {
	return []view{serversView{}, toolsView{}, approvalsView{}, jobsView{}, callsView{}, tracesView{}, logView{}, nodesView{}}
}

// key handles a key press.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	m.message = message{}
	switch {
	case m.confirmation.question != "":
		return m.answer(name)
	case m.prompt.sign != "":
		return m.promptKey(name, k.Text)
	}
	return m.browseKey(name)
}

// browseKey handles a key that means the same on every page; the page handles the
// others.
func (m *model) browseKey(name string) tea.Cmd {
	switch name {
	case "q":
		if !m.pop() {
			return tea.Quit
		}
	case "?":
		return m.push(helpPage())
	case ":":
		m.prompt = prompt{sign: ":"}
	case "/":
		m.prompt = prompt{sign: "/", text: *m.page().filterText()}
	case "esc":
		m.back()
	case "backspace":
		m.pop()
	case "space", " ":
		m.togglePause()
	case "s":
		return m.openShell()
	case "1", "2", "3", "4", "5", "6", "7", "8", "9":
		return m.showNumber(int(name[0] - '1'))
	default:
		return m.page().press(m, name)
	}
	return nil
}

// showNumber shows the overview for 0, or a view.
func (m *model) showNumber(n int) tea.Cmd {
	if n == 0 {
		return m.show(newOverview())
	}
	return m.show(&table{view: views()[n-1]})
}

// back clears the filter, or goes to the page below.
func (m *model) back() {
	if filter := m.page().filterText(); *filter != "" {
		*filter = ""
		return
	}
	m.pop()
}

// togglePause stops or continues updating the screen.
func (m *model) togglePause() {
	if m.paused != nil {
		m.paused = nil
		return
	}
	m.paused = m.state.still()
}

// callTool calls a tool and shows success or its error.
func (m *model) callTool(name string, args any, done plain) tea.Cmd {
	return m.act(func(ctx context.Context) error { return m.server.call(ctx, name, args, nil) }, done)
}

// act does something on the server and shows success or its error.
func (m *model) act(do func(context.Context) error, done plain) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(m.ctx, actionTimeout)
		defer stop()
		return actionDone{done, do(ctx)}
	}
}
