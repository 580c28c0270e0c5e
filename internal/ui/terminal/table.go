package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// view is a kind of table: what its rows are, and what can be done with them.
type view interface {
	name() string // its command
	columns() []column
	rows(b *state, of scope, now time.Time) []row
	open(m *model, of scope, row string) tea.Cmd // Enter
	actions(of scope) []action
	empty(of scope) plain // shown if there are no rows
	needs() lists
}

// newestFirst is a view whose first row stays selected when newer ones come.
type newestFirst interface{ newestFirst() }

// headed is a view that says something above its rows.
type headed interface {
	head(b *state, of scope, now time.Time) []styled
}

// scope limits the rows of a view.
type scope struct {
	server plain // only of this server
	tool   plain // only of this tool, by its full name
	all    bool  // also what is hidden otherwise
}

func (s scope) title() plain { return cmp.Or(s.tool, s.server) }

// row is one row of a table.
type row struct {
	key   string // stays the same while values change
	cells []cell
}

// cell is one value of a row.
type cell struct {
	text  plain
	style style
	order float64 // rows are sorted by this, then by the text
}

// table is a page with the rows of a view.
type table struct {
	view   view
	of     scope
	name   plain  // its breadcrumb, if it is not that of the view or the scope
	chosen string // key of a row; "" is the first row
	index  int    // of the chosen row when it was last seen
	first  int    // row at the top
	filter plain
	sorted int // number of the column, from 1; 0 is the order of the view
	down   bool
}

func (t *table) title() plain { return cmp.Or(t.name, t.of.title(), viewTitle(t.view)) }

// viewTitle is the name of a view with a capital.
func viewTitle(v view) plain { return plain(strings.ToUpper(v.name()[:1]) + v.name()[1:]) }

func (t *table) filterText() *plain { return &t.filter }
func (t *table) actions() []action  { return t.view.actions(t.of) }
func (t *table) needs() lists       { return t.view.needs() }

// rows are the rows that match the filter, sorted.
func (t *table) rows(m *model) []row {
	rows := t.view.rows(m.shown(), t.of, m.now())
	if t.filter != "" {
		rows = slices.DeleteFunc(rows, func(r row) bool { return !matches(string(t.filter), r.text()) })
	}
	if t.sorted > 0 {
		slices.SortStableFunc(rows, t.compare)
	}
	return rows
}

func (t *table) compare(a, b row) int {
	x, y := a.cells[t.sorted-1], b.cells[t.sorted-1]
	order := cmp.Or(cmp.Compare(x.order, y.order), strings.Compare(strings.ToLower(string(x.text)), strings.ToLower(string(y.text))))
	if t.down {
		return -order
	}
	return order
}

// text is all that a filter looks at.
func (r *row) text() string {
	texts := make([]string, len(r.cells))
	for i, c := range r.cells {
		texts[i] = string(c.text)
	}
	return strings.Join(texts, " ")
}

// at is the index of the chosen row. If that row is gone, it is the one in its place.
func (t *table) at(rows []row) int {
	at := 0
	if t.chosen != "" {
		at = slices.IndexFunc(rows, func(r row) bool { return r.key == t.chosen })
	}
	if at < 0 {
		at = max(min(t.index, len(rows)-1), 0)
	}
	t.index = at
	return at
}

// choose selects the row with an index.
func (t *table) choose(rows []row, at int) {
	if len(rows) == 0 {
		return
	}
	at = min(max(at, 0), len(rows)-1)
	t.chosen, t.index = rows[at].key, at
	if _, ok := t.view.(newestFirst); ok && at == 0 {
		t.chosen = ""
	}
}

// selected is the key of the chosen row; not ok if there are no rows.
func (t *table) selected(m *model) (string, bool) {
	rows := t.rows(m)
	if len(rows) == 0 {
		return "", false
	}
	return rows[t.at(rows)].key, true
}

// press moves, sorts, opens the row or runs one of the view's actions.
func (t *table) press(m *model, key string) tea.Cmd {
	if step, ok := movement(key, max(m.bodyBox().height-2, 1)); ok {
		rows := t.rows(m)
		t.choose(rows, t.at(rows)+step)
		return nil
	}
	if t.sortBy(key) {
		return nil
	}
	row, ok := t.selected(m)
	if key == "enter" {
		if ok {
			return t.view.open(m, t.of, row)
		}
		return nil
	}
	for _, a := range t.view.actions(t.of) {
		if a.key != key {
			continue
		}
		if !ok && !a.rowless {
			m.message = message{plain("there is no row for " + a.key + " (" + a.does + ")"), true}
			return nil
		}
		return a.do(m, row)
	}
	return nil
}

// everything is further than any row.
const everything = 1 << 30

// movement is how many rows a key moves.
func movement(key string, page int) (int, bool) {
	steps := map[string]int{
		"down": 1, "j": 1, "up": -1, "k": -1, "pgdown": page, "ctrl+f": page, "pgup": -page, "ctrl+b": -page,
		"home": -everything, "g": -everything, "end": everything, "G": everything,
	}
	step, ok := steps[key]
	return step, ok
}

// sortBy sorts by the column with a key, the largest numbers first; again in the other
// order.
func (t *table) sortBy(key string) bool {
	for i, c := range t.view.columns() {
		if c.sortKey() == key && key != "" {
			t.sort(i)
			return true
		}
	}
	return false
}

func (t *table) sort(at int) {
	if t.sorted == at+1 {
		t.down = !t.down
		return
	}
	t.sorted, t.down = at+1, t.view.columns()[at].right
}

