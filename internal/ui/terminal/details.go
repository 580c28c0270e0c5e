package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// details is one thing, whole, over all the panes.
type details struct {
	title  plain
	about  []plain // lines
	job    plain   // id of the job it is about, to be read again as it goes on
	scroll int
}

// detailsLoaded is what the server says about a job.
type detailsLoaded struct {
	job   plain
	about []plain
}

// open shows the chosen row whole.
func (m *model) open() tea.Cmd {
	if u, ok := m.chosenUpstream(); ok {
		m.read(details{title: "Upstream " + u.Name, about: u.about(m.now())})
		return nil
	}
	if j, ok := m.chosenJob(); ok {
		m.read(details{title: "Job " + j.called(), about: []plain{"…"}, job: j.ID})
		return m.reread()
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
				m.read(details{title: "Call of " + c.called(), about: c.about(m.now())})
			}
		}
	case logPane:
		for i := range m.shown().Log {
			if l := &m.shown().Log[i]; l.row(m.now()).key == rows[at].key {
				m.read(details{title: "Log", about: l.about(m.now())})
			}
		}
	}
	return nil
}

func (m *model) read(d details) { m.details, m.mode = d, reading }

// readKey moves through the details, or closes them.
func (m *model) readKey(name string) {
	page := max(m.height-3, 1)
	switch name {
	case "esc", "q", "enter", "left", "h":
		m.mode = watching
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

// reread asks for the job that is looked at.
func (m *model) reread() tea.Cmd {
	id := m.details.job
	if m.mode != reading || id == "" {
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

// pretty is JSON on several lines.
func pretty(raw json.RawMessage) []plain {
	var text bytes.Buffer
	if json.Indent(&text, raw, "", "  ") != nil {
		return lines(string(raw))
	}
	return lines(text.String())
}

// fact is a line of details; nothing when there is nothing to say.
func fact(name plain, value any) []plain {
	text := clean(fmt.Sprint(value))
	if text == "" || text == "0" {
		return nil
	}
	return []plain{plain(fmt.Sprintf("%-10s %s", name, text))}
}

// sheet is many facts.
func sheet(facts ...[]plain) (all []plain) {
	for _, f := range facts {
		all = append(all, f...)
	}
	return all
}

func (u *upstream) about(now time.Time) []plain {
	all := sheet(fact("state", u.State), fact("endpoint", u.Endpoint), fact("transport", u.Transport), fact("protocol", u.Protocol),
		fact("tools", u.Tools), fact("calls", u.Calls), fact("errors", u.Errors), fact("under way", u.InFlight), fact("last tool", u.LastTool))
	if u.P50 > 0 {
		all = append(all, sheet(fact("half in", ms(u.P50)), fact("99 % in", ms(u.P99)))...)
	}
	if !u.connected() {
		all = append(all, sheet(fact("attempt", u.Attempt), fact("error", u.Error))...)
	}
	if !u.connected() && u.NextTryMS > 0 {
		all = append(all, fact("next try", "in "+short(u.due(now)))...)
	}
	for _, w := range u.Warnings {
		all = append(all, fact("warning", w)...)
	}
	return all
}

func (j *job) about(now time.Time) []plain {
	all := sheet(fact("id", j.ID), fact("status", j.Status), fact("script", j.Script), fact("creator", j.Creator), fact("says", j.Message))
	if len(j.Tags) > 0 {
		all = append(all, fact("tags", strings.Join(texts(j.Tags), ", "))...)
	}
	if j.Status == "running" {
		all = append(all, fact("progress", bar(j.Progress))...)
	}
	if j.Started > 0 {
		all = append(all, sheet(fact("started", hour(time.UnixMilli(int64(j.Started*1000)), now)), fact("took", short(j.took(now))))...)
	}
	if j.Error != nil {
		all = append(all, sheet(fact("error", j.Error.Message), fact("hint", j.Error.Hint))...)
	}
	return all
}

func (c *call) about(now time.Time) []plain {
	state := plain("under way")
	if c.Ended {
		state = "ended after " + ms(c.TookMS)
	}
	return sheet(fact("tool", c.called()), fact("began", hour(c.Began, now)), fact("state", state), fact("caller", c.Caller),
		fact("depth", c.Depth), fact("node", c.Node), fact("failed", c.Kind), fact("error", c.Error))
}

func (l *line) about(now time.Time) []plain {
	all := sheet(fact("time", hour(l.Time, now)), fact("level", l.Level), fact("node", l.Node), []plain{"", l.Text, ""})
	return append(all, l.Facts...)
}
