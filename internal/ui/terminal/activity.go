package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/plural"
)

// session is what a client did in one go, or a job, as /api/v1/activity lists it.
type session struct {
	ID     plain     `json:"id"`
	Who    plain     `json:"who"`
	Name   plain     `json:"name,omitempty"`
	Agent  plain     `json:"agent,omitempty"`
	Title  plain     `json:"title"`
	Latest time.Time `json:"latest"`
	Calls  int       `json:"calls"`
	Failed int       `json:"failed"`
	Denied int       `json:"denied"`
	Asked  int       `json:"asked"`
}

// jobPrefix is the beginning of the ids of sessions that are jobs.
const jobPrefix = "job:"

// job is the id of the job that the session is; "" for that of a client.
func (s *session) job() string {
	id, isJob := strings.CutPrefix(string(s.ID), jobPrefix)
	if !isJob {
		return ""
	}
	return id
}

// client is the program, without its version.
func (s *session) client() plain {
	if s.job() != "" {
		return "job"
	}
	name, _, _ := strings.Cut(string(s.Agent), " ")
	return cmp.Or(plain(name), s.Name, s.Who)
}

func loadActivity(ctx context.Context, s *server, _ time.Time) (store, error) {
	var response struct{ Sessions []session }
	err := s.get(ctx, "/api/v1/activity?limit=200", &response)
	return func(b *state) { b.sessions = response.Sessions }, ignoreMissing(err)
}

// activityView lists what clients and jobs did, the latest first.
type activityView struct{}

func (activityView) name() string { return "activity" }

func (activityView) columns() []column {
	return []column{
		{title: "Latest", width: 8},
		{title: "Agent", width: 16},
		{title: "For", width: 14, from: 100},
		{title: "What"},
		{title: "Calls", width: 6, right: true, from: 60},
		{title: "Outcome", width: 18, from: 50},
	}
}

func (activityView) rows(b *state, _ scope, now time.Time) (rows []row) {
	for i := range b.sessions {
		s := &b.sessions[i]
		rows = append(rows, row{string(s.ID), []cell{
			moment(s.Latest, now), {text: s.client()}, {text: cmp.Or(s.Name, s.Who), style: faint}, {text: s.Title, style: bold}, number(s.Calls), s.outcome(),
		}})
	}
	return rows
}

// outcome is what went wrong, if something did.
func (s *session) outcome() cell {
	failed := s.Failed - s.Denied
	switch {
	case s.Denied > 0 && failed > 0:
		return cell{text: plain(fmt.Sprintf("%d failed, %d denied", failed, s.Denied)), style: red}
	case s.Denied > 0:
		return cell{text: plain(fmt.Sprintf("%d denied", s.Denied)), style: red}
	case failed > 0:
		return cell{text: plain(fmt.Sprintf("%d failed", failed)), style: red}
	case s.Asked > 0:
		return cell{text: plain(fmt.Sprintf("asked %s", plural.Count(s.Asked, "time"))), style: yellow}
	}
	return cell{text: "ok", style: green}
}

func (b *state) session(id string) *session {
	for i := range b.sessions {
		if string(b.sessions[i].ID) == id {
			return &b.sessions[i]
		}
	}
	return nil
}

// open shows the session step by step, with what comes while it is shown at its end.
func (activityView) open(m *model, _ scope, row string) tea.Cmd {
	s := m.shown().session(row)
	if s == nil {
		return nil
	}
	return m.push(&document{name: s.Title, row: row, does: activityView{}.actions(scope{}), reload: setOf(activityList), tail: true, load: func(ctx context.Context) (body, error) {
		_, steps, err := m.server.transcript(ctx, row)
		return func(_ *state, width int, now time.Time) []styled { return transcriptLines(steps, width, now) }, err
	}})
}

// activityStep is a call of a session.
type activityStep struct {
	ID       string          `json:"id"`
	Parent   string          `json:"parent"`
	Trace    plain           `json:"trace"`
	At       time.Time       `json:"at"`
	Tool     plain           `json:"tool"`
	Decision plain           `json:"decision"`
	Rule     plain           `json:"rule"`
	Error    plain           `json:"error"`
	Message  plain           `json:"message"`
	Args     json.RawMessage `json:"args"`
	Result   json.RawMessage `json:"result"`
	Took     int64           `json:"took_us"`
	Waited   int64           `json:"waited_us"`
	Job      plain           `json:"job"`
	Approval plain           `json:"approval"`
}

// transcript loads a session with its steps.
func (s *server) transcript(ctx context.Context, id string) (session, []activityStep, error) {
	var one struct {
		Session session
		Steps   []activityStep
	}
	err := s.get(ctx, "/api/v1/activity/"+url.PathEscape(id), &one)
	return one.Session, one.Steps, err
}

// transcriptLines are the steps, each below what called it.
func transcriptLines(steps []activityStep, width int, now time.Time) (all []styled) {
	depth := map[string]int{}
	for i := range steps {
		s := &steps[i]
		if above, inside := depth[s.Parent]; inside {
			depth[s.ID] = above + 1
		} else {
			depth[s.ID] = 0
		}
		all = append(all, s.lines(min(depth[s.ID], deepest), width, now)...)
	}
	return all
}

