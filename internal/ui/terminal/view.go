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

// header shows which server this is, and its state.
func (m *model) header() string {
	b := m.shown()
	parts := []string{styles[bold].Render("Luanette"), string(m.server.address()), m.connectionState()}
	down := 0
	for i := range b.Upstreams {
		if s := b.Upstreams[i].State; s == "reconnecting" || s == "failed" || s == "needs_auth" {
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
