package terminal

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// drawPane draws a pane's title and rows, as many lines as its box has.
func (m *model) drawPane(id paneID) []string {
	b := m.boxOf(id)
	if b.height == 0 {
		return nil
	}
	rows := m.rows(id)
	p := &m.panes[id]
	cols := fitColumns(id, b.width)
	drawn := []string{m.title(id, cols, len(rows), b.width)}
	at := p.at(rows)
	first := max(0, at-(b.height-2)) // scroll so that the selected row is visible
	for i := first; i < len(rows) && len(drawn) < b.height; i++ {
		drawn = append(drawn, drawRow(rows[i].cells, cols, id == m.focus && i == at))
	}
	if len(rows) == 0 && b.height > 1 {
		drawn = append(drawn, styles[faint].Render(fill("  "+string(m.emptyText(id)), b.width)))
	}
	for len(drawn) < b.height {
		drawn = append(drawn, strings.Repeat(" ", b.width))
	}
	return drawn
}

// emptyText is shown in an empty pane.
func (m *model) emptyText(id paneID) plain {
	switch {
	case m.panes[id].filter != "":
		return "no rows match " + m.panes[id].filter + "; esc shows all"
	case id == upstreamPane:
		return "none; add one with `luanette upstream add NAME URL`"
	case id == jobPane:
		return "none; start one with `luanette job start HASH`"
	case id == callPane:
		return "no calls yet"
	default:
		return "no events yet"
	}
}

// fittedColumn is a column with its width in a pane.
type fittedColumn struct {
	column
	index int
}

// fitColumns are the columns that fit into a pane of a width.
func fitColumns(id paneID, width int) []fittedColumn {
	var cols []fittedColumn
	left, sharing := width-1, 0
	for i, c := range columns[id] {
		if width < c.from {
			continue
		}
		cols = append(cols, fittedColumn{c, i})
		left -= c.width + 1
		if c.width == 0 {
			sharing++
		}
	}
	if sharing == 0 && len(cols) > 0 { // the widest column takes or gives the difference
		widest := 0
		for i := range cols {
			if cols[i].width > cols[widest].width {
				widest = i
			}
		}
		cols[widest].width = max(cols[widest].width+left, 1)
	}
	for i := range cols {
		if cols[i].width == 0 {
			cols[i].width = max(left/sharing, 1)
		}
	}
	return cols
}

// title draws a pane's name and the titles of its columns in a line.
func (m *model) title(id paneID, cols []fittedColumn, count, width int) string {
	name := fmt.Sprintf("%d %s %d", id+1, paneNames[id], count)
	if f := m.panes[id].filter; f != "" {
		name += " /" + string(f)
	}
	rule := []rune(strings.Repeat("─", width))
	overwrite(rule, 1, " "+name+" ")
	at, after := 1, len([]rune(name))+4
	for i, c := range cols {
		title := []rune(c.title)
		start := at
		if c.right {
			start = at + c.width - len(title)
		}
		if i > 0 && len(title) > 0 && start-1 >= after {
			overwrite(rule, start-1, " "+string(title)+" ")
		}
		at += c.width + 1
	}
	style := styles[faint]
	if id == m.focus {
		style = titleStyle
	}
	return style.Render(cut(string(rule), width))
}

func overwrite(rule []rune, at int, text string) {
	for i, r := range []rune(text) {
		if at+i < len(rule) {
			rule[at+i] = r
		}
	}
}

// drawRow draws cells in their columns.
func drawRow(cells []cell, cols []fittedColumn, chosen bool) string {
	var text strings.Builder
	text.WriteString(" ")
	for _, c := range cols {
		shown := cut(string(cells[c.index].text), c.width)
		pad := strings.Repeat(" ", max(c.width-ansi.StringWidth(shown), 0))
		if c.right {
			shown = pad + shown
		} else {
			shown += pad
		}
		if chosen {
			text.WriteString(shown + " ")
			continue
		}
		text.WriteString(styles[cells[c.index].style].Render(shown) + " ")
	}
	if chosen {
		return chosenStyle.Render("›" + text.String()[1:])
	}
	return text.String()
}

// cut truncates a text to a width.
func cut(text string, width int) string { return ansi.Truncate(text, max(width, 0), "…") }

// fill truncates or pads a text to a width.
func fill(text string, width int) string {
	text = cut(text, width)
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}
