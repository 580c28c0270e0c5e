package terminal

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// box is an area of the screen.
type box struct{ x, y, width, height int }

func (b box) contains(x, y int) bool {
	return x >= b.x && x < b.x+b.width && y >= b.y && y < b.y+b.height
}

// page is what fills the screen between the tabs and the footer: a table, a document or
// the overview. Pages that were opened one from another form a stack.
type page interface {
	title() plain
	draw(m *model, b box) []string // as many lines as the box is high
	press(m *model, key string) tea.Cmd
	click(m *model, b box, x, y int) tea.Cmd
	scroll(m *model, b box, lines int)
	filterText() *plain
	actions() []action
	needs() lists
}

// action is a key with an effect on the selected row.
type action struct {
	key, does string
	do        func(m *model, row string) tea.Cmd
	rowless   bool // it needs no row
}

// run runs the action with a key.
func run(m *model, actions []action, key, row string) (tea.Cmd, bool) {
	for _, a := range actions {
		if a.key == key {
			return a.do(m, row), true
		}
	}
	return nil, false
}

// page is the page on top.
func (m *model) page() page { return m.pages[len(m.pages)-1] }

// push opens a page from the one on top.
func (m *model) push(p page) tea.Cmd {
	m.pages = append(m.pages, p)
	m.loading.stale.add(p.needs())
	commands := []tea.Cmd{m.loadStale()}
	if d, ok := p.(*document); ok && d.load != nil {
		commands = append(commands, m.loadDocument(d))
	}
	return tea.Batch(commands...)
}

// pop goes back to the page below. It reports whether there is one.
func (m *model) pop() bool {
	if len(m.pages) < 2 {
		return false
	}
	m.pages = m.pages[:len(m.pages)-1]
	return true
}

// show replaces all pages.
func (m *model) show(p page) tea.Cmd {
	m.pages = nil
	return m.push(p)
}

// crumbs are the titles of the pages, from the first to the one on top.
func (m *model) crumbs() plain {
	titles := make([]string, len(m.pages))
	for i, p := range m.pages {
		titles[i] = string(p.title())
	}
	return plain(strings.Join(titles, " › "))
}

// bodyBox is the area of the page.
func (m *model) bodyBox() box {
	top := 1
	if m.hasTabs() {
		top = 2
	}
	return box{0, top, m.width, max(m.height-top-1, 0)}
}

// titleRule draws the title of a page or a pane as a line.
func titleRule(title string, width int, focused bool) string {
	style := styles[faint]
	if focused {
		style = titleStyle
	}
	text := cut("─ "+title+" ", width)
	return style.Render(text + strings.Repeat("─", max(width-textWidth(text), 0)))
}

// matches reports whether a text contains a filter, or does not for a filter that begins
// with an exclamation mark.
func matches(filter, text string) bool {
	filter, text = strings.ToLower(filter), strings.ToLower(text)
	if without, inverted := strings.CutPrefix(filter, "!"); inverted {
		return without == "" || !strings.Contains(text, without)
	}
	return strings.Contains(text, filter)
}