// click selects a row, opens the selected one, or sorts by a column.
func (t *table) click(m *model, b box, x, y int) tea.Cmd {
	heading := b.y + 1 + len(t.headLines(m, b))
	if y == heading {
		t.clickHeading(b, x)
		return nil
	}
	return t.clickRow(m, t.first+y-heading-1)
}

// clickHeading sorts by the column at x.
func (t *table) clickHeading(b box, x int) {
	at := b.x + 1
	for _, c := range fitColumns(t.view.columns(), b.width) {
		if x >= at && x < at+c.width && c.sortKey() != "" {
			t.sort(c.index)
		}
		at += c.width + 1
	}
}

// clickRow selects the row with an index, or opens it if it is selected.
func (t *table) clickRow(m *model, at int) tea.Cmd {
	rows := t.rows(m)
	if at < t.first || at >= len(rows) {
		return nil
	}
	if at == t.at(rows) {
		return t.view.open(m, t.of, rows[at].key)
	}
	t.choose(rows, at)
	return nil
}

func (t *table) scroll(m *model, _ box, lines int) {
	rows := t.rows(m)
	t.choose(rows, t.at(rows)+lines)
}

// headLines is what the view says above its rows, at most a third of the page.
func (t *table) headLines(m *model, b box) []styled {
	v, ok := t.view.(headed)
	if !ok {
		return nil
	}
	lines := v.head(m.shown(), t.of, m.now())
	return lines[:min(len(lines), b.height/3)]
}

// draw draws title, head, column titles and rows.
func (t *table) draw(m *model, b box) []string {
	rows := t.rows(m)
	drawn := []string{titleRule(fmt.Sprintf("%s %d%s", m.crumbs(), len(rows), filterNote(t.filter)), b.width, true)}
	for _, l := range t.headLines(m, b) {
		drawn = append(drawn, l.draw(b.width))
	}
	cols := fitColumns(t.view.columns(), b.width)
	drawn = append(drawn, t.headings(cols, b.width))
	return t.drawRows(m, rows, cols, box{b.x, b.y, b.width, b.height - len(drawn)}, drawn)
}

// drawRows draws as many rows as fit below what is drawn, so that the chosen one is
// visible.
func (t *table) drawRows(m *model, rows []row, cols []fittedColumn, b box, drawn []string) []string {
	at := t.at(rows)
	t.first = min(t.first, at, max(len(rows)-b.height, 0))
	t.first = max(t.first, at-b.height+1, 0)
	end := len(drawn) + b.height
	for i := t.first; i < len(rows) && len(drawn) < end; i++ {
		drawn = append(drawn, drawRow(rows[i].cells, cols, i == at && m.focused(t)))
	}
	if len(rows) == 0 && b.height > 0 {
		drawn = append(drawn, styles[faint].Render(fill("  "+string(t.emptyText()), b.width)))
	}
	for len(drawn) < end {
		drawn = append(drawn, strings.Repeat(" ", b.width))
	}
	return drawn
}

func (t *table) emptyText() plain {
	if t.filter != "" {
		return "no rows match " + t.filter + "; esc shows all"
	}
	return t.view.empty(t.of)
}

// filterNote shows the filter in a title.
func filterNote(filter plain) string {
	if filter == "" {
		return ""
	}
	return " /" + string(filter)
}

// headings draws the titles of the columns, with an arrow at the sorted one.
func (t *table) headings(cols []fittedColumn, width int) string {
	var text strings.Builder
	text.WriteString(" ")
	for _, c := range cols {
		text.WriteString(aligned(t.heading(c), c.width, c.right) + " ")
	}
	return styles[faint].Render(fill(text.String(), width))
}

func (t *table) heading(c fittedColumn) string {
	switch {
	case t.sorted != c.index+1:
		return string(c.title)
	case t.down:
		return string(c.title) + "↓"
	default:
		return string(c.title) + "↑"
	}
}

// column is a column of a table. Shift and the capital letter of its title sort by it.
type column struct {
	title plain
	width int  // 0 takes the remaining width
	right bool // aligned right, for numbers
	from  int  // minimum width of the table for this column
}

// sortKey is the letter that sorts by the column.
func (c column) sortKey() string {
	for _, r := range string(c.title) {
		if unicode.IsUpper(r) {
			return string(r)
		}
	}
	return ""
}

// fittedColumn is a column with its width in a table.
type fittedColumn struct {
	column
	index int
}

// fitColumns are the columns that fit into a width.
func fitColumns(all []column, width int) []fittedColumn {
	var cols []fittedColumn
	left, sharing := width-1, 0
	for i, c := range all {
		if width < c.from {
			continue
		}
		cols = append(cols, fittedColumn{c, i})
		left -= c.width + 1
		if c.width == 0 {
			sharing++
		}
	}
	if sharing == 0 && len(cols) > 0 { // the widest column takes or gives the difference
		widest := slices.MaxFunc(cols, func(a, b fittedColumn) int { return cmp.Compare(a.width, b.width) })
		at := slices.IndexFunc(cols, func(c fittedColumn) bool { return c.index == widest.index })
		cols[at].width = max(cols[at].width+left, 1)
	}
	for i := range cols {
		if cols[i].width == 0 {
			cols[i].width = max(left/sharing, 1)
		}
	}
	return cols
}

// drawRow draws cells in their columns.
func drawRow(cells []cell, cols []fittedColumn, chosen bool) string {
	var text strings.Builder
	for _, c := range cols {
		shown := aligned(string(cells[c.index].text), c.width, c.right)
		if !chosen {
			shown = styles[cells[c.index].style].Render(shown)
		}
		text.WriteString(shown + " ")
	}
	if chosen {
		return chosenStyle.Render("›" + text.String())
	}
	return " " + text.String()
}
