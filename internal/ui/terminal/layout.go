package terminal

// box is an area of the screen.
type box struct{ x, y, width, height int }

// Minimum sizes of the layouts.
const (
	gridWidth, gridHeight   = 130, 16 // two columns of two panes
	stackWidth, stackHeight = 50, 18  // four panes in one column
)

// boxOf is the area of a pane; a pane without height is not shown.
func (m *model) boxOf(id paneID) box {
	inner := box{0, 1, m.width, max(m.height-2, 0)} // between the header and the footer
	switch {
	case m.width >= gridWidth && m.height >= gridHeight:
		left := (inner.width - 1) / 2
		top := inner.height / 2
		b := box{0, inner.y, left, top}
		if id == jobPane || id == logPane {
			b.x, b.width = left+1, inner.width-1-left
		}
		if id == callPane || id == logPane {
			b.y, b.height = inner.y+top, inner.height-top
		}
		return b
	case m.width >= stackWidth && m.height >= stackHeight:
		top := inner.y + inner.height*int(id)/int(paneCount)
		return box{0, top, inner.width, inner.y + inner.height*(int(id)+1)/int(paneCount) - top}
	case id == m.focus:
		return inner
	default:
		return box{}
	}
}

// body draws the panes.
func (m *model) body() []string {
	if m.boxOf(callPane).x == 0 && m.boxOf(jobPane).x == 0 {
		var all []string
		for id := range paneCount {
			all = append(all, m.drawPane(id)...)
		}
		return all
	}
	var all []string
	for _, pair := range [][2]paneID{{upstreamPane, jobPane}, {callPane, logPane}} {
		left, right := m.drawPane(pair[0]), m.drawPane(pair[1])
		for i := range left {
			all = append(all, left[i]+styles[faint].Render("│")+right[i])
		}
	}
	return all
}
