package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// paneID identifies one of the four panes.
type paneID int

const (
	upstreamPane paneID = iota
	jobPane
	callPane
	logPane
	paneCount
)

var paneNames = [paneCount]plain{"Upstreams", "Jobs", "Calls", "Log"}

// pane is the selected row and the filter of a pane.
type pane struct {
	chosen string // key of a row; "" is the first row
	filter plain
}

// at is the index of the selected row.
func (p *pane) at(rows []row) int {
	for i := range rows {
		if rows[i].key == p.chosen {
			return i
		}
	}
	return 0
}

// row is one row of a pane.
type row struct {
	key   string
	cells []cell
}

// cell is one value of a row.
type cell struct {
	text  plain
	style style
}

// style is the look of a text.
type style int

const (
	normal style = iota
	faint
	green
	red
	yellow
	bold
)

// column is a column of a pane. Its title is part of the pane's title line.
type column struct {
	title plain
	width int  // 0 takes the remaining width
	right bool // aligned right, for numbers
	from  int  // minimum width of the pane for this column
}

// columns of each pane; the pane's name is the title of the first.
var columns = [paneCount][]column{
	upstreamPane: {{width: 20}, {title: "state", width: 12}, {title: "tools", width: 5, right: true, from: 44}, {title: "calls", width: 6, right: true, from: 60},
		{title: "errors", width: 6, right: true, from: 60}, {title: "p50", width: 7, right: true, from: 70}, {title: "last", from: 50}},
	jobPane:  {{width: 26}, {title: "status", width: 9}, {title: "progress", width: 15, from: 62}, {title: "took", width: 7, right: true, from: 50}, {title: "message", from: 50}},
	callPane: {{width: 8}, {title: "tool", width: 34}, {title: "took", width: 7, right: true}, {title: "result", from: 64}},
	logPane:  {{width: 8}, {title: "", width: 5}, {title: ""}},
}

// rows are the rows of a pane that match its filter.
func (m *model) rows(id paneID) []row {
	rows := m.shown().rows(id, m.now())
	filter := strings.ToLower(string(m.panes[id].filter))
	if filter == "" {
		return rows
	}
	fit := rows[:0]
	for _, r := range rows {
		if r.contains(filter) {
			fit = append(fit, r)
		}
	}
	return fit
}

func (r *row) contains(text string) bool {
	for _, c := range r.cells {
		if strings.Contains(strings.ToLower(string(c.text)), text) {
			return true
		}
	}
	return false
}

// rows are all rows of a pane; calls and lines are newest first.
func (b *state) rows(id paneID, now time.Time) []row {
	var rows []row
	switch id {
	case upstreamPane:
		for i := range b.Upstreams {
			rows = append(rows, b.Upstreams[i].row(now))
		}
	case jobPane:
		for i := range b.Jobs {
			rows = append(rows, b.Jobs[i].row(now))
		}
	case callPane:
		for i := len(b.Calls) - 1; i >= max(0, len(b.Calls)-maxCalls); i-- {
			rows = append(rows, b.Calls[i].row(now))
		}
	case logPane:
		for i := len(b.Log) - 1; i >= max(0, len(b.Log)-maxLines); i-- {
			rows = append(rows, b.Log[i].row(now))
		}
	}
	return rows
}

func (u *upstream) row(now time.Time) row {
	state, note := cell{u.State, red}, cell{u.LastTool, faint}
	switch u.State {
	case "connected":
		state.style = green
	case "asleep", "connecting":
		state.style = faint
	case "removed":
		state.style = yellow
	}
	switch {
	case !u.isConnected() && u.NextTryMS > 0:
		note = cell{plain(fmt.Sprintf("attempt %d in %s: %s", u.Attempt+1, short(u.untilRetry(now)), u.Error)), red}
	case u.isRemoved():
		note = cell{"removed but still configured: r restores it", yellow}
	case !u.isConnected() && u.Error != "":
		note = cell{u.Error, red}
	case len(u.Warnings) > 0:
		note = cell{u.Warnings[0], yellow}
	}
	tools := number(u.Tools)
	if u.Stale {
		tools.style = faint
	}
	errors := number(u.Errors)
	if u.Errors > 0 {
		errors.style = red
	}
	p50 := cell{"", faint}
	if u.P50 > 0 {
		p50.text = ms(u.P50)
	}
	return row{string(u.Name), []cell{{u.Name, bold}, state, tools, number(u.Calls), errors, p50, note}}
}

