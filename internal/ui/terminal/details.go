package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// details is one item in full, shown instead of the panes.
type details struct {
	title  plain
	about  []plain // lines
	job    plain   // id of the job it shows, which is loaded again when it changes
	scroll int
}

// detailsLoaded is the text about a job.
type detailsLoaded struct {
	job   plain
	about []plain
}

// openDetails shows the selected row in full.
func (m *model) openDetails() tea.Cmd {
	if u, ok := m.chosenUpstream(); ok {
		m.showDetails(details{title: "Upstream " + u.Name, about: u.about(m.now())})
		return nil
	}
	if j, ok := m.chosenJob(); ok {
		m.showDetails(details{title: "Job " + j.title(), about: []plain{"…"}, job: j.ID})
		return m.loadJobDetails()
	}
	rows := m.rows(m.focus)
	if len(rows) == 0 {
		return nil
	}
	at := m.panes[m.focus].at(rows)
	switch m.focus {
	case callPane:
		for i := range m.shown().Calls {
			if c := &m.shown().Calls[i]; c.row(m.now()).key == rows[at].key {
				m.showDetails(details{title: "Call of " + c.title(), about: c.about(m.now())})
			}
		}
	case logPane:
		for i := range m.shown().Log {
			if l := &m.shown().Log[i]; l.row(m.now()).key == rows[at].key {
				m.showDetails(details{title: "Log", about: l.about(m.now())})
			}
		}
	}
	return nil
}

func (m *model) showDetails(d details) { m.details, m.mode = d, showingDetails }

// detailsKey scrolls the details, or closes them.
func (m *model) detailsKey(name string) {
	page := max(m.height-3, 1)
	switch name {
	case "esc", "q", "enter", "left", "h":
		m.mode = browsing
	case "down", "j":
		m.details.scroll++
	case "up", "k":
		m.details.scroll--
	case "pgdown", "space", " ", "ctrl+f":
		m.details.scroll += page
	case "pgup", "ctrl+b":
		m.details.scroll -= page
	case "home", "g":
		m.details.scroll = 0
	case "end", "G":
		m.details.scroll = 1 << 30
	}
}

func (d *details) load(l detailsLoaded) {
	if d.job == l.job {
		d.about = l.about
	}
}

// loadJobDetails loads the job that the details show.
func (m *model) loadJobDetails() tea.Cmd {
	id := m.details.job
	if m.mode != showingDetails || id == "" {
		return nil
	}
	return func() tea.Msg {
		var whole struct {
			job
			Result json.RawMessage
		}
		var said struct {
			Lines []struct{ Stream, Level, Text plain }
		}
		ask := map[string]any{"job_id": id}
		if err := m.server.call(m.ctx, "job_status", ask, &whole); err != nil {
			return detailsLoaded{id, lines(err.Error())}
		}
		about := whole.about(m.now())
		if len(whole.Result) > 0 {
			about = append(append(about, "", "Result"), pretty(whole.Result)...)
		}
		about = append(about, "", "Output")
		if err := m.server.call(m.ctx, "job_logs", ask, &said); err != nil {
			return detailsLoaded{id, append(about, clean(err.Error()))}
		}
		for _, l := range said.Lines {
			about = append(about, plain(strings.TrimSpace(string(l.Level+" "+l.Text))))
		}
		return detailsLoaded{id, about}
	}
}

// pretty indents JSON.
func pretty(raw json.RawMessage) []plain {
	var text bytes.Buffer
	if json.Indent(&text, raw, "", "  ") != nil {
		return lines(string(raw))
	}
	return lines(text.String())
}

// field is a line of details, or none if the value is empty or zero.
func field(name plain, value any) []plain {
	text := clean(fmt.Sprint(value))
	if text == "" || text == "0" {
		return nil
	}
	return []plain{plain(fmt.Sprintf("%-10s %s", name, text))}
}

// fields joins lines of details.
func fields(facts ...[]plain) (all []plain) {
	for _, f := range facts {
		all = append(all, f...)
	}
	return all
}

func (u *upstream) about(now time.Time) []plain {
	all := fields(field("state", u.State), field("endpoint", u.Endpoint), field("transport", u.Transport), field("protocol", u.Protocol),
		field("tools", u.Tools), field("calls", u.Calls), field("errors", u.Errors), field("in flight", u.InFlight), field("last tool", u.LastTool))
	if u.P50 > 0 {
		all = append(all, fields(field("p50", ms(u.P50)), field("p99", ms(u.P99)))...)
	}
	if !u.isConnected() {
		all = append(all, fields(field("attempt", u.Attempt), field("error", u.Error))...)
	}
	if !u.isConnected() && u.NextTryMS > 0 {
		all = append(all, field("next try", "in "+short(u.untilRetry(now)))...)
	}
	for _, w := range u.Warnings {
		all = append(all, field("warning", w)...)
	}
	return all
}

func (j *job) about(now time.Time) []plain {
	all := fields(field("id", j.ID), field("status", j.Status), field("script", j.Script), field("creator", j.Creator), field("message", j.Message))
	if len(j.Tags) > 0 {
		all = append(all, field("tags", strings.Join(texts(j.Tags), ", "))...)
	}
	if j.Status == "running" {
		all = append(all, field("progress", bar(j.Progress))...)
	}
	if j.Started > 0 {
		all = append(all, fields(field("started", clockTime(time.UnixMilli(int64(j.Started*1000)), now)), field("took", short(j.took(now))))...)
	}
	if j.Error != nil {
		all = append(all, fields(field("error", j.Error.Message), field("hint", j.Error.Hint))...)
	}
	return all
}

func (c *call) about(now time.Time) []plain {
	state := plain("running")
	if c.Ended {
		state = "ended after " + ms(c.TookMS)
	}
	return fields(field("tool", c.title()), field("started", clockTime(c.Began, now)), field("state", state), field("caller", c.Caller),
		field("depth", c.Depth), field("node", c.Node), field("error type", c.Kind), field("error", c.Error))
}

func (l *line) about(now time.Time) []plain {
	all := fields(field("time", clockTime(l.Time, now)), field("level", l.Level), field("node", l.Node), []plain{"", l.Text, ""})
	return append(all, l.Facts...)
}
