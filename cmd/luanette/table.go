package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of the layout of a table on a terminal.
const (
	columnGap = 2
	narrowest = 12 // a column is not made narrower to make space for others
	mostLines = 2  // of a cell that is not about a problem

	problemIndent = 4 // of problems below their rows
)

// table prints rows in columns. On a terminal the cells are wrapped to its width: texts
// about what is wrong are always shown in full, other long texts are cut after a few
// lines. Elsewhere every row is one line and nothing is cut, for grep and awk.
func table(proc *process, head []string, rows [][]string) error {
	_, err := io.WriteString(proc.Stdout, layOut(head, rows, terminalWidth(proc.Stdout), proc.style(proc.Stdout)))
	return err
}

// printList prints a row for each element of a list, or what is said if there is none.
func printList[T any](proc *process, list []T, none, head string, row func(T) []string) error {
	if len(list) == 0 && none != "" {
		_, err := fmt.Fprintln(proc.Stdout, none)
		return err
	}
	var rows [][]string
	for _, element := range list {
		rows = append(rows, row(element))
	}
	return table(proc, strings.Fields(head), rows)
}

// layOut returns the text of a table for a terminal of that width; 0 means no terminal.
func layOut(head []string, rows [][]string, width int, style style) string {
	cells := make([][]string, 0, len(rows)+1)
	for _, row := range append([][]string{head}, rows...) {
		line := make([]string, len(head))
		for i := range min(len(head), len(row)) {
			line[i] = strings.Join(strings.Fields(plainText(row[i])), " ")
		}
		cells = append(cells, line)
	}
	l := layout{head: head, widths: naturalWidths(cells), style: style, width: width}
	if width > 0 {
		l.fit()
	}
	for i, row := range cells {
		l.row(row, i == 0)
	}
	return l.text.String()
}

// layout is a table that is being written.
type layout struct {
	head   []string
	widths []int
	below  bool // problems are below their rows, because they have too little space beside them
	width  int  // of the terminal
	style  style
	text   strings.Builder
}

// fit makes columns narrower until they fit the terminal.
func (l *layout) fit() {
	natural := l.widths
	l.widths = fitColumns(l.head, natural, l.width)
	for i, w := range l.widths {
		if isProblem(l.head[i]) && w < natural[i] && w < l.width/2 {
			l.below = true
		}
	}
	if !l.below {
		return
	}
	for i := range natural {
		if isProblem(l.head[i]) {
			natural[i] = -columnGap // it takes no space
		}
	}
	l.widths = fitColumns(l.head, natural, l.width)
}

// row writes a row, or the headings.
func (l *layout) row(row []string, heading bool) {
	paint := func(column int, line string) string {
		if heading {
			return l.style.heading(line)
		}
		return l.style.cell(l.head[column], row[column], line)
	}
	beside, problems := slices.Clone(row), []string(nil)
	for i, cell := range row {
		if l.below && isProblem(l.head[i]) {
			beside[i] = ""
			problems = append(problems, wrapText(cell, l.width-problemIndent)...)
		}
	}
	writeRow(&l.text, l.head, beside, l.widths, paint)
	if heading {
		return
	}
	for _, line := range problems {
		if line != "" {
			l.text.WriteString(strings.Repeat(" ", problemIndent) + l.style.bad(line) + "\n")
		}
	}
}