// lines are what was done and how long it took, then what came of it.
func (s *activityStep) lines(depth, width int, now time.Time) []styled {
	indent := strings.Repeat("  ", depth)
	took := string(short(time.Duration(s.Took-s.Waited) * time.Microsecond))
	if s.Waited > 0 {
		took += ", waited " + string(short(time.Duration(s.Waited)*time.Microsecond))
	}
	words, look := s.words()
	text := fmt.Sprintf("%s  %s%s", clockTime(s.At, now), indent, words)
	all := []styled{{plain(fill(text, max(width-textWidth(took)-1, 0)) + " " + took), look}}
	for _, about := range s.about() {
		all = append(all, styled{plain(cut(strings.Repeat(" ", 10)+indent+string(about), width)), faint})
	}
	return all
}

// words say what was done, and what came of it in one word.
func (s *activityStep) words() (string, style) {
	done := "called " + string(s.Tool)
	switch s.Tool {
	case "search_tools":
		done = "searched " + string(textIn(s.Args, "query"))
	case "get_tool_definitions":
		done = "read definitions"
	case "execute_code", "lua_eval":
		done = "ran a script"
	case "lua_execute":
		done = "started a job"
	}
	switch {
	case s.Decision == "deny" || s.Error == "denied":
		return done + ": denied", red
	case s.Approval != "":
		return done + ": waits for approval, a allows it", yellow
	case s.Decision == "ask":
		return done + ": asked for approval", yellow
	case s.Error != "":
		return done + ": failed", red
	}
	return done, normal
}

// about are what was sent and what came back.
func (s *activityStep) about() (all []plain) {
	if sent := compact(s.Args); sent != "" && s.Tool != "search_tools" {
		all = append(all, "sent "+sent)
	}
	switch came := cmp.Or(s.Message, compact(s.Result)); {
	case came != "" && s.Error+s.Rule != "" && s.Rule != "":
		all = append(all, "got "+came+" ("+s.Rule+")")
	case came != "":
		all = append(all, "got "+came)
	}
	return all
}

// compact is JSON on one line; "" for nothing.
func compact(raw json.RawMessage) plain {
	switch text := strings.Join(strings.Fields(string(raw)), " "); text {
	case "null", "{}":
		return ""
	default:
		return clean(text)
	}
}

// textIn is a text of a JSON object.
func textIn(raw json.RawMessage, name string) plain {
	var object map[string]json.RawMessage
	var text plain
	if json.Unmarshal(raw, &object) == nil && object[name] != nil {
		_ = json.Unmarshal(object[name], &text) // plain takes any JSON
	}
	return text
}

func (activityView) newestFirst() {}

func (activityView) actions(scope) []action {
	return []action{
		{key: "a", does: "allow", do: func(m *model, id string) tea.Cmd { return m.decideIn(id, true) }},
		{key: "d", does: "deny", do: func(m *model, id string) tea.Cmd { return m.decideIn(id, false) }},
		{key: "u", does: "undo", do: (*model).undoIn},
		{key: "t", does: "trace", do: (*model).traceOf},
	}
}

// found is something that was looked for in the steps of a session.
type found struct {
	do   func(m *model) tea.Cmd
	none plain // what is said if there is none
	err  error
}

// inSteps does something with the latest step of a session for which pick returns it.
func (m *model) inSteps(id string, none plain, pick func(*activityStep) func(*model) tea.Cmd) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(m.ctx, actionTimeout)
		defer stop()
		_, steps, err := m.server.transcript(ctx, id)
		for _, s := range slices.Backward(steps) {
			if do := pick(&s); do != nil {
				return found{do: do}
			}
		}
		return found{none: none, err: err}
	}
}

// onFound does what was looked for.
func (m *model) onFound(f found) tea.Cmd {
	switch {
	case f.err != nil:
		m.showError(f.err)
	case f.do == nil:
		m.message = message{f.none, true}
	default:
		return f.do(m)
	}
	return nil
}

// decideIn decides about what a session waits for.
func (m *model) decideIn(id string, allow bool) tea.Cmd {
	return m.inSteps(id, "it waits for no decision", func(s *activityStep) func(*model) tea.Cmd {
		if s.Approval == "" {
			return nil
		}
		asked := string(s.Approval)
		return func(m *model) tea.Cmd {
			show := approvalsView{}.open(m, scope{}, asked)
			if allow {
				return tea.Batch(show, m.allow(asked))
			}
			return tea.Batch(show, m.deny(asked))
		}
	})
}

// traceOf shows the latest trace of a session.
func (m *model) traceOf(id string) tea.Cmd {
	return m.inSteps(id, "its steps have no trace", func(s *activityStep) func(*model) tea.Cmd {
		if s.Trace == "" {
			return nil
		}
		return func(m *model) tea.Cmd { return tracesView{}.open(m, scope{}, string(s.Trace)) }
	})
}

// undoIn undoes a job, or the latest one that a session started.
func (m *model) undoIn(id string) tea.Cmd {
	if s := m.shown().session(id); s != nil && s.job() != "" {
		return m.undoJob(s.job())
	}
	return m.inSteps(id, "it started no job; undo works for jobs", func(s *activityStep) func(*model) tea.Cmd {
		if s.Job == "" {
			return nil
		}
		return func(m *model) tea.Cmd { return m.undoJob(string(s.Job)) }
	})
}

func (activityView) empty(scope) plain {
	return "nothing yet; connect an agent with `luanette install`, and ask it something"
}
func (activityView) needs() lists { return setOf(activityList) }
