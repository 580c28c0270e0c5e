package terminal

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// overviewViews are the views of the overview.
func overviewViews() []view { return []view{serversView{}, jobsView{}, callsView{}, logView{}} }

// overview is the first page: four tables in panes.
type overview struct {
	panes []*table
	focus int
}

func newOverview() *overview {
	o := &overview{}
	for _, v := range overviewViews() {
		o.panes = append(o.panes, &table{view: v})
	}
	return o
}

func (o *overview) pane() *table       { return o.panes[o.focus] }
func (o *overview) title() plain       { return "Overview" }
func (o *overview) filterText() *plain { return &o.pane().filter }
func (o *overview) actions() []action  { return o.pane().actions() }
func (o *overview) needs() lists       { return lists{} }

// Minimum sizes of the layouts.
const (
	gridWidth   = 130 // two columns of two panes
	stackHeight = 16  // four panes in one column
)

// paneBox is the area of a pane; a pane without height is not shown.
func (o *overview) paneBox(b box, i int) box {
	switch {
	case b.width >= gridWidth && b.height >= stackHeight:
		left, top := (b.width-1)/2, b.height/2
		p := box{b.x, b.y, left, top}
		if i%2 == 1 {
			p.x, p.width = b.x+left+1, b.width-1-left
		}
		if i >= 2 {
			p.y, p.height = b.y+top, b.height-top
		}
		return p
	case b.height >= stackHeight:
		top := b.height * i / len(o.panes)
		return box{b.x, b.y + top, b.width, b.height*(i+1)/len(o.panes) - top}
	case i == o.focus:
		return b
	default:
		return box{}
	}
}

func (o *overview) draw(m *model, b box) []string {
	drawn := make([][]string, len(o.panes))
	for i := range o.panes {
		drawn[i] = o.drawPane(m, o.paneBox(b, i), i)
	}
	if o.paneBox(b, 1).x == b.x { // one column
		var all []string
		for _, pane := range drawn {
			all = append(all, pane...)
		}
		return all
	}
	var all []string
	for i := 0; i < len(drawn); i += 2 {
		for at := range drawn[i] {
			all = append(all, drawn[i][at]+styles[faint].Render("│")+drawn[i+1][at])
		}
	}
	return all
}

// drawPane draws the title of a pane, which also has the titles of its columns, and its
// rows.
func (o *overview) drawPane(m *model, b box, i int) []string {
	if b.height == 0 {
		return nil
	}
	t := o.panes[i]
	rows := t.rows(m)
	cols := fitColumns(t.view.columns(), b.width)
	title := fmt.Sprintf("─ %s %d%s ", viewTitle(t.view), len(rows), filterNote(t.filter))
	style := styles[faint]
	if i == o.focus {
		style = titleStyle
	}
	drawn := []string{style.Render(t.compactTitle(title, cols, b.width))}
	return t.drawRows(m, rows, cols, box{b.x, b.y, b.width, b.height - 1}, drawn)
}

// compactTitle draws a title, and the titles of the columns that are to the right of it.
func (t *table) compactTitle(title string, cols []fittedColumn, width int) string {
	text, start := cut(title, width), 1
	for _, c := range cols {
		name := t.heading(c)
		at := start
		if c.right {
			at = start + c.width - textWidth(name)
		}
		switch gap := at - textWidth(text); { // the text ends with a space
		case gap == 0:
			text += cut(name, c.width) + " "
		case gap > 0:
			text += strings.Repeat("─", gap-1) + " " + cut(name, c.width) + " "
		}
		start += c.width + 1
	}
	return cut(text+strings.Repeat("─", max(width-textWidth(text), 0)), width)
}

// press moves between the panes; the focused one handles all other keys.
func (o *overview) press(m *model, key string) tea.Cmd {
	switch key {
	case "tab", "right":
		o.focus = (o.focus + 1) % len(o.panes)
	case "shift+tab", "left":
		o.focus = (o.focus + len(o.panes) - 1) % len(o.panes)
	default:
		return o.pane().press(m, key)
	}
	return nil
}

// click selects the pane and the row at a place.
func (o *overview) click(m *model, b box, x, y int) tea.Cmd {
	i, p := o.paneAt(b, x, y)
	if i < 0 {
		return nil
	}
	moved := o.focus != i
	o.focus = i
	t := o.pane()
	if moved { // the first click only selects
		rows := t.rows(m)
		if at := t.first + y - p.y - 1; at >= t.first && at < len(rows) {
			t.choose(rows, at)
		}
		return nil
	}
	return t.clickRow(m, t.first+y-p.y-1)
}

// paneAt is the pane at a place; -1 if there is none.
func (o *overview) paneAt(b box, x, y int) (int, box) {
	for i := range o.panes {
		if p := o.paneBox(b, i); p.contains(x, y) {
			return i, p
		}
	}
	return -1, box{}
}

func (o *overview) scroll(m *model, b box, lines int) { o.pane().scroll(m, b, lines) }

// focused reports whether keys go to a table.
func (m *model) focused(t *table) bool {
	o, ok := m.page().(*overview)
	return !ok || o.pane() == t
}