func (j *job) row(now time.Time) row {
	styles := map[plain]style{"complete": green, "failed": red, "cancelled": yellow, "waiting": yellow}
	note := cell{j.Message, faint}
	if j.Error != nil {
		note = cell{j.Error.Message, red}
	}
	progress, took := cell{"", normal}, cell{"", faint}
	if j.Status == "running" {
		progress.text = bar(j.Progress)
	}
	if j.Started > 0 {
		took.text = short(j.took(now))
	}
	return row{string(j.ID), []cell{{j.title(), bold}, {j.Status, styles[j.Status]}, progress, took, note}}
}

func (c *call) row(now time.Time) row {
	took, result := cell{ms(c.TookMS), faint}, cell{"ok", green}
	switch {
	case !c.Ended:
		took.text, result = short(now.Sub(c.Began)), cell{"running", yellow}
	case c.Kind != "":
		result = cell{c.Kind + ": " + c.Error, red}
	}
	key := strconv.FormatUint(c.Number, 10) + string(at(c.Node)) + " " + c.Began.String()
	return row{key, []cell{{clockTime(c.Began, now), faint}, {c.title() + at(c.Node), normal}, took, result}}
}

func (l *line) row(now time.Time) row {
	styles := map[plain]style{levelGood: green, levelBad: red, "WARN": yellow, "ERROR": red}
	key := strconv.FormatUint(l.seq, 10) + " " + l.Time.String()
	level := l.Level
	if level == levelInfo {
		level = "info"
	}
	return row{key, []cell{{clockTime(l.Time, now), faint}, {level, styles[l.Level]}, {l.Text + at(l.Node), normal}}}
}

func number(n int) cell { return cell{plain(strconv.Itoa(n)), normal} }

// clockTime is the time of day in the user's time zone.
func clockTime(t, now time.Time) plain { return plain(t.In(now.Location()).Format(time.TimeOnly)) }

// ms formats milliseconds.
func ms(n float64) plain { return short(time.Duration(n * float64(time.Millisecond))) }

// short formats a duration in at most seven characters.
func short(d time.Duration) plain {
	switch {
	case d < time.Millisecond:
		return plain(fmt.Sprintf("%d µs", d.Microseconds()))
	case d < 10*time.Millisecond:
		return plain(fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)))
	case d < time.Second:
		return plain(fmt.Sprintf("%d ms", d.Milliseconds()))
	case d < 10*time.Second:
		return plain(fmt.Sprintf("%.1f s", d.Seconds()))
	case d < 100*time.Second:
		return plain(fmt.Sprintf("%.0f s", d.Seconds()))
	case d < time.Hour:
		return plain(fmt.Sprintf("%.0f min", d.Minutes()))
	default:
		return plain(fmt.Sprintf("%.0f h", d.Hours()))
	}
}

// bar draws a fraction as a bar with its percentage.
func bar(share float64) plain {
	const width = 10
	share = min(max(share, 0), 1)
	full := int(share*width + 0.5)
	return plain(fmt.Sprintf("%s%s %3.0f%%", strings.Repeat("█", full), strings.Repeat("░", width-full), share*100))
}

func (m *model) chosenKey(id paneID) (string, bool) {
	if m.focus != id {
		return "", false
	}
	rows := m.rows(id)
	if len(rows) == 0 {
		return "", false
	}
	return rows[m.panes[id].at(rows)].key, true
}

func (m *model) chosenUpstream() (*upstream, bool) {
	key, ok := m.chosenKey(upstreamPane)
	for i := range m.shown().Upstreams {
		if u := &m.shown().Upstreams[i]; ok && string(u.Name) == key {
			return u, true
		}
	}
	return nil, false
}

func (m *model) chosenJob() (*job, bool) {
	key, ok := m.chosenKey(jobPane)
	for i := range m.shown().Jobs {
		if j := &m.shown().Jobs[i]; ok && string(j.ID) == key {
			return j, true
		}
	}
	return nil, false
}
