package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// style is the look of a text.
type style int

const (
	normal style = iota
	faint
	green // good
	red   // bad
	yellow
	accent
	bold
)

// styles use the sixteen terminal colours. No information is shown by colour alone.
var styles = map[style]lipgloss.Style{
	normal: lipgloss.NewStyle(),
	faint:  lipgloss.NewStyle().Faint(true),
	green:  lipgloss.NewStyle().Foreground(lipgloss.Green),
	red:    lipgloss.NewStyle().Foreground(lipgloss.Red),
	yellow: lipgloss.NewStyle().Foreground(lipgloss.Yellow),
	accent: lipgloss.NewStyle().Foreground(lipgloss.Cyan),
	bold:   lipgloss.NewStyle().Bold(true),
}

var (
	chosenStyle = lipgloss.NewStyle().Reverse(true)
	titleStyle  = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Cyan)
	bannerStyle = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red).Reverse(true)
)

// textWidth is how many columns a text takes.
func textWidth(text string) int { return ansi.StringWidth(text) }

// View draws the whole screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	v.WindowTitle = "luanette hud"
	v.MouseMode = tea.MouseModeCellMotion
	return v
}

func (m *model) screen() string {
	if m.height < 4 || m.width < 10 {
		return cut(m.header(), m.width)
	}
	screen := []string{fill(m.header(), m.width)}
	if m.hasTabs() {
		screen = append(screen, m.tabLine())
	}
	screen = append(screen, m.page().draw(m, m.bodyBox())...)
	return strings.Join(append(screen, fill(m.footer(), m.width)), "\n")
}

// hasTabs reports whether there is room for the tabs.
func (m *model) hasTabs() bool { return m.height >= 10 }

// header shows which server this is, and its state.
func (m *model) header() string {
	b := m.shown()
	address := strings.TrimPrefix(string(m.server.address()), "http://")
	parts := []string{styles[bold].Render("Luanette"), address, m.connectionState()}
	if down := b.down(); down > 0 {
		parts = append(parts, styles[red].Render(fmt.Sprintf("%d down", down)))
	}
	if b.Approvals > 0 {
		parts = append(parts, styles[yellow].Render(counted(b.Approvals, "pending approval", "pending approvals")))
	}
	if note := b.nodeNote(); note != "" {
		parts = append(parts, note)
	}
	if note := b.restartNote(); note != "" {
		parts = append(parts, styles[yellow].Render(note))
	}
	if b.Missed > 0 {
		parts = append(parts, styles[yellow].Render(fmt.Sprintf("%d events missed", b.Missed)))
	}
	return strings.Join(append(parts, fmt.Sprintf("%.1f calls/s", b.perSecond(m.now()))), "  ")
}

// down is how many servers cannot be used.
func (b *state) down() (n int) {
	for i := range b.Upstreams {
		switch b.Upstreams[i].State {
		case "reconnecting", "failed", "needs_auth", "untrusted":
			n++
		}
	}
	return n
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
	case m.hasTabs(): // the banner says more
		return styles[red].Render("disconnected")
	}
	return styles[red].Render(string(m.disconnectText()))
}

// disconnectText says since when the server is unreachable, and what happens now.
func (m *model) disconnectText() plain {
	next := max(m.disconnect.next.Sub(m.now()), 0).Round(time.Second)
	return plain(fmt.Sprintf("disconnected, next attempt in %s: %s", short(next), clean(m.disconnect.err.Error())))
}

// tab is a name in the line below the header.
type tab struct {
	text    string
	current bool
	notable bool // something there needs a person
}

// tabs are the overview and all views.
func (m *model) tabs() []tab {
	all := []tab{{text: "1 Overview"}}
	for i, v := range views() {
		t := tab{text: fmt.Sprintf("%d %s", i+2, viewTitle(v))}
		if waiting := m.shown().Approvals; v.name() == "approvals" && waiting > 0 {
			t.text, t.notable = fmt.Sprintf("%s (%d)", t.text, waiting), true
		}
		all = append(all, t)
	}
	if len(m.shown().Nodes) == 0 {
		all = all[:len(all)-1]
	}
	if at := m.currentTab(); at < len(all) {
		all[at].current = true
	}
	return shortened(all, m.width)
}

// currentTab is the index of the tab that the pages belong to.
func (m *model) currentTab() int {
	if t, ok := m.pages[0].(*table); ok {
		return 1 + slices.IndexFunc(views(), func(v view) bool { return v.name() == t.view.name() })
	}
	return 0
}

// shortened makes the tabs fit: the names of others than the current one have a few
// letters, or only the number is left.
func shortened(all []tab, width int) []tab {
	for _, most := range []int{len("4 Appr"), len("4 App"), len("4")} {
		total := len(all) // a space before each
		for _, t := range all {
			total += textWidth(t.text)
		}
		if total <= width {
			return all
		}
		for i := range all {
			if !all[i].current {
				all[i].text = all[i].text[:min(most, len(all[i].text))]
			}
		}
	}
	return all
}

// tabLine draws the tabs, or a banner if the server cannot be reached.
func (m *model) tabLine() string {
	if !m.live && m.disconnect.err != nil {
		return bannerStyle.Render(fill(" "+string(m.disconnectText()), m.width))
	}
	var text strings.Builder
	for _, t := range m.tabs() {
		look := styles[faint]
		switch {
		case t.current:
			look = titleStyle
		case t.notable:
			look = styles[yellow]
		}
		text.WriteString(" " + look.Render(t.text))
	}
	return fill(text.String(), m.width)
}

// tabAt is the number of the tab at a column; -1 if there is none.
func (m *model) tabAt(x int) int {
	at := 1
	for i, t := range m.tabs() {
		end := at + textWidth(t.text)
		if x >= at && x < end {
			return i
		}
		at = end + 1
	}
	return -1
}

// footer shows a question, the prompt, a message, or the keys.
func (m *model) footer() string {
	switch {
	case m.confirmation.question != "":
		return styles[yellow].Render(m.confirmation.text(m.width))
	case m.prompt.sign == "/":
		return fmt.Sprintf("/%s▏  %s", m.prompt.end(m.width-4), styles[faint].Render("enter applies the filter, esc clears it"))
	case m.prompt.sign == ":":
		return fmt.Sprintf(":%s▏  %s", m.prompt.end(m.width-4), styles[faint].Render(strings.Join(m.candidates(), " ")))
	case m.message.text != "" && m.message.bad:
		return styles[red].Render(string(m.message.text))
	case m.message.text != "":
		return string(m.message.text)
	}
	return styles[faint].Render(m.hints())
}

// hints are the keys that can be used now, as many as fit.
func (m *model) hints() string {
	all := []string{"? help"}
	switch m.page().(type) {
	case *document:
		all = append(all, "esc back")
	case *overview:
		all = append(all, "tab pane", "enter open")
	default:
		all = append(all, "enter open")
	}
	for _, a := range m.page().actions() {
		all = append(all, a.key+" "+a.does)
	}
	all = append(all, "/ filter", ": command", "s shell")
	if len(m.pages) == 1 {
		all = append(all, "q quit")
	}
	text := all[0]
	for _, hint := range all[1:] {
		if textWidth(text)+2+textWidth(hint) <= m.width {
			text += "  " + hint
		}
	}
	return text
}
