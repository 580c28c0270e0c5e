package terminal

import (
	"strings"
	"time"
)

// timeBar is an operation on a time axis.
type timeBar struct {
	label             plain
	from, took, total time.Duration
	problem           plain
	running           bool
	note              bool // only the label
}

// Widths of a waterfall.
const (
	tookWidth = 7
	minBar    = 10 // narrower bars are not drawn
)

// waterfall draws operations below each other, each with a bar at its time.
func waterfall(bars []timeBar, width int) (all []styled) {
	label := min(max(longest(bars), 12), max(width/2-tookWidth, 12))
	room := width - label - tookWidth - 2
	for _, b := range bars {
		if b.note {
			all = append(all, styled{b.label, faint})
			continue
		}
		text := fill(string(b.label), label) + " " + aligned(string(short(b.took)), tookWidth, true)
		if room >= minBar {
			text += " " + b.draw(room)
		}
		look := normal
		if b.problem != "" {
			look = red
		}
		if b.running {
			text, look = fill(string(b.label), label)+" running", yellow
		}
		all = append(all, styled{plain(strings.TrimRight(text, " ")), look})
		if b.problem != "" {
			all = append(all, styled{"  " + b.problem, red})
		}
	}
	return all
}

// longest is the width of the widest label.
func longest(bars []timeBar) int {
	most := 0
	for _, b := range bars {
		most = max(most, textWidth(string(b.label)))
	}
	return most
}

// draw draws the bar; the shortest is one character.
func (b timeBar) draw(width int) string {
	from := min(b.share(b.from, width), width-1)
	size := min(max(b.share(b.took, width), 1), width-from)
	return strings.Repeat(" ", from) + strings.Repeat("━", size)
}

// share is the part of a width that a time takes.
func (b timeBar) share(t time.Duration, width int) int {
	return int(min(max(float64(t)/float64(max(b.total, 1)), 0), 1) * float64(width))
}
