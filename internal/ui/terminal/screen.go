package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/luanette/luanette/internal/base/plural"
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
		parts = append(parts, styles[yellow].Render(plural.Count(b.Missed, "event")+" missed"))
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

// tabs are all views, and the overview.
func (m *model) tabs() []tab {
	all := []tab{{text: "0 Overview"}}
	for i, v := range views() {
		t := tab{text: fmt.Sprintf("%d %s", i+1, viewTitle(v))}
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

// help are the keys of the dashboard. The lines fit into 60 columns.
var help = []styled{
	{"Everywhere", bold},
	{"1 to 9     activity, servers, tools, approvals, jobs,", normal},
	{"           calls, traces, log, nodes; 0: overview", normal},
	{":          commands: the same names, :tools SERVER,", normal},
	{"           :traces all, :stderr SERVER, :shell, :quit;", normal},
	{"           :call TOOL key=value, or JSON: its result;", normal},
	{"           :run SCRIPT key=value: as a job; tab completes", normal},
	{"/          only rows or lines with a text; /!text: without", normal},
	{"enter      open the row: a server's tools, a tool's", normal},
	{"           schema, a job's steps, a trace's waterfall", normal},
	{"esc        clear the filter, go back; also backspace, q", normal},
	{"space      pause and continue updates", normal},
	{"s          REPL of the server; ctrl+d comes back", normal},
	{"?          this help", normal},
	{"q, ctrl+c  quit; q only on the first page", normal},
	{},
	{"Tables", bold},
	{"↑ ↓ j k    select; also pgup, pgdn, home, end, g, G", normal},
	{"shift+...  sort by the column with this capital letter;", normal},
	{"           again: the other way", normal},
	{"tab, ← →   another pane of the overview", normal},
	{},
	{"Activity", bold},
	{"a, d       allow or deny what the session waits for", normal},
	{"u          undo its job, after a plan; also of a job", normal},
	{},
	{"Servers", bold},
	{"i          all details", normal},
	{"r          reconnect now, or restore a removed one", normal},
	{"l          what it writes to standard error, live", normal},
	{"t          its traces; also of a tool, a call, a job", normal},
	{"x          remove, after a question", normal},
	{},
	{"Tools", bold},
	{"e          call it: the command with its name", normal},
	{},
	{"Approvals", bold},
	{"a          allow the plan, or approve the definition", normal},
	{"d          deny the plan, or refuse the definition", normal},
	{},
	{"Jobs", bold},
	{"l          output, live", normal},
	{"c          cancel, after a question", normal},
	{},
	{"Mouse", bold},
	{"click      select a row, a pane or a tab; the selected", normal},
	{"           row opens; a column title sorts", normal},
	{"wheel      scroll; to mark text, hold shift", normal},
	{},
	{"Escape sequences in texts from servers are removed.", faint},
}

func helpPage() page { return &document{name: "Help", body: fixed(help)} }

// snapshotRows is how many jobs, calls and lines a snapshot has.
const snapshotRows = 20

// snapshot writes the state as text without colours. A width above 0 truncates lines.
func snapshot(s *server, b *state, now time.Time, width int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Luanette at %s: %s, %s, %s\n", s.address(),
		counted(len(b.Upstreams), "server", "servers"), counted(len(b.Jobs), "job", "jobs"),
		counted(b.Approvals, "pending approval", "pending approvals"))
	if note := b.restartNote(); note != "" {
		text.WriteString(note + "\n")
	}
	for _, v := range snapshotViews() {
		rows := v.rows(b, scope{}, now)
		if v.name() != "servers" {
			rows = rows[:min(len(rows), snapshotRows)]
		}
		switch {
		case len(rows) > 0:
			text.WriteString("\n")
			writeRows(&text, titled(v), rows, width)
		case v.name() != "nodes":
			fmt.Fprintf(&text, "\n%s\n  none\n", viewTitle(v))
		}
	}
	return text.String()
}

// snapshotViews are the parts of a snapshot.
func snapshotViews() []view { return append(overviewViews(), nodesView{}) }

// titled are the columns of a view; the first has the view's name.
func titled(v view) []column {
	cols := v.columns()
	for i := range cols {
		cols[i].title = plain(strings.ToLower(string(cols[i].title)))
	}
	cols[0].title = viewTitle(v)
	return cols
}

// writeRows writes rows under their titles, in columns as wide as their contents.
func writeRows(text *strings.Builder, cols []column, rows []row, width int) {
	const most = 60
	widths := make([]int, len(cols))
	for _, r := range rows {
		for i, c := range r.cells {
			widths[i] = max(widths[i], min(ansi.StringWidth(string(c.text)), most))
		}
	}
	titles := row{}
	for i, c := range cols {
		titles.cells = append(titles.cells, cell{text: c.title})
		if widths[i] > 0 { // empty columns are left out
			widths[i] = max(widths[i], ansi.StringWidth(string(c.title)))
		}
	}
	for _, r := range append([]row{titles}, rows...) {
		text.WriteString(alignColumns(r.cells, cols, widths, width) + "\n")
	}
}

// alignColumns writes cells in columns; the last one is not padded.
func alignColumns(cells []cell, cols []column, widths []int, width int) string {
	var row strings.Builder
	for i, c := range cells {
		switch last := i == len(cells)-1; {
		case widths[i] == 0:
			continue
		case last:
			row.WriteString(string(c.text))
		case cols[i].right:
			shown := cut(string(c.text), widths[i])
			row.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(shown)) + shown + "  ")
		default:
			row.WriteString(fill(string(c.text), widths[i]) + "  ")
		}
	}
	shown := strings.TrimRight(row.String(), " ")
	if width > 0 {
		shown = cut(shown, width)
	}
	return shown
}
