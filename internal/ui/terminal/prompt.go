package terminal

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/luanette/luanette/internal/base/commandline"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
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
	"act": "activity", "job": "jobs", "trace": "traces", "events": "log", "logs": "log", "node": "nodes", "repl": "shell", "q": "quit", "exit": "quit", "keys": "help",
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

// confirmation asks before an action, and says what it will do.
type confirmation struct {
	question plain // empty if nothing is asked
	choices  []choice
}

// choice is an answer that does something.
type choice struct {
	key, label string
	do         tea.Cmd
}

// confirm asks a question. Any key that is not one of the choices means no.
func (m *model) confirm(question plain, choices ...choice) {
	m.confirmation = confirmation{question, choices}
}

// answer does what the user chose.
func (m *model) answer(key string) tea.Cmd {
	asked := m.confirmation
	m.confirmation = confirmation{}
	for _, c := range asked.choices {
		if c.key == key {
			return c.do
		}
	}
	m.message = message{"not done", false}
	return nil
}

// text is the question with its answers. If there is little room, the question is cut.
func (c *confirmation) text(width int) string {
	answers := ""
	for _, one := range c.choices {
		answers += "  " + one.key + " " + one.label
	}
	answers += "  n no"
	return cut(string(c.question), width-textWidth(answers)) + answers
}

// callTime is how long a call may take that the user makes.
const callTime = 10 * time.Minute

// invocation is what follows :call or :run: a name, and arguments as key=value or as one
// JSON object.
type invocation struct {
	name string
	raw  json.RawMessage // given as JSON
	args []string        // given as words
}

func readInvocation(text, example string) (v invocation, err error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	v.name, rest = name, strings.TrimSpace(rest)
	if name == "" {
		return v, fault.New(fault.InvalidParams, "which one? for example %s", example)
	}
	if strings.HasPrefix(rest, "{") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(rest), &object); err != nil {
			return v, fault.New(fault.InvalidParams, "the arguments are not JSON: %v", err)
		}
		v.raw = json.RawMessage(rest)
		return v, nil
	}
	words, ok := commandline.Split(rest)
	if !ok {
		return v, fault.New(fault.InvalidParams, "a quote is not closed")
	}
	v.args = words
	return v, nil
}

// schema is what a form needs to know of the arguments of a tool or script.
type schema struct {
	Properties map[string]struct{ Type any }
	Required   []string
}

func (s schema) typeOf(key string) string {
	text, _ := s.Properties[key].Type.(string)
	return text
}

// arguments are the arguments as an object. All that are required must be there.
func (v invocation) arguments(s schema) (json.RawMessage, error) {
	object := map[string]json.RawMessage{}
	if v.raw != nil {
		_ = json.Unmarshal(v.raw, &object) // readInvocation has done the same
	}
	for _, pair := range v.args {
		key, value, err := commandline.Pair(pair, s.typeOf)
		if err != nil {
			return nil, err
		}
		object[key] = value
	}
	for _, name := range s.Required {
		if _, given := object[name]; !given {
			return nil, fault.New(fault.InvalidParams, "%s is required", name).WithHint("add %s=VALUE, or give all arguments as JSON: {…}", name)
		}
	}
	return json.Marshal(object)
}

// callCommand calls a tool and shows its result.
func (m *model) callCommand(text string) tea.Cmd {
	v, err := readInvocation(text, ":call SERVER.TOOL key=value")
	if err != nil {
		m.showError(err)
		return nil
	}
	return m.push(&document{name: "call of " + clean(v.name), row: v.name, does: toolActions(), limit: callTime, load: func(ctx context.Context) (body, error) {
		began := time.Now()
		args, err := m.server.argumentsOfTool(ctx, v)
		if err != nil {
			return nil, err
		}
		result, err := m.server.result(ctx, "call_tool", map[string]any{"name": v.name, "arguments": args})
		if err != nil {
			return nil, err
		}
		all := slices.Concat(field("tool", v.name), field("arguments", string(args)), field("took", short(time.Since(began))), heading("Result"), result.lines())
		return fixed(all), nil
	}})
}

func (s *server) argumentsOfTool(ctx context.Context, v invocation) (json.RawMessage, error) {
	var found struct {
		Tools []struct {
			Input schema `json:"input_schema"`
		}
	}
	if err := s.call(ctx, "get_tool_definitions", map[string]any{"names": []string{v.name}}, &found); err != nil {
		return nil, err
	}
	if len(found.Tools) == 0 {
		return nil, fault.New(fault.ToolNotFound, "there is no tool %s", v.name).WithHint("tab completes names; :tools lists them")
	}
	return v.arguments(found.Tools[0].Input)
}

