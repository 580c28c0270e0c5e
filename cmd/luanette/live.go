package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
)

// live shows what a call says while it runs: lines where they belong, and on a
// terminal a bar of how far it has come below them.
type live struct {
	world  *process
	prompt func(question string) (string, error) // asks the person, where something else reads the terminal; may be nil

	mu    sync.Mutex
	shown map[int64]bool // lines that were printed, by number
	bar   string         // what stands on the terminal's last line
}

func newLive(world *process) *live {
	return &live{world: world, shown: map[int64]bool{}}
}

// caller is who hears how far a call has come.
func (l *live) caller() *tool.Caller {
	c := &tool.Caller{ID: "cli"}
	if terminalWidth(l.world.Stderr) > 0 {
		c.Progress = l.progress
	}
	l.asks(c)
	return c
}

// log is Log of a caller who hears also what a script says.
func (l *live) log(entry tool.Log) {
	var said script.LogMessage
	if entry.Logger != "script" || json.Unmarshal(entry.Data, &said) != nil || said.Number == 0 {
		return // a tool's, not the script's
	}
	l.line(said)
}

// line prints a line once.
func (l *live) line(said script.LogMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown[said.Number] {
		return
	}
	l.shown[said.Number] = true
	bar := l.bar
	l.draw("")
	out := l.world.Stderr
	if said.Stream == "stdout" {
		out = l.world.Stdout
	}
	fmt.Fprintln(out, said.Text)
	l.draw(bar)
}

func (l *live) progress(p tool.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw(progressBar(p, max(terminalWidth(l.world.Stderr), 40)))
}

// end takes the bar away.
func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw("")
}

// draw puts another bar on the last line, or none; mu is held.
func (l *live) draw(bar string) {
	if l.bar != bar {
		_, _ = io.WriteString(l.world.Stderr, "\r\x1b[K"+bar)
	}
	l.bar = bar
}

// progressBar fits in a terminal of that width.
func progressBar(p tool.Progress, width int) string {
	bar := fmt.Sprintf("%v %s", p.Progress, p.Message)
	if p.Total > 0 {
		const cells = 20
		share := min(max(p.Progress/p.Total, 0), 1)
		full := int(share * cells)
		bar = fmt.Sprintf("%s%s %3.0f%% %s", strings.Repeat("█", full), strings.Repeat("░", cells-full), 100*share, p.Message)
	}
	if r := []rune(bar); len(r) >= width {
		bar = string(r[:width-1])
	}
	return bar
}
