package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
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
}

func newLive(proc *process) *live {
	return &live{proc: proc, shown: map[int64]bool{}}
}

// caller returns the caller that receives the progress of a call.
func (l *live) caller() *tool.Caller {
	c := &tool.Caller{ID: "cli", Agent: "luanette"}
	if terminalWidth(l.proc.Stderr) > 0 {
		c.Progress = l.progress
	}
	l.enableQuestions(c)
	return c
}

// log receives the lines that a script logs.
func (l *live) log(entry tool.Log) {
	var message script.LogMessage
	if entry.Logger != "script" || json.Unmarshal(entry.Data, &message) != nil || message.Number == 0 {
		return // a message of a tool, not of the script
	}
	l.line(message)
}

// line prints a line once.
func (l *live) line(message script.LogMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown[message.Number] {
		return
	}
	l.shown[message.Number] = true
	out := l.proc.Stderr
	if message.Stream == "stdout" {
		out = l.proc.Stdout
	}
	l.proc.status.print(l.proc.Stderr, func() { fmt.Fprintln(out, message.Text) })
}

func (l *live) progress(p tool.Progress) {
	bar := progressBar(p, max(terminalWidth(l.proc.Stderr), 40))
	l.proc.status.set(l.proc.Stderr, func(s *statusLine) { s.bar = bar })
}

// end removes the bar.
func (l *live) end() {
	l.proc.status.set(l.proc.Stderr, func(s *statusLine) { s.bar = "" })
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

// printResult prints the lines that were not printed yet, and the result.
func (l *live) printResult(structured json.RawMessage) error {
	lines, result, err := readAnswer(structured)
	if err != nil {
		return err
	}
	l.lines(lines)
	if result == nil {
		return nil
	}
	return printJSON(l.proc.Stdout, result)
}

// errorText returns the error text of a script. The text ends with the script's output,
// of which failure prints the lines that were not printed yet.
func (l *live) errorText(view tool.View) string {
	var meta map[string]json.RawMessage
	var output []script.LogMessage
	if json.Unmarshal(view.Meta, &meta) != nil || json.Unmarshal(meta[script.OutputKey], &output) != nil {
		return view.Text()
	}
	for i := range output {
		output[i].Number = int64(i) + 1
	}
	l.lines(output)
	text := view.Text()
	if at := strings.LastIndex(text, script.OutputHeading); at >= 0 {
		text = text[:at]
	}
	return text
}

// readAnswer returns the output of a script and its result from the result of a tool.
// The script's result is nil if there is none.
func readAnswer(structured json.RawMessage) (lines []script.LogMessage, result json.RawMessage, err error) {
	var answer struct {
		Result json.RawMessage
		Output []struct{ Stream, Text string }
	}
	if err := json.Unmarshal(structured, &answer); err != nil {
		return nil, nil, fault.Wrap(fault.Upstream, err, "read result")
	}
	for i, line := range answer.Output {
		lines = append(lines, script.LogMessage{Number: int64(i) + 1, Stream: line.Stream, Text: line.Text})
	}
	if string(answer.Result) == "null" {
		answer.Result = nil
	}
	return lines, answer.Result, nil
}

// lines prints the lines that were not printed yet.
func (l *live) lines(lines []script.LogMessage) {
	for _, line := range lines {
		l.line(line)
	}
}
