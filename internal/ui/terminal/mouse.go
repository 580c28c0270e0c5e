package terminal

import tea "charm.land/bubbletea/v2"

// wheelRows is how many rows one step of the wheel moves.
const wheelRows = 3

// click handles a click: tabs show their page, everything else is the page's.
func (m *model) click(at tea.Mouse) tea.Cmd {
	if at.Button != tea.MouseLeft || m.prompt.sign != "" || m.confirmation.question != "" {
		return nil
	}
	m.message = message{}
	b := m.bodyBox()
	switch {
	case m.hasTabs() && at.Y == 1:
		if n := m.tabAt(at.X); n >= 0 {
			return m.showNumber(n)
		}
	case b.contains(at.X, at.Y):
		return m.page().click(m, b, at.X, at.Y)
	}
	return nil
}

// wheel scrolls the page, or the pane under the pointer.
func (m *model) wheel(at tea.Mouse) {
	lines := map[tea.MouseButton]int{tea.MouseWheelUp: -wheelRows, tea.MouseWheelDown: wheelRows}[at.Button]
	if o, ok := m.page().(*overview); ok {
		if i, _ := o.paneAt(m.bodyBox(), at.X, at.Y); i >= 0 {
			o.focus = i
		}
	}
	m.page().scroll(m, m.bodyBox(), lines)
}
