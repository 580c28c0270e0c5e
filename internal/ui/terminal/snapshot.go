package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// snapshotRows is how many jobs, calls and lines a snapshot has.
const snapshotRows = 20

// snapshot writes the state as text without colours. A width above 0 truncates lines.
func snapshot(s *server, b *state, now time.Time, width int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Luanette at %s: %s, %s, %s\n", s.address(),
		counted(len(b.Upstreams), "server", "servers"), counted(len(b.Jobs), "job", "jobs"),
		counted(b.Approvals, "pending approval", "pending approvals"))
	if note := b.restartNote(); note != "" {
		text.WriteString(note + "\n")
	}
	for _, v := range snapshotViews() {
		rows := v.rows(b, scope{}, now)
		if v.name() != "servers" {
			rows = rows[:min(len(rows), snapshotRows)]
		}
		switch {
		case len(rows) > 0:
			text.WriteString("\n")
			writeRows(&text, titled(v), rows, width)
		case v.name() != "nodes":
			fmt.Fprintf(&text, "\n%s\n  none\n", viewTitle(v))
		}
	}
	return text.String()
}

// snapshotViews are the parts of a snapshot.
func snapshotViews() []view { return append(overviewViews(), nodesView{}) }

// titled are the columns of a view; the first has the view's name.
func titled(v view) []column {
	cols := v.columns()
	for i := range cols {
		cols[i].title = plain(strings.ToLower(string(cols[i].title)))
	}
	cols[0].title = viewTitle(v)
	return cols
}

// writeRows writes rows under their titles, in columns as wide as their contents.
func writeRows(text *strings.Builder, cols []column, rows []row, width int) {
	const most = 60
	widths := make([]int, len(cols))
	for _, r := range rows {
		for i, c := range r.cells {
			widths[i] = max(widths[i], min(ansi.StringWidth(string(c.text)), most))
		}
	}
	titles := row{}
	for i, c := range cols {
		titles.cells = append(titles.cells, cell{text: c.title})
		if widths[i] > 0 { // empty columns are left out
			widths[i] = max(widths[i], ansi.StringWidth(string(c.title)))
		}
	}
	for _, r := range append([]row{titles}, rows...) {
		text.WriteString(alignColumns(r.cells, cols, widths, width) + "\n")
	}
}

// alignColumns writes cells in columns; the last one is not padded.
func alignColumns(cells []cell, cols []column, widths []int, width int) string {
	var row strings.Builder
	for i, c := range cells {
		switch last := i == len(cells)-1; {
		case widths[i] == 0:
			continue
		case last:
			row.WriteString(string(c.text))
		case cols[i].right:
			shown := cut(string(c.text), widths[i])
			row.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(shown)) + shown + "  ")
		default:
			row.WriteString(fill(string(c.text), widths[i]) + "  ")
		}
	}
	shown := strings.TrimRight(row.String(), " ")
	if width > 0 {
		shown = cut(shown, width)
	}
	return shown
}
