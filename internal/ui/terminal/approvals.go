package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// approval is a script's request as approval_list returns it.
type approval struct {
	ID       plain     `json:"approval_id"`
	Status   plain     `json:"status"`
	Subject  plain     `json:"subject"`
	Script   plain     `json:"script"`
	Hash     plain     `json:"script_hash"`
	Job      plain     `json:"job_id"`
	Complete bool      `json:"complete"`
	Why      plain     `json:"incomplete"` // why it is not
	Digest   plain     `json:"plan_digest"`
	Created  time.Time `json:"created_at"`
	Expires  time.Time `json:"expires_at"`
	By       plain     `json:"decided_by"`
	Plan     []step    `json:"plan"`
	Output   []struct{ Text plain }
}

// step is an effect of a plan.
type step struct {
	Number    int
	Effect    plain
	Action    plain
	Arguments map[string]json.RawMessage
	Diff      string // of the file that it changes
	Unread    plain  // why there is none, although a tool changes a file
	Uncertain bool
}

func (s *step) title() plain { return cmp.Or(s.Action, s.Effect) }

const pending = plain("pending")

// loadApprovals loads requests of scripts, those that wait first, and definitions that
// await review.
func loadApprovals(ctx context.Context, s *server, _ time.Time) (store, error) {
	var response struct{ Approvals []approval }
	if err := s.call(ctx, "approval_list", map[string]any{"status": "any", "limit": 200}, &response); err != nil {
		return nil, err
	}
	pins, err := s.pins(ctx)
	slices.SortStableFunc(response.Approvals, func(a, b approval) int { return cmp.Compare(rank(a.Status), rank(b.Status)) })
	waiting := len(pins)
	for i := range response.Approvals {
		waiting += 1 - rank(response.Approvals[i].Status)
	}
	return func(b *state) { b.requests, b.pins, b.Approvals = response.Approvals, pins, waiting }, err
}

// rank is 0 for what waits for a decision, and 1 for what is decided.
func rank(status plain) int {
	if status == pending {
		return 0
	}
	return 1
}

// approvalsView lists what waits for a decision, then the decisions.
type approvalsView struct{}

func (approvalsView) name() string { return "approvals" }

func (approvalsView) columns() []column {
	return []column{
		{title: "Status", width: 9},
		{title: "What", width: 26},
		{title: "Requested", width: 10},
		{title: "By", width: 16, from: 90},
		{title: "plan", from: 56},
	}
}

func (approvalsView) rows(b *state, _ scope, now time.Time) (rows []row) {
	for i := range b.pins {
		rows = append(rows, b.pins[i].row(now))
	}
	for i := range b.requests {
		rows = append(rows, b.requests[i].row(now))
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.cells[0].order, b.cells[0].order) })
	return rows
}

func (a *approval) row(now time.Time) row {
	colours := map[plain]style{pending: yellow, "allowed": green, "denied": red}
	return row{string(a.ID), []cell{
		{a.Status, colours[a.Status], float64(rank(a.Status))}, {text: a.Subject, style: bold}, moment(a.Created, now), {text: a.asker(), style: faint}, {text: a.planned()},
	}}
}

// asker is the script or the job that asks.
func (a *approval) asker() plain {
	if a.Script == "job "+a.Job {
		return namelessScript
	}
	return a.Script
}

// beginning is the part of an id that people read.
func beginning(id plain) plain {
	const most = 8
	if len(id) > most {
		return id[:most]
	}
	return id
}

// planned names the effects of the plan.
func (a *approval) planned() plain {
	titles := make([]string, len(a.Plan))
	for i := range a.Plan {
		titles[i] = string(a.Plan[i].title())
	}
	return plain(strings.Join(titles, ", "))
}

func (b *state) approval(id string) *approval {
	for i := range b.requests {
		if string(b.requests[i].ID) == id {
			return &b.requests[i]
		}
	}
	return nil
}

// open shows the plan, or the definition.
func (approvalsView) open(m *model, _ scope, row string) tea.Cmd {
	if p := m.shown().pin(row); p != nil {
		return m.push(&document{name: p.title(), row: row, does: approvalsView{}.actions(scope{}), reload: setOf(approvalList),
			load: func(ctx context.Context) (body, error) { return m.server.pinText(ctx, row) }})
	}
	a := m.shown().approval(row)
	if a == nil {
		return nil
	}
	return m.push(&document{name: a.Subject, row: row, does: approvalsView{}.actions(scope{}), body: func(b *state, _ int, now time.Time) []styled {
		if a := b.approval(row); a != nil {
			return a.text(now)
		}
		return []styled{{"This request is no longer stored.", yellow}}
	}})
}

