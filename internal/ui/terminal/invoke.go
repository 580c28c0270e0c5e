package terminal

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/commandline"
	"github.com/luanette/luanette/internal/base/fault"
)

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

var hash = regexp.MustCompile(`^[0-9a-f]{12,64}$`)

func (s *server) startJob(ctx context.Context, v invocation) (id string, err error) {
	script := v.name
	if !hash.MatchString(script) {
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
var argumentName = regexp.MustCompile(`([A-Za-z_][\w-]*)\??:`)

// invocationWords are the words that may follow :call: the names of tools, then those of
// the tool's arguments.
func (m *model) invocationWords(before []string) (words []string) {
	for i := range m.state.tools {
		t := &m.state.tools[i]
		switch {
		case len(before) == 0:
			words = append(words, string(t.Name))
		case string(t.Name) == before[0]:
			for _, found := range argumentName.FindAllStringSubmatch(string(t.Signature), -1) {
				if !slices.ContainsFunc(before[1:], func(given string) bool { return strings.HasPrefix(given, found[1]+"=") }) {
					words = append(words, found[1]+"=")
				}
			}
		}
	}
	return words
}
