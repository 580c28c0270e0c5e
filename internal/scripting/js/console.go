package js

import (
	"strings"
)

// console records what a script writes, up to a number of bytes.
type console struct {
	lines   []Line
	left    int // bytes that may still be recorded
	dropped int
}

// lineCost is added to the size of every line, so that empty lines count too.
const lineCost = 32

// add records a line, or counts it as dropped when the limit is reached.
func (c *console) add(l Line) {
	l.Text = strings.ToValidUTF8(l.Text, "�")
	if c.dropped > 0 || len(l.Text)+lineCost > c.left {
		c.dropped++
		return
	}
	c.left -= len(l.Text) + lineCost
	c.lines = append(c.lines, l)
}