// lines are the parts of a result as text: its texts, or else its data.
func (r toolResult) lines() (all []styled) {
	for _, part := range r.Content {
		switch {
		case part.Text != "" && json.Valid([]byte(part.Text)):
			all = append(all, pretty(json.RawMessage(part.Text))...)
		case part.Text != "":
			all = append(all, unstyled(lines(part.Text))...)
		default:
			all = append(all, styled{plain("(" + clean(part.Type) + " " + clean(part.MimeType) + ", see the web page)"), faint})
		}
	}
	if len(all) == 0 && len(r.StructuredContent) > 0 {
		all = pretty(r.StructuredContent)
	}
	if len(all) == 0 {
		all = []styled{{"nothing", faint}}
	}
	return all
}

// jobStarted says that a job was started, or why not.
type jobStarted struct {
	id, name string
	err      error
}

// runCommand starts a stored script as a job and shows it.
func (m *model) runCommand(text string) tea.Cmd {
	v, err := readInvocation(text, ":run NAME key=value, with the name or hash of a stored script")
	if err != nil {
		m.showError(err)
		return nil
	}
	m.message = message{"starting " + clean(v.name) + "…", false}
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(m.ctx, actionTimeout)
		defer stop()
		id, err := m.server.startJob(ctx, v)
		return jobStarted{id, v.name, err}
	}
}

// showStarted shows a job that was started.
func (m *model) showStarted(msg jobStarted) tea.Cmd {
	if msg.err != nil {
		m.showError(msg.err)
		return nil
	}
	m.message = message{clean(msg.name) + " started", false}
	m.loading.stale.add(setOf(jobList))
	return m.push(&document{name: clean(msg.name), row: msg.id, does: jobsView{}.actions(scope{}), reload: setOf(jobList), load: func(ctx context.Context) (body, error) {
		return m.server.jobText(ctx, msg.id)
	}})
}

var hash = lazyregexp.New(`^[0-9a-f]{12,64}$`)

func (s *server) startJob(ctx context.Context, v invocation) (id string, err error) {
	script := v.name
	if !hash().MatchString(script) {
		if script, err = s.scriptNamed(ctx, v.name); err != nil {
			return "", err
		}
	}
	var described struct {
		Input schema `json:"input_schema"`
	}
	if err := s.call(ctx, "lua_describe", map[string]any{"script_hash": script}, &described); err != nil {
		return "", err
	}
	args, err := v.arguments(described.Input)
	if err != nil {
		return "", err
	}
	var started struct {
		JobID string `json:"job_id"`
	}
	err = s.call(ctx, "lua_execute", map[string]any{"script_hash": script, "params": args}, &started)
	return started.JobID, err
}

// scriptNamed returns the hash of the newest script with a name.
func (s *server) scriptNamed(ctx context.Context, name string) (string, error) {
	var found struct {
		Scripts []struct{ Hash, Name string }
	}
	if err := s.call(ctx, "script_search", map[string]any{"vibe": name, "limit": 50}, &found); err != nil {
		return "", err
	}
	for _, script := range found.Scripts {
		if script.Name == name {
			return script.Hash, nil
		}
	}
	return "", fault.New(fault.NotFound, "there is no stored script %s", name).WithHint("`luanette script search` lists them; a hash works too")
}

// toolActions are what can be done with a tool.
func toolActions() []action {
	return append(tracesOfTool(), action{key: "e", does: "call", do: func(m *model, row string) tea.Cmd {
		m.prompt = prompt{sign: ":", text: "call " + clean(row) + " "}
		return nil
	}})
}

// argumentName finds the names of arguments in a signature such as (path: string, n?: integer).
var argumentName = lazyregexp.New(`([A-Za-z_][\w-]*)\??:`)

// invocationWords are the words that may follow :call: the names of tools, then those of
// the tool's arguments.
func (m *model) invocationWords(before []string) (words []string) {
	for i := range m.state.tools {
		t := &m.state.tools[i]
		switch {
		case len(before) == 0:
			words = append(words, string(t.Name))
		case string(t.Name) == before[0]:
			for _, found := range argumentName().FindAllStringSubmatch(string(t.Signature), -1) {
				if !slices.ContainsFunc(before[1:], func(given string) bool { return strings.HasPrefix(given, found[1]+"=") }) {
					words = append(words, found[1]+"=")
				}
			}
		}
	}
	return words
}