// text is the request with its plan.
func (a *approval) text(now time.Time) []styled {
	all := slices.Concat(field("status", a.Status), field("decided by", a.By), field("asked by", a.asker()), field("script", a.Hash),
		field("requested", clockTime(a.Created, now)), field("id", a.ID))
	if a.Status == pending {
		all = append(all, field("expires", a.Expires.In(now.Location()).Format(time.DateTime)+", then it is denied")...)
	}
	all = append(all, heading("Plan")...)
	for i := range a.Plan {
		all = append(all, a.Plan[i].text()...)
	}
	if !a.Complete {
		all = append(all, styled{}, styled{"The plan is incomplete: " + cmp.Or(a.Why, "the preview did not reach the end of the script") + ".", yellow})
	}
	if len(a.Output) > 0 {
		all = append(all, heading("Output so far")...)
	}
	for _, l := range a.Output {
		all = append(all, styled{"  " + l.Text, normal})
	}
	return all
}

// text is the step with its arguments and the difference of its file.
func (s *step) text() []styled {
	title := plain(fmt.Sprintf("%d  %s", s.Number, s.title()))
	if s.Uncertain {
		title += " (depends on a mocked result)"
	}
	all := []styled{{title, bold}}
	for _, name := range slices.Sorted(maps.Keys(s.Arguments)) {
		value := pretty(s.Arguments[name])
		value[0].text = clean(name) + ": " + value[0].text
		all = append(all, indented(value)...)
	}
	if s.Unread != "" {
		all = append(all, styled{"  what the file has now is not shown: " + s.Unread, yellow})
	}
	return append(all, indented(diffLines(s.Diff))...)
}

// diffLines colours a unified difference.
func diffLines(text string) (all []styled) {
	if text == "" {
		return nil
	}
	for _, l := range lines(text) {
		style := normal
		switch {
		case strings.HasPrefix(string(l), "+++"), strings.HasPrefix(string(l), "---"), strings.HasPrefix(string(l), "@@"):
			style = faint
		case strings.HasPrefix(string(l), "+"):
			style = green
		case strings.HasPrefix(string(l), "-"):
			style = red
		}
		all = append(all, styled{l, style})
	}
	return all
}

func (approvalsView) actions(scope) []action {
	return []action{{key: "a", does: "allow", do: (*model).allow}, {key: "d", does: "deny", do: (*model).deny}}
}

// allow asks before it allows what a script plans, or approves a definition.
func (m *model) allow(id string) tea.Cmd {
	if p := m.shown().pin(id); p != nil {
		return m.askAbout(id, "Approve "+p.title()+"? It can then be called.", choice{"y", "approve", m.decidePin(p, "approve")})
	}
	a := m.waitingApproval(id)
	if a == nil {
		return nil
	}
	question := plain("Allow "+counted(len(a.Plan), "effect", "effects")) + ": " + a.planned() + "?"
	return m.askAbout(id, question, choice{"y", "once", m.decide(a, "allow", "")}, choice{"t", "always for this tool", m.decide(a, "allow", "tool")})
}

// deny asks before it denies what a script plans, or refuses a definition.
func (m *model) deny(id string) tea.Cmd {
	if p := m.shown().pin(id); p != nil {
		return m.askAbout(id, "Refuse "+p.title()+"? It cannot be called.", choice{"y", "refuse", m.decidePin(p, "refuse")})
	}
	a := m.waitingApproval(id)
	if a == nil {
		return nil
	}
	return m.askAbout(id, "Deny "+a.Subject+"? The script continues without it.",
		choice{"y", "once", m.decide(a, "deny", "")}, choice{"t", "always for this tool", m.decide(a, "deny", "tool")})
}

// waitingApproval finds a request that is not decided yet. Otherwise it says so.
func (m *model) waitingApproval(id string) *approval {
	a := m.shown().approval(id)
	if a != nil && a.Status != pending {
		m.message = message{a.Subject + " is already " + a.Status, true}
		return nil
	}
	return a
}

// askAbout shows the request in full and asks about it.
func (m *model) askAbout(id string, question plain, choices ...choice) tea.Cmd {
	var open tea.Cmd
	if _, shown := m.page().(*document); !shown {
		open = approvalsView{}.open(m, scope{}, id)
	}
	m.confirm(question, choices...)
	return open
}

// decide decides about the plan that is shown. If it has changed, the error says so, and the
// new one is shown when the lists are loaded again.
func (m *model) decide(a *approval, decision, remember string) tea.Cmd {
	args := map[string]any{"approval_id": a.ID, "decision": decision, "plan": a.Digest}
	if remember != "" {
		args["remember"] = remember
	}
	done := map[string]plain{"allow": "allowed", "deny": "denied"}
	return m.callTool("approval_decide", args, a.Subject+" "+done[decision])
}

func (approvalsView) empty(scope) plain {
	return "nothing to decide; with approve = \"writes\" scripts ask before they change something"
}
func (approvalsView) needs() lists { return lists{} }
