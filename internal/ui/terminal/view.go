package terminal

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// styles use the sixteen terminal colours. No information is shown by colour alone.
var styles = map[style]lipgloss.Style{
	normal: lipgloss.NewStyle(),
	faint:  lipgloss.NewStyle().Faint(true),
	green:  lipgloss.NewStyle().Foreground(lipgloss.Green),
	red:    lipgloss.NewStyle().Foreground(lipgloss.Red),
	yellow: lipgloss.NewStyle().Foreground(lipgloss.Yellow),
	bold:   lipgloss.NewStyle().Bold(true),
}

var (
	chosenStyle = lipgloss.NewStyle().Reverse(true)
	titleStyle  = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Cyan)
)

// box is an area of the screen.
type box struct{ x, y, width, height int }

// Minimum sizes of the layouts.
const (
	gridWidth, gridHeight   = 130, 16 // two columns of two panes
	stackWidth, stackHeight = 50, 18  // four panes in one column
)

// boxOf is the area of a pane; a pane without height is not shown.
func (m *model) boxOf(id paneID) box {
	inner := box{0, 1, m.width, max(m.height-2, 0)} // between the header and the footer
	switch {
	case m.width >= gridWidth && m.height >= gridHeight:
		left := (inner.width - 1) / 2
		top := inner.height / 2
		b := box{0, inner.y, left, top}
		if id == jobPane || id == logPane {
			b.x, b.width = left+1, inner.width-1-left
		}
		if id == callPane || id == logPane {
			b.y, b.height = inner.y+top, inner.height-top
		}
		return b
	case m.width >= stackWidth && m.height >= stackHeight:
		top := inner.y + inner.height*int(id)/int(paneCount)
		return box{0, top, inner.width, inner.y + inner.height*(int(id)+1)/int(paneCount) - top}
	case id == m.focus:
		return inner
	default:
		return box{}
	}
}

// View draws the whole screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	v.WindowTitle = "luanette hud"
	return v
}

func (m *model) screen() string {
	if m.height < 3 || m.width < 10 {
		return cut(m.header(), m.width)
	}
	screen := make([]string, 0, m.height)
	screen = append(screen, fill(m.header(), m.width))
	switch m.mode {
	case showingDetails:
		screen = append(screen, m.detailLines()...)
	case showingHelp:
		screen = append(screen, m.helpLines()...)
	default:
		screen = append(screen, m.body()...)
	}
	return strings.Join(append(screen, fill(m.footer(), m.width)), "\n")
}

// body draws the panes.
func (m *model) body() []string {
	if m.boxOf(callPane).x == 0 && m.boxOf(jobPane).x == 0 {
		var all []string
		for id := range paneCount {
			all = append(all, m.drawPane(id)...)
		}
		return all
	}
	var all []string
	for _, pair := range [][2]paneID{{upstreamPane, jobPane}, {callPane, logPane}} {
		left, right := m.drawPane(pair[0]), m.drawPane(pair[1])
		for i := range left {
			all = append(all, left[i]+styles[faint].Render("│")+right[i])
		}
	}
	return all
}

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

// header shows which server this is, and its state.
func (m *model) header() string {
	b := m.shown()
	parts := []string{styles[bold].Render("Luanette"), string(m.server.address()), m.connectionState()}
	down := 0
	for i := range b.Upstreams {
		if s := b.Upstreams[i].State; s == "reconnecting" || s == "needs_auth" {
			down++
		}
	}
	if down > 0 {
		parts = append(parts, styles[red].Render(fmt.Sprintf("%d down", down)))
	}
	if note := b.nodeNote(); note != "" {
		parts = append(parts, note)
	}
	if b.Approvals > 0 {
		parts = append(parts, styles[yellow].Render(counted(b.Approvals, "pending approval", "pending approvals")))
	}
	if note := b.restartNote(); note != "" {
		parts = append(parts, styles[yellow].Render(note))
	}
	if b.Missed > 0 {
		parts = append(parts, styles[yellow].Render(fmt.Sprintf("%d events missed", b.Missed)))
	}
	parts = append(parts, fmt.Sprintf("%.1f calls/s", b.perSecond(m.now())))
	return strings.Join(parts, "  ")
}

// connectionState shows whether the server is connected.
func (m *model) connectionState() string {
	switch {
	case m.live && m.paused != nil:
		return styles[yellow].Render("paused: space continues")
	case m.live:
		return styles[green].Render("live")
	case m.disconnect.err == nil:
		return styles[faint].Render("connecting")
	}
	next := max(m.disconnect.next.Sub(m.now()), 0).Round(time.Second)
	return styles[red].Render(fmt.Sprintf("disconnected, next attempt in %s: %s", short(next), clean(m.disconnect.err.Error())))
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// footer shows a confirmation, the filter being typed, a message, or the keys.
func (m *model) footer() string {
	switch {
	case m.mode == confirming:
		return styles[yellow].Render(string(m.confirmation.text) + " y or n")
	case m.mode == filtering:
		return fmt.Sprintf("/%s▏  enter applies the filter, esc clears it", m.panes[m.focus].filter)
	case m.message.text != "" && m.message.bad:
		return styles[red].Render(string(m.message.text))
	case m.message.text != "":
		return string(m.message.text)
	case m.mode == showingDetails:
		return styles[faint].Render("↑↓ scroll  esc back")
	case m.mode == showingHelp:
		return styles[faint].Render("any key closes the help")
	}
	keys := "tab pane  ↑↓ select  enter details  / filter  "
	switch m.focus {
	case upstreamPane:
		keys += "r retry  x remove  "
	case jobPane:
		keys += "c cancel  "
	}
	return styles[faint].Render(keys + "? help  q quit")
}

// detailLines draws the details.
func (m *model) detailLines() []string {
	height := m.height - 3
	all := wrapped(m.details.about, m.width-2)
	m.details.scroll = min(max(m.details.scroll, 0), max(len(all)-height, 0))
	page := []string{fill(titleStyle.Render(" "+string(m.details.title)), m.width)}
	for i := m.details.scroll; i < len(all) && len(page) <= height; i++ {
		page = append(page, fill(" "+all[i], m.width))
	}
	for len(page) <= height {
		page = append(page, "")
	}
	return page
}

// wrapped wraps lines at a width.
func wrapped(list []plain, width int) (all []string) {
	for _, text := range list {
		all = append(all, strings.Split(ansi.Hardwrap(string(text), max(width, 1), true), "\n")...)
	}
	return all
}

var help = []plain{
	"tab, shift+tab, 1 to 4   go to another pane",
	"up, down, pgup, pgdn     select a row; also home and end",
	"enter                    show details of the row",
	"/                        show only rows that contain a text; esc shows all",
	"space                    pause and continue updates",
	"n                        list the nodes that share the database",
	"r                        reconnect the upstream now, or restore a removed one",
	"x                        remove the upstream",
	"c                        cancel the job",
	"?                        this help",
	"q, ctrl+c                quit",
	"",
	"Escape sequences in texts from servers are removed.",
}

func (m *model) helpLines() []string {
	m.details = details{title: "Keys", about: help}
	return m.detailLines()
}
