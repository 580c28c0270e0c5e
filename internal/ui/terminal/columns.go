package terminal

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

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
