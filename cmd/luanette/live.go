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

// live shows the output of a call while it runs: its lines, and on a terminal a
// progress bar below them.
type live struct {
	proc   *process
	prompt func(question string) (string, error) // asks the person if another reader owns the terminal; may be nil

	mu    sync.Mutex
	shown map[int64]bool // numbers of the lines that were printed
	bar   string         // the text on the terminal's last line
}

func newLive(proc *process) *live {
	return &live{proc: proc, shown: map[int64]bool{}}
}

// caller returns the caller that receives the progress of a call.
func (l *live) caller() *tool.Caller {
	c := &tool.Caller{ID: "cli"}
	if terminalWidth(l.proc.Stderr) > 0 {
		c.Progress = l.progress
	}
	l.asks(c)
	return c
}

// log receives the lines that a script logs.
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
	out := l.proc.Stderr
	if said.Stream == "stdout" {
		out = l.proc.Stdout
	}
	fmt.Fprintln(out, said.Text)
	l.draw(bar)
}

func (l *live) progress(p tool.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw(progressBar(p, max(terminalWidth(l.proc.Stderr), 40)))
}

// end removes the bar.
func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw("")
}

// draw replaces the bar on the last line, or removes it. The caller holds mu.
func (l *live) draw(bar string) {
	if l.bar != bar {
		_, _ = io.WriteString(l.proc.Stderr, "\r\x1b[K"+bar)
	}
	l.bar = bar
}

// progressBar returns a progress bar that fits the terminal's width.
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
