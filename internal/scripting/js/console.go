package js

import (
	"strings"
)

// console keeps what a script writes, up to a number of bytes.
type console struct {
	lines   []Line
	room    int // bytes that may still be kept
	dropped int
}

// lineCost is what a line counts besides its text, so that empty lines are not free.
const lineCost = 32

// add keeps a line, or counts it as dropped when there is no room.
func (c *console) add(l Line) {
	l.Text = strings.ToValidUTF8(l.Text, "�")
	if c.dropped > 0 || len(l.Text)+lineCost > c.room {
		c.dropped++
		return
	}
	c.room -= len(l.Text) + lineCost
	c.lines = append(c.lines, l)
}
