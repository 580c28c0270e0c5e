package terminal

import (
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