// naturalWidths returns the width of the longest cell of each column.
func naturalWidths(cells [][]string) []int {
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// isProblem reports whether a column says what is wrong.
func isProblem(heading string) bool {
	return slices.Contains([]string{"PROBLEM", "ERROR", "HINT", "WHAT TO DO"}, heading)
}

// fitColumns makes columns narrower until they fit the terminal. Texts about what is
// wrong keep half of its width as long as others can be made narrower; the first column,
// by which people name a row, comes last.
func fitColumns(head []string, natural []int, width int) []int {
	widths := slices.Clone(natural)
	excess := columnGap*(len(widths)-1) - width
	for _, w := range widths {
		excess += w
	}
	passes := []func(column int) (floor int){
		func(i int) int { return pick(isProblem(head[i]), width/2, widths[i]) },
		func(i int) int { return pick(i == 0 || isProblem(head[i]), widths[i], narrowest) },
		func(int) int { return narrowest },
	}
	for _, floor := range passes {
		for excess > 0 {
			widest := -1
			for i, w := range widths {
				if w > floor(i) && (widest < 0 || w > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
			excess--
		}
	}
	return widths
}

func pick(condition bool, yes, no int) int {
	if condition {
		return yes
	}
	return no
}

// writeRow writes one row, whose cells may take several lines each.
func writeRow(text *strings.Builder, head, row []string, widths []int, paint func(column int, line string) string) {
	lines := make([][]string, len(row))
	height := 1
	for i, cell := range row {
		lines[i] = wrapText(cell, max(widths[i], 1))
		if i > 0 && !isProblem(head[i]) {
			lines[i] = cutLines(lines[i], widths[i])
		}
		height = max(height, len(lines[i]))
	}
	for n := range height {
		padding := 0
		for i := range row {
			line := ""
			if n < len(lines[i]) {
				line = lines[i][n]
			}
			if line != "" {
				text.WriteString(strings.Repeat(" ", padding) + paint(i, line))
				padding = 0
			}
			padding += widths[i] - utf8.RuneCountInString(line) + columnGap
		}
		text.WriteByte('\n')
	}
}

// cutLines returns the first lines of a cell.
func cutLines(lines []string, width int) []string {
	if len(lines) <= mostLines {
		return lines
	}
	last := []rune(lines[mostLines-1])
	return append(lines[:mostLines-1:mostLines-1], string(last[:min(len(last), width-1)])+"…")
}

// wrapText breaks a text into lines of at most width characters, between words where
// possible.
func wrapText(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		joined := strings.TrimPrefix(line+" "+word, " ")
		if utf8.RuneCountInString(joined) <= width {
			line = joined
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		r := []rune(word)
		for ; len(r) > width; r = r[width:] {
			lines = append(lines, string(r[:width]))
		}
		line = string(r)
	}
	return append(lines, line)
}

// style colours texts for a terminal. The zero value leaves them as they are.
type style struct{ on bool }

// style returns the style for a stream: colours only on a terminal that has them, and
// never if the person switched them off.
func (p *process) style(w io.Writer) style {
	on := !p.noColor && p.Env["NO_COLOR"] == "" && p.Env["TERM"] != "dumb" && isTerminal(w)
	return style{on}
}

// SGR codes.
const (
	sgrBold   = "1"
	sgrDim    = "2"
	sgrRed    = "31"
	sgrGreen  = "32"
	sgrYellow = "33"
)

func (s style) paint(code, text string) string {
	if !s.on || text == "" || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) heading(text string) string { return s.paint(sgrDim, text) }
func (s style) bad(text string) string     { return s.paint(sgrRed, text) }

// cell colours a cell, or a line of it, by its column and whole text.
func (s style) cell(heading, whole, line string) string {
	switch {
	case isProblem(heading):
		return s.bad(line)
	case heading == "STATE" || heading == "STATUS" || heading == "DECISION" || heading == "FAILED":
		return s.paint(stateColour(whole), line)
	}
	return line
}

// state colours the name of a state.
func (s style) state(name string) string { return s.paint(stateColour(name), name) }

// stateColours are the colours of the states of upstreams, jobs, approvals, pins and
// keys.
var stateColours = map[string]string{
	"connected": sgrGreen, "complete": sgrGreen, "ok": sgrGreen, "active": sgrGreen, "approved": sgrGreen, "allowed": sgrGreen, "allow": sgrGreen,
	"starting": sgrYellow, "connecting": sgrYellow, "reconnecting": sgrYellow, "running": sgrYellow, "pending": sgrYellow,
	"waiting": sgrYellow, "held": sgrYellow, "changed": sgrYellow, "paused": sgrYellow, "warning": sgrYellow, "untrusted": sgrYellow,
	"failed": sgrRed, "needs_auth": sgrRed, "denied": sgrRed, "deny": sgrRed, "refused": sgrRed, "revoked": sgrRed, "error": sgrRed, "problem": sgrRed, "unreadable": sgrRed,
	"asleep": sgrDim, "note": sgrDim, "cancelled": sgrDim, "expired": sgrDim, "withdrawn": sgrDim, "removed": sgrDim,
}

// stateColour returns the colour of a state, which may be followed by details.
func stateColour(state string) string {
	first, _, _ := strings.Cut(state, " ")
	return stateColours[strings.TrimRight(first, ",:")]
}
