package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// job is a job as job_list returns it. Times are seconds since 1970.
type job struct {
	ID        plain   `json:"job_id"`
	Status    plain   `json:"status"`
	Name      plain   `json:"name,omitempty"`
	Creator   plain   `json:"creator,omitempty"`
	Script    plain   `json:"script_hash,omitempty"`
	Tags      []plain `json:"tags,omitempty"`
	Created   float64 `json:"created_at"`
	Started   float64 `json:"started_at,omitempty"`
	Completed float64 `json:"completed_at,omitempty"`
	Progress  float64 `json:"progress"`
	Message   plain   `json:"message,omitempty"`
	Trace     plain   `json:"trace_id,omitempty"`
	Error     *struct {
		Code    plain `json:"code"`
		Message plain `json:"message"`
		Hint    plain `json:"hint,omitempty"`
	} `json:"error,omitempty"`
}

func loadJobs(ctx context.Context, s *server, _ time.Time) (store, error) {
	var response struct{ Jobs []job }
	err := s.call(ctx, "job_list", map[string]any{"limit": 200}, &response)
	return func(b *state) { b.Jobs = response.Jobs }, err
}

func (j *job) title() plain { return cmp.Or(j.Name, namelessScript) }

// namelessScript stands for a script that nobody gave a name.
const namelessScript = plain("a script without a name")

func (j *job) active() bool {
	return j.Status == pending || j.Status == "running" || j.Status == "waiting"
}

// took is how long the job ran, or has been running.
func (j *job) took(now time.Time) time.Duration {
	if j.Started == 0 {
		return 0
	}
	end := float64(now.UnixMilli()) / 1000
	if j.Completed > 0 {
		end = j.Completed
	}
	return time.Duration(max(end-j.Started, 0) * float64(time.Second))
}

// jobsView lists jobs, the newest first.
type jobsView struct{}

func (jobsView) name() string { return "jobs" }

func (jobsView) columns() []column {
	return []column{
		{title: "Name", width: 22},
		{title: "Status", width: 9},
		{title: "Progress", width: 15, from: 76},
		{title: "Duration", width: 9, right: true, from: 50},
		{title: "Created", width: 8, from: 100},
		{title: "By", width: 12, from: 120},
		{title: "message", from: 50},
	}
}

func (jobsView) rows(b *state, _ scope, now time.Time) (rows []row) {
	colours := map[plain]style{"complete": green, "failed": red, "cancelled": yellow, "waiting": yellow}
	for i := range b.Jobs {
		j := &b.Jobs[i]
		note := cell{text: j.Message, style: faint}
		switch {
		case j.Error != nil:
			note = cell{text: j.Error.Message, style: red}
		case j.Status == "waiting":
			note = cell{text: "waits for approval: press 4", style: yellow}
		}
		progress := cell{order: j.Progress}
		if j.Status == "running" {
			progress.text = progressBar(j.Progress)
		}
		rows = append(rows, row{string(j.ID), []cell{
			{text: j.title(), style: bold}, {text: j.Status, style: colours[j.Status]}, progress, lasting(j.took(now)), moment(seconds(j.Created), now), {text: j.Creator, style: faint}, note,
		}})
	}
	return rows
}

func (b *state) job(id string) *job {
	for i := range b.Jobs {
		if string(b.Jobs[i].ID) == id {
			return &b.Jobs[i]
		}
	}
	return nil
}

// open shows the job with its result, steps and output, updated while it runs.
func (jobsView) open(m *model, _ scope, row string) tea.Cmd {
	j := m.shown().job(row)
	if j == nil {
		return nil
	}
	return m.push(&document{name: j.title(), row: row, does: jobsView{}.actions(scope{}), reload: setOf(jobList), load: func(ctx context.Context) (body, error) {
		return m.server.jobText(ctx, row)
	}})
}

// jobText writes a job.
func (s *server) jobText(ctx context.Context, id string) (body, error) {
	var whole struct {
		job
		Result json.RawMessage
	}
	ask := map[string]any{"job_id": id}
	if err := s.call(ctx, "job_status", ask, &whole); err != nil {
		return nil, err
	}
	steps, err := s.steps(ctx, id)
	if err != nil {
		return nil, err
	}
	output, err := s.output(ctx, id)
	if err != nil {
		return nil, err
	}
	return func(b *state, width int, now time.Time) []styled {
		if newer := b.job(id); newer != nil && newer.active() {
			whole.Progress, whole.Message = newer.Progress, newer.Message
		}
		all := whole.facts(now)
		if len(whole.Result) > 0 {
			all = slices.Concat(all, heading("Result"), pretty(whole.Result))
		}
		if len(steps) > 0 {
			all = slices.Concat(all, heading("Steps"), waterfall(whole.bars(steps, now), width))
		}
		return slices.Concat(all, heading("Output"), output)
	}, nil
}

