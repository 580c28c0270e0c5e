package terminal

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// prompt is the line at the bottom in which a command or a filter is typed.
type prompt struct {
	sign string // ":" or "/"; empty if nothing is typed
	text plain
}

// end is as much of the end of the text as fits, which is where the user types.
func (p prompt) end(width int) string {
	text := string(p.text)
	if over := textWidth(text) - width; over > 0 {
		return ansi.TruncateLeft(text, over+1, "…")
	}
	return text
}

// promptKey edits the prompt.
func (m *model) promptKey(key, text string) tea.Cmd {
	p := &m.prompt
	switch key {
	case "enter":
		return m.endPrompt()
	case "esc":
		m.cancelPrompt()
		return nil
	case "backspace":
		if p.text == "" {
			m.cancelPrompt()
			return nil
		}
		letters := []rune(p.text)
		p.text = plain(letters[:len(letters)-1])
	case "ctrl+u":
		p.text = ""
	case "ctrl+w":
		words := strings.TrimRight(string(p.text), " ")
		p.text = plain(words[:strings.LastIndex(words, " ")+1])
	case "tab", "right":
		m.complete()
	default:
		p.text += clean(text)
	}
	m.applyFilter()
	if p.isCall() {
		return m.loadStale()
	}
	return nil
}

// isCall reports whether a call of a tool is typed.
func (p prompt) isCall() bool { return p.sign == ":" && strings.HasPrefix(string(p.text), "call ") }

// applyFilter filters the page while the user types.
func (m *model) applyFilter() {
	if m.prompt.sign == "/" {
		*m.page().filterText() = m.prompt.text
	}
}

// endPrompt runs the command, or keeps the filter.
func (m *model) endPrompt() tea.Cmd {
	p := m.prompt
	m.prompt = prompt{}
	if p.sign == ":" {
		return m.command(string(p.text))
	}
	if t, ok := m.page().(*table); ok {
		return m.searchMore(t)
	}
	return nil
}

func (m *model) cancelPrompt() {
	if m.prompt.sign == "/" {
		*m.page().filterText() = ""
	}
	m.prompt = prompt{}
}

// paste adds pasted text to the prompt.
func (m *model) paste(text string) {
	if m.prompt.sign != "" {
		m.prompt.text += clean(text)
		m.applyFilter()
	}
}

// complete completes the last word of a command.
func (m *model) complete() {
	if found := m.candidates(); m.prompt.sign == ":" && len(found) > 0 {
		words := string(m.prompt.text)
		m.prompt.text = plain(words[:strings.LastIndex(words, " ")+1]) + clean(found[0])
	}
}

// candidates are the words that complete the command.
func (m *model) candidates() (found []string) {
	all := m.commandNames()
	before, last := "", string(m.prompt.text)
	if at := strings.LastIndex(last, " "); at >= 0 {
		before, last = strings.TrimSpace(last[:at]), last[at+1:]
		all = m.arguments(before)
	}
	for _, word := range all {
		if strings.HasPrefix(word, last) && word != last {
			found = append(found, word)
		}
	}
	return found
}

// commandNames are the commands that completion offers.
func (m *model) commandNames() []string {
	names := []string{"overview"}
	for _, v := range views() {
		names = append(names, v.name())
	}
	return append(names, "call", "run", "stderr", "shell", "help", "quit")
}

// arguments are the words that may follow a command.
func (m *model) arguments(command string) []string {
	words := strings.Fields(command)
	switch resolve(words[0]) {
	case "call":
		return m.invocationWords(words[1:])
	case "tools", "stderr", "calls":
		return m.state.serverNames()
	case "traces", "log":
		return append([]string{"all"}, m.state.serverNames()...)
	}
	return nil
}

// aliases are other names of commands.
var aliases = map[string]string{
	"o": "overview", "home": "overview", "upstreams": "servers", "up": "servers", "srv": "servers", "tool": "tools", "approval": "approvals", "ap": "approvals",
	"job": "jobs", "trace": "traces", "events": "log", "logs": "log", "node": "nodes", "repl": "shell", "q": "quit", "exit": "quit", "keys": "help",
}

// resolve is the name of a command.
func resolve(word string) string {
	if name, ok := aliases[word]; ok {
		return name
	}
	return word
}

// command runs a command.
func (m *model) command(text string) tea.Cmd {
	word, argument, _ := strings.Cut(strings.TrimSpace(text), " ")
	name, argument := resolve(word), strings.TrimSpace(argument)
	switch name {
	case "":
		return nil
	case "call":
		return m.callCommand(argument)
	case "run":
		return m.runCommand(argument)
	case "quit":
		return tea.Quit
	case "help":
		return m.push(helpPage())
	case "shell":
		return m.openShell()
	case "overview":
		return m.show(newOverview())
	case "stderr":
		return m.stderrCommand(argument)
	}
	at := slices.IndexFunc(views(), func(v view) bool { return v.name() == name })
	if at < 0 {
		m.message = message{"there is no command :" + clean(word) + "; tab completes commands, ? lists them", true}
		return nil
	}
	return m.showView(views()[at], argument)
}

// showView shows all rows of a view, or those of a server.
func (m *model) showView(v view, argument string) tea.Cmd {
	show := m.show(&table{view: v, of: scope{all: argument == "all"}})
	if argument == "" || argument == "all" {
		return show
	}
	if m.state.server(argument) == nil {
		m.message = message{"there is no server " + clean(argument) + "; press 2 to list them", true}
		return show
	}
	return tea.Batch(show, m.push(&table{view: v, of: scope{server: clean(argument)}}))
}

func (m *model) stderrCommand(name string) tea.Cmd {
	if m.state.server(name) == nil {
		m.message = message{"which server? for example :stderr NAME; press 2 to list them", true}
		return nil
	}
	return m.showStderr(name)
}