func (j *job) facts(now time.Time) []styled {
	all := slices.Concat(field("status", j.Status), field("creator", j.Creator), field("tags", strings.Join(texts(j.Tags), ", ")), field("message", j.Message))
	if j.Status == "running" {
		all = append(all, field("progress", progressBar(j.Progress))...)
	}
	if j.Started > 0 {
		all = slices.Concat(all, field("started", clockTime(seconds(j.Started), now)), field("duration", short(j.took(now))))
	}
	if j.Error != nil {
		all = slices.Concat(all, coloured(field("error", j.Error.Message), red), field("hint", j.Error.Hint))
	}
	return slices.Concat(all, field("id", j.ID), field("script", j.Script))
}

// journalStep is an effect of a job as job_journal returns it.
type journalStep struct {
	Effect plain
	Call   plain
	Time   float64
	Done   bool
	Error  plain
}

func (s *server) steps(ctx context.Context, id string) ([]journalStep, error) {
	var response struct{ Steps []journalStep }
	err := s.call(ctx, "job_journal", map[string]any{"job_id": id, "limit": 1000}, &response)
	return response.Steps, err
}

// isInternal reports whether the engine recorded the step for itself.
func (s *journalStep) isInternal() bool { return s.Effect == "mcp.has" || s.Effect == "random.seed" }

// bars are the steps of the job. Each begins at the end of the one before; those that
// the engine recorded for itself are one line.
func (j *job) bars(steps []journalStep, now time.Time) (all []timeBar) {
	begin, hidden := seconds(cmp.Or(j.Started, j.Created)), 0
	end := now
	if j.Completed > 0 {
		end = seconds(j.Completed)
	}
	total, before := end.Sub(begin), begin
	for i := range steps {
		s := &steps[i]
		if s.isInternal() && s.Error == "" {
			hidden++
			continue
		}
		ended := seconds(s.Time)
		all = append(all, timeBar{label: s.Call, from: before.Sub(begin), took: max(ended.Sub(before), 0), total: total, problem: s.Error, running: !s.Done})
		before = ended
	}
	if hidden > 0 {
		all = append(all, timeBar{label: plain("and " + counted(hidden, "internal step", "internal steps")), note: true})
	}
	return all
}

// output is what the job printed.
func (s *server) output(ctx context.Context, id string) ([]styled, error) {
	var said struct {
		Lines []struct{ Stream, Level, Text plain }
	}
	if err := s.call(ctx, "job_logs", map[string]any{"job_id": id}, &said); err != nil {
		return nil, err
	}
	all := []styled{}
	for _, l := range said.Lines {
		all = append(all, styled{plain(strings.TrimSpace(string(l.Level + " " + l.Text))), normal})
	}
	if len(all) == 0 {
		all = []styled{{"nothing", faint}}
	}
	return all, nil
}

func (jobsView) actions(scope) []action {
	return []action{{key: "l", does: "output", do: (*model).showOutput}, {key: "t", does: "trace", do: (*model).jobTrace}, {key: "c", does: "cancel", do: (*model).cancelJob}, {key: "u", does: "undo", do: (*model).undoJob}}
}

// showOutput follows what a job prints.
func (m *model) showOutput(id string) tea.Cmd {
	j := m.shown().job(id)
	if j == nil {
		return nil
	}
	return m.push(&document{name: "output of " + j.title(), row: id, tail: true, follow: true, reload: setOf(jobList), load: func(ctx context.Context) (body, error) {
		output, err := m.server.output(ctx, id)
		return fixed(output), err
	}})
}

// jobTrace shows the trace of a job.
func (m *model) jobTrace(id string) tea.Cmd {
	j := m.shown().job(id)
	switch {
	case j == nil:
		return nil
	case j.Trace == "":
		m.message = message{j.title() + " has no trace yet: it has not started", true}
		return nil
	}
	return tracesView{}.open(m, scope{}, string(j.Trace))
}

// cancelJob asks before it cancels a job.
func (m *model) cancelJob(id string) tea.Cmd {
	j := m.shown().job(id)
	switch {
	case j == nil:
	case !j.active():
		m.message = message{j.title() + " is already " + j.Status, true}
	default:
		m.confirm("Cancel "+j.title()+"? It stops after its current step.", choice{"y", "yes", m.callTool("job_cancel", map[string]any{"job_id": id}, j.title()+" cancelled")})
	}
	return nil
}

func (jobsView) empty(scope) plain { return "none; start one with `luanette job start HASH`" }
func (jobsView) needs() lists      { return lists{} }
